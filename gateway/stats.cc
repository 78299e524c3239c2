#include "iwarp/gateway/stats.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace iwarp::gateway {
namespace {

std::uint64_t value(const std::atomic<std::uint64_t>& counter) {
  return counter.load(std::memory_order_acquire);
}

template <std::size_t N>
void copy(const std::array<std::atomic<std::uint64_t>, N>& from, std::array<std::uint64_t, N>& to) {
  for (std::size_t i = 0; i < N; ++i) to[i] = value(from[i]);
}

// {name of the i-th enumerator: counts[i]}
template <class Enum, std::size_t N>
nlohmann::json by_name(const std::array<std::uint64_t, N>& counts) {
  nlohmann::json out = nlohmann::json::object();
  for (std::size_t i = 0; i < N; ++i) out[name(static_cast<Enum>(i))] = counts[i];
  return out;
}

nlohmann::json ways(const std::array<std::uint64_t, kWays>& bytes) {
  return {{"in", bytes[0]}, {"out", bytes[1]}};
}

}  // namespace

std::uint64_t Stats::Messages::dropped_total() const {
  return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
}

std::uint64_t Stats::Messages::pending() const {
  const std::uint64_t done = forwarded + dropped_total();
  return received > done ? received - done : 0;
}

Stats::Snapshot Stats::snapshot() const {
  // Ends are read before beginnings, so that a concurrent writer cannot make a difference negative.
  Snapshot s;
  s.closed = value(closed_);
  s.opened = value(opened_);
  copy(refused_, s.refused);
  for (std::size_t i = 0; i < kMessageKinds; ++i) {
    copy(messages_[i].dropped, s.messages[i].dropped);
    s.messages[i].forwarded = value(messages_[i].forwarded);
    s.messages[i].received = value(messages_[i].received);
  }
  copy(tcp_bytes_, s.tcp_bytes);
  for (std::size_t i = 0; i < kRdmaOperations; ++i) copy(rdma_bytes_[i], s.rdma_bytes[i]);
  return s;
}

void to_json(nlohmann::json& out, const Stats::Snapshot& s) {
  nlohmann::json messages = nlohmann::json::object();
  for (std::size_t i = 0; i < kMessageKinds; ++i) {
    const Stats::Messages& m = s.messages[i];
    messages[name(static_cast<MessageKind>(i))] = {{"received", m.received},
                                                   {"forwarded", m.forwarded},
                                                   {"pending", m.pending()},
                                                   {"dropped", m.dropped_total()},
                                                   {"dropped_by_reason", by_name<DropReason>(m.dropped)}};
  }
  nlohmann::json rdma_bytes = nlohmann::json::object();
  for (std::size_t i = 0; i < kRdmaOperations; ++i) {
    rdma_bytes[name(static_cast<RdmaOperation>(i))] = ways(s.rdma_bytes[i]);
  }
  out = {{"connections",
          {{"opened", s.opened},
           {"closed", s.closed},
           {"active", s.active()},
           {"refused", by_name<RefuseReason>(s.refused)}}},
         {"messages", std::move(messages)},
         {"tcp_bytes", ways(s.tcp_bytes)},
         {"rdma_bytes", std::move(rdma_bytes)}};
}

const char* name(MessageKind kind) {
  switch (kind) {
    case MessageKind::kCall:
      return "call";
    case MessageKind::kReply:
      return "reply";
    case MessageKind::kBackwardCall:
      return "backward_call";
    case MessageKind::kBackwardReply:
      return "backward_reply";
  }
  return "?";
}

const char* name(DropReason why) {
  switch (why) {
    case DropReason::kDuplicateXid:
      return "duplicate_xid";
    case DropReason::kUnknownXid:
      return "unknown_xid";
    case DropReason::kMalformed:
      return "malformed";
    case DropReason::kTooLong:
      return "too_long";
    case DropReason::kLimit:
      return "limit";
    case DropReason::kConnectionClosed:
      return "connection_closed";
  }
  return "?";
}

const char* name(RefuseReason why) {
  switch (why) {
    case RefuseReason::kNotAllowed:
      return "not_allowed";
    case RefuseReason::kBackendUnreachable:
      return "backend_unreachable";
    case RefuseReason::kHandshakeFailed:
      return "handshake_failed";
    case RefuseReason::kLimit:
      return "limit";
  }
  return "?";
}

const char* name(RdmaOperation operation) {
  switch (operation) {
    case RdmaOperation::kSend:
      return "send";
    case RdmaOperation::kWrite:
      return "write";
    case RdmaOperation::kRead:
      return "read";
  }
  return "?";
}

}  // namespace iwarp::gateway
