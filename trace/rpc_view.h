// RPC-over-RDMA version 1 (RFC 8166), version 2 and the draft of 2005, and the heads of ONC RPC messages (RFC 5531) of
// one connection: Calls and Replies, whether they travel in Sends or in chunks, with the procedures and statuses of NFS
// and MOUNT by name. Whether a connection carries them at all is told by the caller, by RFC 8797 private data, or
// guessed from the first Sends. Not thread-safe.
//
// Memory: ChunkView's, and kMaxCalls Calls that were not answered, as many Replies before their RDMA_DONE.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/trace/call_book.h"
#include "iwarp/trace/chunk_view.h"
#include "iwarp/trace/compound_view.h"
#include "iwarp/trace/record.h"

namespace iwarp::trace {

enum class RpcGuess : std::uint8_t { kUnknown, kYes, kNo };

struct RpcViewOptions {
  RpcGuess guess = RpcGuess::kUnknown;
  std::uint32_t config_program = rpcrdma::kConfigProgram;  // number of the program CONFIG_RDMA
  // Shared by the connections of a capture; empty: this connection has its own.
  std::shared_ptr<CallBook> book;
  CallBook::Pair ends{};         // of the connection, for `book`
  std::string connection = "1";  // its name
};

class RpcView {
 public:
  static constexpr std::size_t kMaxCalls = 4096;  // far above any credit limit

  explicit RpcView(RpcViewOptions options);

  // Private data of a startup frame. What it says, if it is RFC 8797's.
  [[nodiscard]] std::optional<Pdu> on_private_data(ConstBytes private_data);

  // Of the layers rpcrdma and rpc. When, connection and direction are left to the caller.
  struct Event {
    Record record;
    bool malformed = false;
  };
  using Events = std::vector<Event>;
  // A Send: the RPC-over-RDMA message in it, and the RPC message if that is in it or complete with it. Empty: not
  // RPC-over-RDMA.
  [[nodiscard]] Events on_send(Direction direction, const Message& message, const When& when);

  // The RPC that an RDMA Write or Read belongs to; nullptr if none is known.
  std::shared_ptr<const SeenRpc> on_write(Direction direction, const Message& message);
  std::shared_ptr<const SeenRpc> on_read_request(Direction direction, const rdmap::ReadRequest& request);
  struct Read {
    std::shared_ptr<const SeenRpc> rpc;
    Events events;  // the Call that is complete with it
  };
  Read on_read_response(Direction direction, const Message& message, const When& when);

  // Forgets all RPCs that are under way.
  void forget();
  // How many were forgotten so far, for want of memory.
  [[nodiscard]] std::uint64_t forgotten() const { return forgotten_; }
  // Octets of memory, about.
  [[nodiscard]] std::size_t memory() const { return call_bytes_ + chunks_.memory() + offered_.size() * sizeof(Offer); }

 private:
  using Key = std::pair<Direction, std::uint32_t>;  // who called, xid
  struct Call {
    std::shared_ptr<SeenRpc> rpc;
    DataPlaces places;
    [[nodiscard]] std::size_t memory() const;
  };

  [[nodiscard]] std::optional<rpcrdma::ParsedHeader> parse(const Message& message, Events& events);
  void keep(const Key& key, Call call);
  std::optional<Call> take(const Key& key);
  void on_call(const rpcrdma::ParsedHeader& parsed, Direction d, const Message& m, ConstBytes payload, const When& when,
               Events& events);
  void on_reply(const rpcrdma::ParsedHeader& parsed, Direction d, const Message& m, ConstBytes payload,
                const When& when, Events& events);
  void on_done(const rpcrdma::Header& h, Direction d, const When& when, Events& events);
  void on_error(const rpcrdma::Header& h, Direction d, Events& events);
  // `message`: the beginning of an RPC message of `bytes` octets.
  void add_call(Call& call, ConstBytes message, std::uint64_t bytes, const When& when, Events& events);
  void add_call_of_chunk(Call& call, const When& when, Events& events);
  void add_reply(const std::shared_ptr<SeenRpc>& rpc, const DataPlaces& places, ConstBytes message, std::uint64_t bytes,
                 const When& when, Events& events);

  RpcViewOptions options_;
  unsigned guesses_ = 0;
  // Calls without a Reply so far; forgotten when there are too many.
  std::map<Key, Call> calls_;
  std::size_t call_bytes_ = 0;  // memory of them
  std::uint64_t forgotten_ = 0;
  // Replies with Read chunks, by their Call, until RDMA_DONE.
  struct Offer {
    std::shared_ptr<SeenRpc> rpc;
    When sent{};
    DataPlaces places;
    bool long_reply = false;  // the Reply itself is in the chunk
  };
  std::map<Key, Offer> offered_;
  ChunkView chunks_;
};

}  // namespace iwarp::trace
