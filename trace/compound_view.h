// The operations of NFSv4 COMPOUND and CB_COMPOUND messages by number, as far as they can be read: messages may be cut
// anywhere, and file data may have travelled in chunks. Bounded by the octets given; allocates for what it found only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/transport_header.h"

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

// Where the DDP-eligible items (RFC 8267 s6.1) of a message are, if not in it right behind their counts.
struct DataPlaces {
  std::vector<std::uint32_t> read_positions{};  // of those in Read chunks (RFC 8166 s3.4.5)
  // Of a Reply: the n-th is in the n-th Write chunk, which is not empty. What is in a Read chunk has none.
  std::vector<bool> write_chunks{};
  rpcrdma::Padding padding{};    // of an RDMA_MSGP: of those in the message; align 0: it is none
  std::size_t header_bytes = 0;  // likewise: in front of the message
};

// `message` is an RPC Call whose arguments begin at `offset`.
[[nodiscard]] CompoundView view_compound_call(ConstBytes message, std::size_t offset, bool callback,
                                              const DataPlaces& places);
// `message` is an RPC Reply whose results begin at `offset`.
[[nodiscard]] CompoundView view_compound_reply(ConstBytes message, std::size_t offset, bool callback,
                                               const DataPlaces& places);

}  // namespace iwarp::trace
