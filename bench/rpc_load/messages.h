// The few NFSv3 messages of the load: NULL, READ and WRITE as Linux lays them out (RFC 1813, RFC 5531), each behind its
// record mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "iwarp/base/wire.h"

namespace iwarp::bench {

enum class Procedure : std::uint32_t { kNull = 0, kRead = 6, kWrite = 7 };

inline constexpr std::size_t kMarkBytes = 4;
// Octets of a record up to the end of what parse_call() looks at in a READ or WRITE.
inline constexpr std::size_t kCallHeadBytes = kMarkBytes + 40 + 28 + 36 + 12;

// A whole record with the octets of `procedure`: mark, head, and for WRITE `bytes` of data, a multiple of 4.
[[nodiscard]] std::vector<std::byte> make_call(Procedure procedure, std::uint32_t bytes);
// The record of its Reply without the data of a READ, `bytes` of which follow.
[[nodiscard]] std::vector<std::byte> make_reply_head(Procedure procedure, std::uint32_t bytes);
// Of either message.
void set_xid(MutBytes record, std::uint32_t xid);

struct Call {
  std::uint32_t xid = 0;
  Procedure procedure{};
  std::uint32_t bytes = 0;  // count of a READ or WRITE
};
// `record`: mark and head of a Call that make_call() made; at least kCallHeadBytes of a READ or WRITE.
[[nodiscard]] Call parse_call(ConstBytes record);

}  // namespace iwarp::bench
