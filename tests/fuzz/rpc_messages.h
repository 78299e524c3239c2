// What a script sends in the name of an RPC-over-RDMA peer: transport headers with fuzzed chunk lists in front of RPC
// messages that were good once.
#pragma once

#include "tests/fuzz/check.h"
#include "tests/rpcrdma/fake_endpoint.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::fuzz {

using namespace rpcrdma::test;

// Memory of the peer that its chunks may name, and the sizes that make the interesting cases.
class PeerMemory {
 public:
  explicit PeerMemory(FakeEndpoint& peer);

  // A segment inside one of the regions, at its bounds or beyond.
  [[nodiscard]] rpcrdma::Segment segment(Script& in, bool for_reading) const;
  // All of it that may be read begins with these octets.
  void fill_read_memory(ConstBytes content);
  // The first octets of the longest such.
  [[nodiscard]] rpcrdma::Segment to_read(std::size_t octets) const;

 private:
  std::vector<Exposed> read_, write_;
};

// An RPC message from a list of samples, some octets of it changed and perhaps cut.
[[nodiscard]] Bytes rpc_message(Script& in, std::uint32_t xid, rpcrdma::RpcDirection direction);

// A header with chunk lists of the fuzzer's choice.
[[nodiscard]] rpcrdma::Header made_header(Script& in, std::uint32_t xid, const PeerMemory& memory);

// Header and message as they go into one Send; those of an RDMA_MSGP padded as it says, where that is possible.
[[nodiscard]] Bytes encoded(const rpcrdma::Header& header, const Bytes& rpc);

// Delivers a message if the endpoint has a Receive for it; a connection ends where a real one would.
void arrive(FakeEndpoint& at, const Bytes& message, std::optional<Stag> invalidated = std::nullopt);

// Everything sent must be a header that parses, says no version above `highest`, and is none of the draft of 2005
// without `draft_2005`.
void check_inbox(FakeEndpoint& peer, std::uint32_t highest, bool draft_2005);

// Whether such a message is a Call of the end under test: its chunks are that end's own. Those of a Reply are the
// peer's, given back, and may be anything.
[[nodiscard]] bool is_call(const rpcrdma::ParsedHeader& parsed, ConstBytes message);

// What the checks read, whichever version it is.
inline constexpr rpcrdma::Limits kAnyHeader{1000, 1000, 1000, {.version_2 = true, .draft_2005 = true}};

// The two ends under test; each runs a script to its end.
void run_responder(Script script);
void run_requester(Script script);

}  // namespace iwarp::fuzz
