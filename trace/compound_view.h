// The operations of NFSv4 COMPOUND and CB_COMPOUND messages by number, as far as they can be read: messages may be cut
// anywhere, and file data may have travelled in chunks. Bounded by the octets given; allocates for what it found only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::trace {

// What cannot be read is left out.
struct CompoundView {
  std::optional<std::uint32_t> status;         // of a Reply
  std::optional<std::string> tag;              // as received: any octets
  std::optional<std::uint32_t> minor_version;  // of a Call
  std::vector<std::uint32_t> ops;
  std::uint32_t count = 0;  // of operations, by the message; `ops` may be fewer

  // "[SEQUENCE PUTFH ...]"
  [[nodiscard]] std::string ops_list(bool callback) const;
  // The operation that it is there for: the first one that does more than choose a file or a slot. nullopt if it has
  // none.
  [[nodiscard]] std::optional<std::uint32_t> main_op(bool callback) const;
};

// `message` is an RPC Call whose arguments begin at `offset`; its data at these Positions (RFC 8166 s3.4.5) is not in
// it.
[[nodiscard]] CompoundView view_compound_call(ConstBytes message, std::size_t offset, bool callback,
                                              std::span<const std::uint32_t> read_positions);
// `message` is an RPC Reply whose results begin at `offset`; the n-th DDP-eligible item (RFC 8267 s6.1) is not in it
// when there is an n-th Write chunk that is not empty.
[[nodiscard]] CompoundView view_compound_reply(ConstBytes message, std::size_t offset, bool callback,
                                               const std::vector<bool>& write_chunks);

}  // namespace iwarp::trace
