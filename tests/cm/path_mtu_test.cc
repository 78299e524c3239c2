// The path MTU shrinks under an open connection, and FPDUs shrink with it. In a network namespace of its own, which
// takes root.
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "iwarp/base/wire.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/covers.h"

namespace iwarp::test {
namespace {

bool bring_loopback_up(int mtu) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_mtu = mtu;
  bool ok = ::ioctl(fd, SIOCSIFMTU, &request) == 0;
  request.ifr_flags = IFF_UP;
  ok = ok && ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return ok;
}

// Takes FPDUs of Sends until `bytes` octets of payload have come, at least one; the longest ULPDU among them.
std::size_t longest_ulpdu(RawTcp& peer, std::size_t& bytes) {
  std::size_t longest = 0;
  do {
    const Bytes length = peer.read(mpa::kLengthBytes);
    if (length.size() < mpa::kLengthBytes) return ADD_FAILURE() << "no FPDU", 0;
    const std::size_t ulpdu = load_be<std::uint16_t>(length);
    const std::size_t rest = mpa::fpdu_bytes(ulpdu) - mpa::kLengthBytes;
    if (peer.read(rest).size() < rest) return ADD_FAILURE() << "half an FPDU", 0;
    longest = std::max(longest, ulpdu);
    bytes -= std::min(bytes, ulpdu - ddp::UntaggedHeader::kSize);
  } while (bytes > 0);
  return longest;
}

// Our end of a connection, in a network of 9000 octets, and the raw other end.
struct Connected {
  static constexpr std::size_t kBytes = 16 << 20;  // more than the sockets hold
  cm::Engine engine;
  Node node{engine, {}, kBytes};
  RawTcp peer = connect();

 private:
  RawTcp connect() {
    EXPECT_TRUE(bring_loopback_up(9000));
    RawListener listener;
    mpa::Policy policy;
    policy.revision = 1;
    auto connecting = start_connect(node, to_port(listener.port(), policy));
    RawTcp accepted = listener.accept();
    EXPECT_TRUE(read_frame(accepted, false).complete);
    mpa::StartupFrame reply;
    reply.is_reply = reply.crc = true;
    reply.revision = 1;
    EXPECT_TRUE(accepted.send(octets(reply)));
    EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
    return accepted;
  }
};

constexpr std::size_t kLongestAfter = 1500 - 40 - 6;  // IPv4 and TCP headers, length and CRC of the FPDU

void send_while_the_path_mtu_shrinks() {
  Connected c;
  c.node.send(1, c.kBytes);
  std::size_t one = 1;
  const std::size_t first = longest_ulpdu(c.peer, one);
  EXPECT_GT(first, 8000U);
  EXPECT_LT(first, 9000U);
  ASSERT_TRUE(bring_loopback_up(1500));
  std::size_t left = c.kBytes - (first - ddp::UntaggedHeader::kSize);
  (void)longest_ulpdu(c.peer, left);
  // The kernel notices when it sends the next segment, and we when a full socket has room again: both happen in each of
  // these messages, but in which of them first is theirs to say.
  std::size_t longest = first;
  for (std::uint64_t id = 2; id < 8 && longest > kLongestAfter; ++id) {
    c.node.send(id, c.kBytes);
    left = c.kBytes;
    longest = longest_ulpdu(c.peer, left);
  }
  EXPECT_LE(longest, kLongestAfter);
}

// Small messages, for which TCP always has room.
void send_without_waiting_after_the_path_mtu_shrank() {
  Connected c;
  ASSERT_TRUE(bring_loopback_up(1500));
  constexpr std::uint64_t kMessages = 300;
  for (std::uint64_t id = 1; id <= kMessages; ++id) {
    c.node.send(id, 64);
    c.node.expect(verbs::WcOp::kSend, id);
    std::size_t left = 64;
    (void)longest_ulpdu(c.peer, left);
  }
  c.node.send(kMessages + 1, 8000);
  std::size_t left = 8000;
  EXPECT_LE(longest_ulpdu(c.peer, left), kLongestAfter);
}

// False when that is not allowed here.
bool in_a_network_of_its_own(void (*run)()) {
  bool alone = false;
  std::thread([&] {
    alone = ::unshare(CLONE_NEWNET) == 0;
    if (alone) run();
  }).join();
  return alone;
}

TEST(PathMtu, FpdusShrinkWithIt) {
  if (!in_a_network_of_its_own(send_while_the_path_mtu_shrinks))
    GTEST_SKIP() << "needs a network namespace of its own: run it as root";
  COVERS("RFC5044-3-2");
  COVERS("RFC5044-4.5-5");
}

TEST(PathMtu, FpdusShrinkWhenNothingEverBlocks) {
  if (!in_a_network_of_its_own(send_without_waiting_after_the_path_mtu_shrank))
    GTEST_SKIP() << "needs a network namespace of its own: run it as root";
  COVERS("RFC5044-3-2");
}

}  // namespace
}  // namespace iwarp::test
