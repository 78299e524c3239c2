// How to talk to an RPC-over-RDMA victim: as a client to a responder, as a server to a requester.
#pragma once

#include <optional>

#include "tests/hostile/rdma_talk.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::hostile {

namespace samples = rpcrdma::test;

// Private data of RFC 8797: remote invalidation, 4096 octets both ways.
[[nodiscard]] Bytes rpc_private_data();

// --- The victim is a responder that knows NFS version 3.

// Connected as a client; full operation.
[[nodiscard]] Peer open_rpc(Target& target, const Bytes& private_data = rpc_private_data(),
                            Flavour flavour = Flavour::kDefault);
// Memory of ours that the victim may read, as a segment.
[[nodiscard]] rpcrdma::Segment expose(Peer& peer, const Bytes& content);
// Memory that it may write. Nobody looks at what it wrote.
[[nodiscard]] rpcrdma::Segment room(std::uint32_t bytes);

// Whether the odd message of that xid is a Call that is served in spite of its oddity. A Reply to what must not be
// served is no reaction of the vocabulary; neither is silence about what must.
enum class Served : std::uint8_t { kNo, kMay, kYes };
// What the victim does about what went before: the answer to `xid`, if any, and the proof of two NULL procedures that
// it serves on; or how it ended.
[[nodiscard]] Reaction rpc_verdict(Peer& peer, std::uint32_t xid, Served served = Served::kNo);

// --- The victim is a requester that calls without end, its xids counting from 1: requester_call().

// Its Call of that xid: READDIR, with a Reply chunk, when it is even; READ, with a Write chunk, when it is the third of
// four; else NULL.
[[nodiscard]] Bytes requester_call(std::uint32_t xid);

class RpcServer {
 public:
  // Waits for the victim and accepts it.
  explicit RpcServer(Target& target, const Bytes& private_data = rpc_private_data(),
                     Flavour flavour = Flavour::kDefault);

  Peer peer;

  // The next Call in line of that kind, without a Write chunk; those before it are answered well. Throws when it does
  // not come.
  [[nodiscard]] samples::Decoded next_call(bool with_reply_chunk);
  // The next READ, likewise.
  [[nodiscard]] samples::Decoded next_read();
  // A good Reply to it, of its version.
  void answer(const samples::Decoded& call);
  void send(const rpcrdma::Header& header, const Bytes& payload = {}) { peer.send(samples::encode(header, payload)); }
  // What the victim does about the bad Reply to `call`, which is followed by a good one: the next Call proves that it
  // goes on.
  [[nodiscard]] Reaction verdict(const samples::Decoded& call);

 private:
  template <class Wanted>
  [[nodiscard]] samples::Decoded next(Wanted wanted);
};

// A server without fault, which always has a Call to answer.
class HonestServer {
 public:
  // Waits for the victim and for its first Call.
  explicit HonestServer(Target& target);
  // Answers two Calls, each with the next on its heels: then "ignore", as for whoever is served on.
  [[nodiscard]] Reaction serve();

 private:
  RpcServer server_;
  samples::Decoded call_;
};

}  // namespace iwarp::hostile
