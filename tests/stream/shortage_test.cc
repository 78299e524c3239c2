// The n-th allocation fails, for every n there is, while requests are posted, encoded and received, and the application
// goes on as if nothing had happened: what is delivered is intact, or the connection has ended and said why.
#include <gtest/gtest.h>

#include "iwarp/rdmap/shared_receives.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"
#include "tests/support/shortage.h"

namespace iwarp::stream {
namespace {

using rdmap::SendOp;
using test::Bytes;
using test::Shortage;

constexpr std::size_t kBytes = 60'000, kMarker = 16, kWrite = 13'000;

struct Case {
  const char* name;
  SendOp op;
  bool crc;
};

class ShortOfMemory : public ::testing::TestWithParam<Case> {
 protected:
  // One conversation in which allocation `n` fails; false when there are not so many.
  bool lives_through(std::size_t n);

 private:
  struct Conversation;
};

// A driver of both ends whose own allocations never fail, and which ignores exceptions as an application may.
struct ShortOfMemory::Conversation {
  static test::PairOptions options(bool crc) {
    test::PairOptions o;
    o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kOff;
    return o;
  }
  explicit Conversation(const Case& c) : pair(options(c.crc)) { pair.establish(); }

  // A step of the core, whose allocations count.
  template <class Step>
  void attempt(const Step& step) {
    try {
      const Shortage::Short now;
      step();
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
  }
  bool move(test::Endpoint& from, test::Endpoint& to) {
    Bytes sent;
    spans = {};
    attempt([&] { spans = from.conn().tx_buffers(pair.now); });
    for (const ConstBytes b : spans) sent.insert(sent.end(), b.begin(), b.end());
    sent.resize(std::min(sent.size(), kWrite));
    attempt([&] { from.conn().tx_commit(sent.size(), pair.now); });
    for (std::size_t used = 0; used < sent.size();) {
      room = {};
      attempt([&] { room = to.conn().rx_buffers(scratch); });
      std::size_t n = 0;
      for (const MutBytes b : room) {
        const std::size_t part = std::min(b.size(), sent.size() - used - n);
        std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(used + n), part, b.begin());
        n += part;
      }
      if (n == 0) break;
      attempt([&] { to.conn().rx_commit(n, pair.now); });
      used += n;
    }
    from.collect();
    to.collect();
    return !sent.empty();
  }
  void run() {
    for (int idle = 0, steps = 0; idle < 3; ++steps) {
      if (steps == 1000) FAIL() << "octets go round for ever";
      const bool there = move(pair.initiator, pair.responder);
      idle = move(pair.responder, pair.initiator) || there ? 0 : idle + 1;
    }
  }

  test::Pair pair;
  std::span<const ConstBytes> spans;
  std::span<const MutBytes> room;
  Bytes scratch = Bytes(64 * 1024);
  int thrown = 0;
};

bool ShortOfMemory::lives_through(std::size_t n) {
  Conversation c(GetParam());
  test::Endpoint &a = c.pair.initiator, &b = c.pair.responder;
  auto& near = a.region(kBytes + kMarker, test::kRemoteAll);
  auto& far = b.region(kBytes + kMarker, test::kRemoteAll, 0x900000);
  const Bytes content = test::pattern(kBytes);
  const bool read = GetParam().op == SendOp::kRead;
  (read ? far : near).fill(content);
  auto& target = read ? near : far;
  rdmap::SendWr wr{.wr_id = 1, .op = GetParam().op, .sges = near.sge(0, kBytes), .remote_stag = far.stag()};
  wr.remote_to = far.to();
  const rdmap::SendWr marker{.wr_id = 2, .sges = near.sge(kBytes, kMarker), .fence = true};
  const rdmap::RecvWr message{.wr_id = 1, .sges = far.sge(0, kBytes)},
      end{.wr_id = 2, .sges = far.sge(kBytes, kMarker)};

  const Shortage shortage(n);
  // What is refused for want of memory is posted again.
  const auto post = [&](const auto& request) {
    Result<void> posted;
    c.attempt([&] { posted = request(); });
    if (!posted) posted = request();
    EXPECT_TRUE(posted.ok());
  };
  if (wr.op == SendOp::kSend) post([&] { return b.conn().post_recv(message); });
  post([&] { return b.conn().post_recv(end); });
  post([&] { return a.conn().post_send(wr); });
  post([&] { return a.conn().post_send(marker); });
  c.run();

  EXPECT_EQ(c.thrown, 0) << "the core says what happened in other ways";
  const auto told = [](const test::Endpoint& e) {
    return e.disconnected() != nullptr && e.disconnected()->reason.code == Errc::kResource;
  };
  const bool ended = told(a) || told(b);
  EXPECT_EQ(ended, a.conn().phase() == Phase::kClosed || b.conn().phase() == Phase::kClosed);
  bool arrived = false;
  for (const auto& r : b.recvs) arrived = arrived || (r.wr_id == 2 && r.status == Errc::kOk);
  if (read) {
    arrived = false;
    for (const auto& s : a.sends) arrived = arrived || (s.wr_id == 1 && s.status == Errc::kOk);
  }
  EXPECT_TRUE(arrived || ended) << "neither delivered nor ended";
  if (arrived) {
    EXPECT_TRUE(std::equal(content.begin(), content.end(), target.bytes().begin())) << "delivered, and wrong";
  }
  return Shortage::happened();
}

TEST_P(ShortOfMemory, DeliversWhatIsIntactOrEnds) {
  std::size_t n = 0;
  while (!HasFailure() && lives_through(n)) ++n;
  if (HasFailure()) ADD_FAILURE() << "when allocation " << n << " failed";
  EXPECT_GT(n, 3U) << "the test did not press";
}

INSTANTIATE_TEST_SUITE_P(Operations, ShortOfMemory,
                         ::testing::Values(Case{"SendCrc", SendOp::kSend, true}, Case{"Send", SendOp::kSend, false},
                                           Case{"WriteCrc", SendOp::kWrite, true}, Case{"Write", SendOp::kWrite, false},
                                           Case{"ReadCrc", SendOp::kRead, true}, Case{"Read", SendOp::kRead, false}),
                         [](const auto& of) { return of.param.name; });

// A burst of messages that take more shared Receives than there is memory for at first: each of those is told of, or
// left to others.
TEST(ShortOfMemoryWithSharedReceives, NoneIsLost) {
  constexpr std::size_t kMessages = 40;
  for (std::size_t n = 0;; ++n) {
    rdmap::SharedReceives shared(kMessages);
    test::RawPeerOptions options;
    options.shared = &shared;
    test::RawPeer peer(options);
    for (std::uint64_t id = 0; id < kMessages; ++id) ASSERT_TRUE(shared.post({id, {}}));
    Bytes burst;
    for (std::uint32_t i = 1; i <= kMessages; ++i) {
      const Bytes fpdu = peer.framed(test::send_segment({}, {.msn = i}));
      burst.insert(burst.end(), fpdu.begin(), fpdu.end());
    }
    Bytes scratch(burst.size());
    ASSERT_FALSE(peer.end.conn().rx_buffers(scratch).empty());
    std::copy(burst.begin(), burst.end(), scratch.begin());
    const Shortage shortage(n);
    {
      const Shortage::Short now;
      peer.end.conn().rx_commit(burst.size(), peer.now);
    }
    peer.end.collect();
    ASSERT_EQ(peer.end.recvs.size() + shared.posted(), kMessages) << "allocation " << n;
    for (std::size_t i = 0; i < peer.end.recvs.size(); ++i) EXPECT_EQ(peer.end.recvs[i].wr_id, i);
    if (!Shortage::happened()) {
      EXPECT_EQ(shared.posted(), 0U);
      EXPECT_GT(n, 2U) << "its memory grew";
      break;
    }
    ASSERT_NE(peer.end.disconnected(), nullptr);
    EXPECT_EQ(peer.end.disconnected()->reason.code, Errc::kResource);
  }
}

}  // namespace
}  // namespace iwarp::stream
