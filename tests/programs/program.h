// A program: what the applications of two hosts do with one or two connections between them, and how the network moves
// their octets. Data only: it says the same on every machine, and can be printed, shortened and run again.
//
// Queue pairs are numbered: 0 and 1 are joined, 2 and 3 are. The even ones are of host 0, the odd ones of host 1. Each
// has kRegions regions of memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/rdmap/work_request.h"

namespace iwarp::programs {

inline constexpr std::size_t kHosts = 2;
inline constexpr std::size_t kMostPairs = 2;
inline constexpr std::size_t kMostQps = kHosts * kMostPairs;
inline constexpr std::size_t kRegions = 6;  // of each queue pair

// What is particular about them.
inline constexpr std::size_t kPrivate = 0;    // no peer reaches it
inline constexpr std::size_t kExposed = 1;    // peers read and write it
inline constexpr std::size_t kBound = 2;      // likewise, by one stream
inline constexpr std::size_t kRevocable = 3;  // likewise, and the peer may invalidate it
inline constexpr std::size_t kRevocableToo = 4;
inline constexpr std::size_t kReadOnly = 5;  // nobody writes it

[[nodiscard]] constexpr std::size_t host_of(std::size_t qp) {
  return qp % kHosts;
}
[[nodiscard]] constexpr std::size_t pair_of(std::size_t qp) {
  return qp / kHosts;
}
[[nodiscard]] constexpr std::size_t peer_of(std::size_t qp) {
  return qp ^ 1;
}

// Of the queue pairs of one host.
struct HostSetup {
  bool shares = false;  // their Receives are those of a shared receive queue
  bool one_cq = false;  // one completion queue for both kinds
  bool eager = false;   // a post sends what TCP takes, in the same call
  bool direct_placement = true;
  bool early_wake = true;
  bool ask_markers = false;
  bool receive_wait = false;  // a message that finds no Receive waits for one, for ever
  bool rtr_send = false, rtr_write = true, rtr_read = true;
  std::uint16_t ird = 8, ord = 8;
  std::uint32_t sq_depth = 16, rq_depth = 16, srq_depth = 32, max_inline = 64;
  std::uint32_t emss = 1448, scratch = 65536;
  mpa::FpduPolicy fpdu = mpa::FpduPolicy::kEmss;
  std::uint8_t addressing = 0;  // bit 0: regions have a base TO of their own, bit 1: an IOVA of their own
};

struct Setup {
  std::size_t pairs = 1;
  std::size_t initiator = 0;  // host
  bool crc = true;
  bool peer_to_peer = true;
  std::uint8_t revision = 2;
  bool relaxed = false;  // IRDs are raised to what the peer wants (mpa::Policy::max_ird)
  bool rfc7306 = true;
  bool reset_keeps = false;           // a reset comes behind the octets under way; else instead of them
  std::uint32_t settle_cut = 0;       // as Step::cut, for Do::kSettle
  std::uint32_t region_bytes = 8192;  // of every region
  std::array<HostSetup, kHosts> hosts{};

  // The Reads and Atomics that a queue pair of `host` may have outstanding, by RFC 6581 s9.1; 0: it may post none.
  [[nodiscard]] std::uint16_t ord(std::size_t host) const;
};

inline constexpr std::size_t kSendOps = 10;  // operations there are
// Whether it writes to memory of the peer, as a Write.
[[nodiscard]] constexpr bool is_write(rdmap::SendOp op) {
  return op == rdmap::SendOp::kWrite || op == rdmap::SendOp::kWriteImmediate;
}
[[nodiscard]] constexpr bool has_immediate(rdmap::SendOp op) {
  return op == rdmap::SendOp::kImmediate || op == rdmap::SendOp::kWriteImmediate;
}
// Whether it takes a Receive of the peer.
[[nodiscard]] constexpr bool is_message(rdmap::SendOp op) {
  return op == rdmap::SendOp::kSend || op == rdmap::SendOp::kSendInvalidate || has_immediate(op);
}

// A piece of a region.
struct Piece {
  std::uint8_t region = 0;
  std::uint32_t offset = 0, length = 0;
};

enum class Do : std::uint8_t {
  kConnect,     // the pair of `qp`: the Request arrives and is accepted
  kReceive,     // posts a Receive of `pieces`, to the shared queue where there is one
  kPost,        // posts a request to the send queue
  kDrain,       // posts a mark to the send queue
  kInvalidate,  // the application revokes its region `region`
  kRereg,       // registers its region `region` anew. `amount`: key, 256: any
  kFill,        // the application writes new octets to pieces[0], from `seed`
  kMove,        // `amount` octets leave `qp` for TCP, and TCP delivers `more` to its peer, in reads of at most `cut`
  kPoll,        // `amount` completions at most, of the send queue of `qp`'s host, `more` != 0: of the receive queue
  kSettle,      // all octets move until nothing does any more, and everything is polled
  kTime,        // `amount` ms pass
  kEmss,        // `amount`: the segment size of TCP at `qp` from here on
  kArm,         // asks to be notified of the next completion in the queue that kPoll would poll; `solicited` as there
  kSrqLimit,    // sets the limit of the shared receive queue of `qp`'s host to `amount`
  kResize,      // another capacity, `amount`, for the queue that kPoll would poll
  kEvents,      // polls the asynchronous events of `qp`'s host
  kDisconnect,  // `qp` ends its connection in order
  kLeave,       // `qp` goes without a trace, and its connection ends in order behind the scenes
  kAbort,       // or abruptly. `more`: 1 with regard to a peer that was not heard, 2 by asking for the state kError
  kTrespass,    // posts a request that names a dead region of the peer, as kPost: the peer ends the connection
  kLose,        // TCP ends, at both ends. `amount`: 0 reset, 1 silence, 2 FIN
};
inline constexpr std::size_t kDos = 21;

struct Step {
  Do what = Do::kSettle;
  std::uint8_t qp = 0;

  // kPost.
  rdmap::SendOp op = rdmap::SendOp::kSend;
  std::vector<Piece> pieces{};  // of the regions of `qp`
  Piece remote{};               // of the regions of its peer; `length` is that of `pieces`
  std::uint8_t region = 0;      // kLocalInvalidate: of `qp`; kSendInvalidate: of the peer
  bool signaled = true, solicited = false, fence = false, inlined = false;
  bool with_next = false;  // posted in one call with the next step, if that is a kPost of the same queue pair
  std::uint64_t immediate = 0;
  rdmap::AtomicOperands atomic{};

  // The others.
  std::uint32_t amount = 0, more = 0;
  std::uint32_t cut = 0;  // octets of a read, at most; 0: what there is
  std::uint32_t seed = 0;

  // Octets of `pieces`.
  [[nodiscard]] std::uint32_t length() const;
};

struct Program {
  std::uint64_t seed = 0;
  Setup setup;
  std::vector<Step> steps;
};

// One line for each step, and some for the setup.
[[nodiscard]] std::string to_string(const Program& program);
[[nodiscard]] std::string to_string(const Step& step);
[[nodiscard]] const char* name(Do what);
[[nodiscard]] const char* name(rdmap::SendOp op);

// `n` octets that follow from `seed`.
[[nodiscard]] std::vector<std::byte> octets(std::uint64_t seed, std::size_t n);

}  // namespace iwarp::programs
