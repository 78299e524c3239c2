// Which RPC of a connection an RDMA Write or Read belongs to, and the beginning of RPC messages that travel in chunks:
// Calls in a Position-Zero Read chunk, Replies in a Reply chunk (RFC 8166 s3.5), or in a Position-Zero Read chunk of
// their own (draft of 2005). What is not seen in order is left out.
//
// Memory: kMaxHeadBytes for each of kMaxRpcs Calls and Replies, kMaxSegments segments, kMaxReads Read Requests each
// way. The oldest RPC is forgotten for a new one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "iwarp/rdmap/read_request.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/trace/message_assembler.h"
#include "iwarp/trace/record.h"

namespace iwarp::trace {

class ChunkView {
 public:
  static constexpr std::size_t kMaxHeadBytes = Message::kKeepTaggedBytes;
  static constexpr std::size_t kMaxRpcs = 128;
  static constexpr std::size_t kMaxSegments = 4096;
  static constexpr std::size_t kMaxReads = 1024;

  // The header of a Call that `rpc` is about. One with the same xid and caller is replaced.
  void add(const rpcrdma::Header& header, const std::shared_ptr<SeenRpc>& rpc);
  // The header of its Reply, which has Read chunks: what was known of the Call's chunks is forgotten.
  void add_reply(const rpcrdma::Header& header, const std::shared_ptr<SeenRpc>& rpc);
  // Its Reply came, or what the Reply offered has been read.
  void remove(const SeenRpc& rpc);
  // All of them.
  void clear();
  // Octets of memory, about.
  [[nodiscard]] std::size_t memory() const;

  // A message that `from` sent. The RPC it belongs to, whose octets are counted; nullptr if none is known.
  std::shared_ptr<SeenRpc> on_write(Direction from, const Message& message);
  std::shared_ptr<SeenRpc> on_read_request(Direction from, const rdmap::ReadRequest& request);
  std::shared_ptr<SeenRpc> on_read_response(Direction from, const Message& message);

  // The beginning of the message in the Position-Zero chunk, or in the Reply chunk, as far as it was seen.
  [[nodiscard]] ConstBytes call_head(const SeenRpc& rpc) const;
  [[nodiscard]] ConstBytes reply_head(const SeenRpc& rpc) const;
  // Octets of the Position-Zero chunk of the Call; 0 if there is none. Of that of the Reply.
  [[nodiscard]] std::uint64_t call_bytes(const SeenRpc& rpc) const;
  [[nodiscard]] std::uint64_t reply_bytes(const SeenRpc& rpc) const;
  // Whether no more of call_head() will come.
  [[nodiscard]] bool call_is_read(const SeenRpc& rpc) const;

 private:
  enum class Role : std::uint8_t { kCall, kData, kReply };  // kData: other Read chunks, Write chunks
  struct Place {
    rpcrdma::Segment segment;
    std::uint64_t chunk_offset = 0;  // of its first octet
    Role role = Role::kData;
  };
  struct Entry {
    std::shared_ptr<SeenRpc> rpc;
    Direction owner = Direction::kTx;     // of the sources
    std::vector<Place> sources, targets;  // of RDMA Reads, of RDMA Writes
    std::vector<std::byte> call_head, reply_head;
    std::uint64_t call_bytes = 0, reply_bytes = 0;
  };
  struct Read {
    rdmap::ReadRequest request;
    std::shared_ptr<SeenRpc> rpc;
    Role role = Role::kData;
    std::uint64_t chunk_offset = 0;
  };
  struct Found {
    Entry* entry = nullptr;
    Role role = Role::kData;
    std::uint64_t chunk_offset = 0;
  };

  void keep(Entry entry);
  [[nodiscard]] const Entry* find(const SeenRpc& rpc) const;
  // Only what continues `head` is taken.
  void extend(std::vector<std::byte>& head, std::uint64_t at, ConstBytes bytes);
  Found find_place(Direction owner, bool source, Stag handle, std::uint64_t offset);

  std::deque<Entry> entries_;  // the oldest first
  std::size_t segments_ = 0;
  std::size_t head_bytes_ = 0;             // memory of all heads
  std::array<std::deque<Read>, 2> reads_;  // by who asked
};

}  // namespace iwarp::trace
