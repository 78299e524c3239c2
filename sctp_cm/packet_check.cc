#include <algorithm>
#include <cstdint>

#include "iwarp/base/wire.h"
#include "iwarp/sctp_cm/packet.h"

namespace iwarp::sctp_cm {
namespace {

constexpr std::size_t kCommonHeaderBytes = 12;
constexpr std::size_t kHeadBytes = 4;  // of a chunk; type and length of a parameter or a cause
constexpr std::size_t kInitBytes = 20;
constexpr std::size_t kSackBytes = 16;
constexpr std::size_t kDataBytes = 16;

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

std::size_t be16(ConstBytes at) {
  return FixedView<2>{at.first<2>()}.be<std::uint16_t, 0>();
}

// Parameters or causes, one behind the other, to the end.
bool are_whole(ConstBytes list) {
  while (!list.empty()) {
    if (list.size() < kHeadBytes) return false;
    const std::size_t bytes = be16(list.subspan(2));
    if (bytes < kHeadBytes || bytes > list.size()) return false;
    list = list.subspan(std::min(padded(bytes), list.size()));
  }
  return true;
}

// Of its own length, with its head.
bool is_plain_chunk(ConstBytes chunk) {
  const std::size_t bytes = chunk.size();
  switch (std::to_integer<unsigned>(chunk[0])) {
    case 0:  // DATA: at least an octet
      return bytes > kDataBytes;
    case 1:  // INIT
    case 2:  // INIT ACK
      return bytes >= kInitBytes && are_whole(chunk.subspan(kInitBytes));
    case 3:  // SACK: as many gaps and duplicates as it says
      return bytes >= kSackBytes && bytes == kSackBytes + 4 * (be16(chunk.subspan(12)) + be16(chunk.subspan(14)));
    case 4:  // HEARTBEAT
    case 5:  // HEARTBEAT ACK: one parameter
      return bytes >= 2 * kHeadBytes && be16(chunk.subspan(6)) >= kHeadBytes &&
             be16(chunk.subspan(6)) <= bytes - kHeadBytes;
    case 6:  // ABORT
    case 9:  // ERROR
      return are_whole(chunk.subspan(kHeadBytes));
    case 7:  // SHUTDOWN
      return bytes == 8;
    case 8:   // SHUTDOWN ACK
    case 11:  // COOKIE ACK
    case 14:  // SHUTDOWN COMPLETE
      return bytes == kHeadBytes;
    case 10:  // COOKIE ECHO
      return bytes > kHeadBytes;
    default:
      return false;
  }
}

}  // namespace

bool is_plain(ConstBytes packet) {
  ConstBytes rest = packet.subspan(kCommonHeaderBytes);
  bool first = true;
  while (!rest.empty()) {
    if (rest.size() < kHeadBytes) return false;
    const std::size_t bytes = be16(rest.subspan(2));
    if (bytes < kHeadBytes || bytes > rest.size() || !is_plain_chunk(rest.first(bytes))) return false;
    const unsigned type = std::to_integer<unsigned>(rest[0]);
    const bool last = padded(bytes) >= rest.size();
    // Those that set up or end an association for good stand alone (RFC 9260 s6.10).
    if ((type == 1 || type == 2 || type == 14) && !(first && last)) return false;
    if (last) return true;
    rest = rest.subspan(padded(bytes));
    first = false;
  }
  return true;
}

}  // namespace iwarp::sctp_cm
