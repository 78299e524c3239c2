// Counters of the gateway, for --stats and for each connection's log line. They add up: for every kind of message
// received == forwarded + dropped (over all reasons) + pending, and opened == closed + active, so that nothing can be
// lost uncounted. Thread-safe: any number of writers, each counter exact; a snapshot taken while they run may be a
// message apart.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "iwarp/base/error.h"
#include "iwarp/gateway/rpc_stats.h"

namespace iwarp::gateway {

// What travels. Backward messages are those of the NFSv4.1 back channel (RFC 8167): server to client and its answers.
enum class MessageKind : std::uint8_t { kCall, kReply, kBackwardCall, kBackwardReply };
inline constexpr std::size_t kMessageKinds = 4;

enum class DropReason : std::uint8_t {
  kDuplicateXid,      // Call whose xid is outstanding: a retransmission, the first one will be answered
  kUnknownXid,        // Reply to no outstanding Call
  kMalformed,         // no RPC message, or a header that cannot be decoded
  kTooLong,           // does not fit the largest buffer, or what the receiver offered for it
  kLimit,             // enough are waiting already
  kConnectionClosed,  // its connection ended before it could be forwarded
  kAuthTls,           // Call with AUTH_TLS: the gateway denies it by itself
};
inline constexpr std::size_t kDropReasons = 7;

// Why a connection of a client did not come about.
enum class RefuseReason : std::uint8_t {
  kNotAllowed,          // its address is not in --allow
  kInsecurePort,        // its port is above 1023, without --insecure-ports
  kNoReservedPort,      // --reserved-port require, and none is to be had
  kBackendUnreachable,  // the server cannot be reached
  kHandshakeFailed,     // MPA startup failed
  kLimit,               // enough are served already, no memory, or shutting down
};
inline constexpr std::size_t kRefuseReasons = 6;

// What went wrong with a message, or was not as asked for, besides messages dropped.
enum class Incident : std::uint8_t {
  kErrChunkSent,      // ERR_CHUNK to a client, for a Call or in place of its Reply
  kReplyTooLong,      // of these: the Reply did not fit what its Call offered
  kErrVersSent,       // ERR_VERS to a client
  kGarbageArgsSent,   // GARBAGE_ARGS to a client: chunks that contradict their Call
  kUnusableMessage,   // from a client, and no answer is due
  kErrChunkReceived,  // the server's ERR_CHUNK: its client got SYSTEM_ERR
  kErrVersReceived,   // the server's ERR_VERS: likewise
  kBadReply,          // the server's Reply does not match its chunk: likewise
  kCannotExpose,      // no memory could be exposed for a Call: likewise
  kBackwardTimeout,   // a backward Call went unanswered: the server got SYSTEM_ERR
  kBackwardRefused,   // a backward Call or Reply that the other side cannot take: likewise
  kTlsDenied,         // a Call with AUTH_TLS, denied
  kLayoutsHidden,     // an EXCHANGE_ID whose pNFS flags were cleared
  kHighPort,          // a connection to the server from a port above 1023, where a reserved one was preferred
  kLargerReplyChunk,  // a Call whose Reply came when it was sent once more, with a larger Reply chunk
  kVersionLowered,    // a server that was asked for version 2, and gets version 1: it said so, or did not survive it
  kConfigRefused,     // a server without CONFIG_RDMA of the draft of 2005
  kInvalOptionSent,   // RDMA_ERR_INVAL_OPTION to a peer of version 2, for an RDMA_OPTIONAL
  kReplyNotDone,      // a client did not say RDMA_DONE of a Reply in time
};
inline constexpr std::size_t kIncidents = 19;

// What a connection of RPC-over-RDMA speaks. It is known from the first Call of a client on, and from the first Reply
// of a server.
enum class Spoken : std::uint8_t {
  kVersion1,   // RFC 8166
  kVersion2,   // draft-cel-nfsv4-rpcrdma-version-two-00
  kDraft2005,  // version 1, configured by CONFIG_RDMA of draft-ietf-nfsv4-rpcrdma-01
};
inline constexpr std::size_t kSpoken = 3;

// Messages that only the draft of 2005 has: those of a client where the gateway is the server, and the other way round.
enum class DraftMessage : std::uint8_t {
  kConfigRdma,        // Calls of CONFIG_RDMA
  kPaddedCall,        // Calls as RDMA_MSGP
  kPaddedReply,       // Replies as RDMA_MSGP
  kReplyInReadChunk,  // Replies that the client reads, or their data
  kDone,              // RDMA_DONE of one of these
};
inline constexpr std::size_t kDraftMessages = 5;

// Why the gateway ended a connection that was up, and with it the one on its other side: the client reconnects and
// sends its Calls again.
enum class EndReason : std::uint8_t {
  kLostCall,        // the client repeats a Call whose Reply has been due for too long
  kNoCredit,        // every credit, or the memory that may be exposed, is held by Calls not answered for a long time
  kMalformedReply,  // the server sent what cannot be read: perhaps a Reply
  kHalfRecord,      // a record began and did not go on
  kUnansweredRead,  // the client does not answer an RDMA Read
  kUnreadReply,     // the client does not take what it is sent
  kClientLeft,      // the client ended its sending, and its last Calls were not answered
  kNoVersion,       // the server did not answer the question for version 2 of RPC-over-RDMA
};
inline constexpr std::size_t kEndReasons = 8;

enum class RdmaOperation : std::uint8_t { kSend, kWrite, kRead };
inline constexpr std::size_t kRdmaOperations = 3;

// As the gateway sees it: kIn is received from the network, kOut is sent to it.
enum class Way : std::uint8_t { kIn, kOut };
inline constexpr std::size_t kWays = 2;

inline constexpr std::size_t kEnds = static_cast<std::size_t>(Errc::kLast) + 1;

class Stats {
 public:
  void connection_opened() { add(opened_); }
  void connection_closed() { add(closed_); }
  // How the RDMA connection of a client that was served ended.
  void connection_ended(Errc reason) { add(ended_[index(reason)]); }
  void connection_refused(RefuseReason why) { add(refused_[index(why)]); }
  // Beside connection_closed().
  void connection_given_up(EndReason why) { add(given_up_[index(why)]); }

  // Each received message is reported once with received() and later once with either forwarded() or dropped().
  void received(MessageKind kind) { add(messages_[index(kind)].received); }
  void forwarded(MessageKind kind) { add(messages_[index(kind)].forwarded); }
  void dropped(MessageKind kind, DropReason why) { add(messages_[index(kind)].dropped[index(why)]); }

  void incident(Incident what, std::uint64_t n = 1) { add(incidents_[index(what)], n); }

  // Once for each connection, when it is known.
  void connection_speaks(Spoken what) { add(spoken_[index(what)]); }
  void draft_messages(DraftMessage what, std::uint64_t n) { add(draft_messages_[index(what)], n); }

  // A Call received before that is answered by the gateway: its Reply still has to be forwarded.
  void tls_denied() {
    incident(Incident::kTlsDenied);
    dropped(MessageKind::kCall, DropReason::kAuthTls);
    received(MessageKind::kReply);
  }

  // Bytes on the TCP side, record marks included.
  void tcp_bytes(Way way, std::uint64_t n) { add(tcp_bytes_[index(way)], n); }
  // Payload bytes of RDMA operations. kRead counts Read Responses: kIn for our own Reads, kOut for those of the peer.
  void rdma_bytes(RdmaOperation operation, Way way, std::uint64_t n) {
    add(rdma_bytes_[index(operation)][index(way)], n);
  }

  // Zero-length Writes that woke, or should have, an RPC-over-RDMA server that overlooked what came early.
  void early_wakes(std::uint64_t n) { add(early_wakes_, n); }

  // A connection that its RDMA peer ended with Terminate 2/0/2, and whether that is siw_crc_trap.h's pattern.
  void crc_terminate(bool siw_trap) {
    add(crc_terminates_);
    if (siw_trap) add(siw_crc_traps_);
  }

  [[nodiscard]] RpcStats& rpc() { return rpc_; }

  struct Messages {
    std::uint64_t received = 0;
    std::uint64_t forwarded = 0;
    std::array<std::uint64_t, kDropReasons> dropped{};

    [[nodiscard]] std::uint64_t dropped_total() const;
    // Received and not yet forwarded or dropped.
    [[nodiscard]] std::uint64_t pending() const;
    Messages& operator+=(const Messages& more);
    friend bool operator==(const Messages&, const Messages&) = default;
  };
  // Plain values, for reading and for adding up.
  struct Snapshot {
    std::uint64_t opened = 0;
    std::uint64_t closed = 0;
    std::array<std::uint64_t, kEnds> ended{};
    std::array<std::uint64_t, kRefuseReasons> refused{};
    std::array<std::uint64_t, kIncidents> incidents{};
    std::array<std::uint64_t, kEndReasons> given_up{};
    std::array<std::uint64_t, kSpoken> spoken{};
    std::array<std::uint64_t, kDraftMessages> draft_messages{};
    std::array<Messages, kMessageKinds> messages{};
    std::array<std::uint64_t, kWays> tcp_bytes{};
    std::array<std::array<std::uint64_t, kWays>, kRdmaOperations> rdma_bytes{};
    std::uint64_t early_wakes = 0;
    std::uint64_t crc_terminates = 0;
    std::uint64_t siw_crc_traps = 0;  // of these
    RpcStats::Snapshot rpc{};
    // Of the connections that live now.
    std::uint64_t registered_bytes = 0;  // memory that peers may reach or that waits for them
    std::uint64_t credits_granted = 0;   // RPCs that may be outstanding on RDMA connections
    std::uint64_t credits_used = 0;      // and those that are

    [[nodiscard]] std::uint64_t active() const { return opened > closed ? opened - closed : 0; }
    [[nodiscard]] const Messages& of(MessageKind kind) const { return messages[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] std::uint64_t of(RefuseReason why) const { return refused[static_cast<std::size_t>(why)]; }
    [[nodiscard]] std::uint64_t of(Incident what) const { return incidents[static_cast<std::size_t>(what)]; }
    [[nodiscard]] std::uint64_t of(Spoken what) const { return spoken[static_cast<std::size_t>(what)]; }
    [[nodiscard]] std::uint64_t of(DraftMessage what) const { return draft_messages[static_cast<std::size_t>(what)]; }
    Snapshot& operator+=(const Snapshot& more);
    friend bool operator==(const Snapshot&, const Snapshot&) = default;
  };
  [[nodiscard]] Snapshot snapshot() const;

 private:
  using Counter = std::atomic<std::uint64_t>;
  struct MessageCounters {
    Counter received{0};
    Counter forwarded{0};
    std::array<Counter, kDropReasons> dropped{};
  };

  template <class Enum>
  static constexpr std::size_t index(Enum e) {
    return static_cast<std::size_t>(e);
  }
  static void add(Counter& counter, std::uint64_t n = 1) { counter.fetch_add(n, std::memory_order_release); }

  Counter opened_{0};
  Counter closed_{0};
  std::array<Counter, kEnds> ended_{};
  std::array<Counter, kRefuseReasons> refused_{};
  std::array<Counter, kIncidents> incidents_{};
  std::array<Counter, kEndReasons> given_up_{};
  std::array<Counter, kSpoken> spoken_{};
  std::array<Counter, kDraftMessages> draft_messages_{};
  std::array<MessageCounters, kMessageKinds> messages_{};
  std::array<Counter, kWays> tcp_bytes_{};
  std::array<std::array<Counter, kWays>, kRdmaOperations> rdma_bytes_{};
  Counter early_wakes_{0}, crc_terminates_{0}, siw_crc_traps_{0};
  RpcStats rpc_;
};

// {"connections": {"opened", "closed", "active", "ended": {reason: n}, "refused": {reason: n},
//                  "given_up": {reason: n}, "by_version": {"1": n, "2": n, "2005": n}},
//  "incidents": {name: n}, "draft_2005_messages": {name: n},
//  "messages": {kind: {"received", "forwarded", "pending", "dropped", "dropped_by_reason": {reason: n}}},
//  "tcp_bytes": {"in", "out"}, "rdma_bytes": {operation: {"in", "out"}},
//  "early_wakes": n, "crc_terminates": n, "siw_crc_traps": n,
//  "programs": {program: {"calls", "replies", "failed", "unanswered", "outstanding", "call_bytes", "reply_bytes",
//                         "read_bytes", "write_bytes", "latency_ns"}},
//  "live": {"registered_bytes", "credits_granted", "credits_used"}}
// Every key is always there, but in "ended", which has the reasons that occurred.
void to_json(nlohmann::json& out, const Stats::Snapshot& snapshot);

[[nodiscard]] const char* name(MessageKind kind);
[[nodiscard]] const char* name(DropReason why);
[[nodiscard]] const char* name(RefuseReason why);
[[nodiscard]] const char* name(Incident what);
[[nodiscard]] const char* name(EndReason why);
[[nodiscard]] const char* name(Spoken what);  // "1", "2", "2005"
[[nodiscard]] const char* name(DraftMessage what);
[[nodiscard]] const char* name(RdmaOperation operation);

}  // namespace iwarp::gateway
