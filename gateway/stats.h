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
};
inline constexpr std::size_t kDropReasons = 6;

// Why a connection of a client did not come about.
enum class RefuseReason : std::uint8_t { kNotAllowed, kBackendUnreachable, kHandshakeFailed, kLimit };
inline constexpr std::size_t kRefuseReasons = 4;

enum class RdmaOperation : std::uint8_t { kSend, kWrite, kRead };
inline constexpr std::size_t kRdmaOperations = 3;

// As the gateway sees it: kIn is received from the network, kOut is sent to it.
enum class Way : std::uint8_t { kIn, kOut };
inline constexpr std::size_t kWays = 2;

class Stats {
 public:
  void connection_opened() { add(opened_); }
  void connection_closed() { add(closed_); }
  void connection_refused(RefuseReason why) { add(refused_[index(why)]); }

  // Each received message is reported once with received() and later once with either forwarded() or dropped().
  void received(MessageKind kind) { add(messages_[index(kind)].received); }
  void forwarded(MessageKind kind) { add(messages_[index(kind)].forwarded); }
  void dropped(MessageKind kind, DropReason why) { add(messages_[index(kind)].dropped[index(why)]); }

  // Bytes on the TCP side, record marks included.
  void tcp_bytes(Way way, std::uint64_t n) { add(tcp_bytes_[index(way)], n); }
  // Payload bytes of RDMA operations. kRead counts Read Responses: kIn for our own Reads, kOut for those of the peer.
  void rdma_bytes(RdmaOperation operation, Way way, std::uint64_t n) {
    add(rdma_bytes_[index(operation)][index(way)], n);
  }

  struct Messages {
    std::uint64_t received = 0;
    std::uint64_t forwarded = 0;
    std::array<std::uint64_t, kDropReasons> dropped{};

    [[nodiscard]] std::uint64_t dropped_total() const;
    // Received and not yet forwarded or dropped.
    [[nodiscard]] std::uint64_t pending() const;
    friend bool operator==(const Messages&, const Messages&) = default;
  };
  // Plain values, for reading and for adding up.
  struct Snapshot {
    std::uint64_t opened = 0;
    std::uint64_t closed = 0;
    std::array<std::uint64_t, kRefuseReasons> refused{};
    std::array<Messages, kMessageKinds> messages{};
    std::array<std::uint64_t, kWays> tcp_bytes{};
    std::array<std::array<std::uint64_t, kWays>, kRdmaOperations> rdma_bytes{};

    [[nodiscard]] std::uint64_t active() const { return opened > closed ? opened - closed : 0; }
    [[nodiscard]] const Messages& of(MessageKind kind) const { return messages[static_cast<std::size_t>(kind)]; }
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
  std::array<Counter, kRefuseReasons> refused_{};
  std::array<MessageCounters, kMessageKinds> messages_{};
  std::array<Counter, kWays> tcp_bytes_{};
  std::array<std::array<Counter, kWays>, kRdmaOperations> rdma_bytes_{};
};

// {"connections": {"opened", "closed", "active", "refused": {reason: n}},
//  "messages": {kind: {"received", "forwarded", "pending", "dropped", "dropped_by_reason": {reason: n}}},
//  "tcp_bytes": {"in", "out"}, "rdma_bytes": {operation: {"in", "out"}}}; every key is always there.
void to_json(nlohmann::json& out, const Stats::Snapshot& snapshot);

[[nodiscard]] const char* name(MessageKind kind);
[[nodiscard]] const char* name(DropReason why);
[[nodiscard]] const char* name(RefuseReason why);
[[nodiscard]] const char* name(RdmaOperation operation);

}  // namespace iwarp::gateway
