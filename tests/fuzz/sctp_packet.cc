// What stands between the network and SCTP (sctp_cm/packet.h): any octets as a packet. One that is taken consists of
// chunks that lie inside it, one behind the other, of the types that DDP needs, each as long as what it says; it is
// not taken any more when its last chunk is cut, and a chunk that is right by itself is taken.
//
// Input: flags | a packet, or its common header and chunks, each with a type, a number of octets and these.
#include "iwarp/sctp_cm/packet.h"

#include <optional>
#include <vector>

#include "tests/fuzz/check.h"

namespace iwarp::fuzz {
namespace {

using Octets = std::vector<std::byte>;
using sctp_cm::PacketHead;

std::size_t be16(ConstBytes octets, std::size_t at) {
  return std::to_integer<std::size_t>(octets[at]) << 8 | std::to_integer<std::size_t>(octets[at + 1]);
}

// Whether a chunk of that type, with as many octets behind its head, is what DDP needs and alone in its packet; only
// where that follows from these two.
std::optional<bool> known(unsigned type, std::size_t bytes) {
  switch (type) {
    case 0:
      return bytes > 12;
    case 7:
      return bytes == 4;
    case 8:
    case 11:
    case 14:
      return bytes == 0;
    case 10:
      return bytes > 0;
    default:
      return type > 11 ? std::optional(false) : std::nullopt;
  }
}

// Lengths that are right, so that the fuzzer gets to what is in the chunks.
Octets packet_of(Script& in) {
  Octets out{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  out.resize(12);
  while (!in.done() && out.size() < 4000) {
    const std::uint8_t type = in.u8();
    const std::size_t bytes = in.u8();
    const ConstBytes value = in.bytes(bytes);
    const std::size_t length = 4 + value.size();
    out.push_back(std::byte{type});
    out.push_back(std::byte{0});
    out.push_back(static_cast<std::byte>(length >> 8));
    out.push_back(static_cast<std::byte>(length));
    out.insert(out.end(), value.begin(), value.end());
    out.resize((out.size() + 3) / 4 * 4);
  }
  return out;
}

bool is_allowed(unsigned type) {
  return type <= 11 || type == 14;
}

// The items of a list, each with its length at its third octet; ends the process where they do not fill it.
template <class Use>
void walk(ConstBytes list, const Use& use) {
  std::size_t at = 0;
  while (at < list.size()) {
    FUZZ_CHECK(list.size() - at >= 4);
    const std::size_t bytes = be16(list, at + 2);
    FUZZ_CHECK(bytes >= 4 && bytes <= list.size() - at);
    use(list.subspan(at, bytes));
    at += (bytes + 3) / 4 * 4;
  }
}

void judge(ConstBytes packet) {
  const auto head = PacketHead::parse(packet);
  if (!head) return;
  FUZZ_CHECK(packet.size() >= sctp_cm::kMinPacketBytes && packet.size() <= sctp_cm::kMaxPacketBytes);
  FUZZ_CHECK(head->source == be16(packet, 0) && head->destination == be16(packet, 2));
  FUZZ_CHECK(head->source != 0 && head->destination != 0);
  Octets sealed(packet.begin(), packet.end());
  sctp_cm::write_checksum(sealed);
  FUZZ_CHECK(sctp_cm::has_good_checksum(sealed));
  sealed[packet.size() / 2] ^= std::byte{1};
  FUZZ_CHECK(!sctp_cm::has_good_checksum(sealed));
  const bool plain = sctp_cm::is_plain(packet);
  if (const std::size_t only = be16(packet, 14); (only + 3) / 4 * 4 == packet.size() - 12) {
    const auto expected = known(std::to_integer<unsigned>(packet[12]), only - 4);
    FUZZ_CHECK(!expected || *expected == plain);
  }
  if (!plain) return;
  std::size_t chunks = 0, end = 0;
  bool alone = false;
  walk(packet.subspan(12), [&](ConstBytes chunk) {
    const auto type = std::to_integer<unsigned>(chunk[0]);
    ++chunks;
    end = static_cast<std::size_t>(chunk.data() - packet.data()) + chunk.size();
    FUZZ_CHECK(is_allowed(type));
    FUZZ_CHECK(known(type, chunk.size() - 4).value_or(true));
    if (type == 1 || type == 2) {
      FUZZ_CHECK(chunk.size() >= 20);
      walk(chunk.subspan(20), [](ConstBytes) {});
    }
    if (type == 4 || type == 5) FUZZ_CHECK(chunk.size() >= 8 && be16(chunk, 6) + 4 <= chunk.size());
    if (type == 6 || type == 9) walk(chunk.subspan(4), [](ConstBytes) {});
    if (type == 3) FUZZ_CHECK(chunk.size() >= 16 && chunk.size() == 16 + 4 * (be16(chunk, 12) + be16(chunk, 14)));
    alone = alone || type == 1 || type == 2 || type == 14;
  });
  FUZZ_CHECK(chunks == 1 || !alone);
  const ConstBytes cut = packet.first(end - 1);
  if (PacketHead::parse(cut)) FUZZ_CHECK(!sctp_cm::is_plain(cut));
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  if (script.flag()) {
    judge(packet_of(script));
  } else {
    judge(script.rest());
  }
  return 0;
}
