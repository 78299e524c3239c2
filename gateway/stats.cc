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

template <std::size_t N>
void add_to(std::array<std::uint64_t, N>& to, const std::array<std::uint64_t, N>& more) {
  for (std::size_t i = 0; i < N; ++i) to[i] += more[i];
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

Stats::Messages& Stats::Messages::operator+=(const Messages& more) {
  received += more.received;
  forwarded += more.forwarded;
  add_to(dropped, more.dropped);
  return *this;
}

Stats::Snapshot& Stats::Snapshot::operator+=(const Snapshot& more) {
  // All members by name, so that a new one does not compile before it is added up.
  auto& [opened_sum, closed_sum, ended_sum, refused_sum, incidents_sum, given_up_sum, spoken_sum, draft_sum,
         messages_sum, tcp_sum, rdma_sum, early_wakes_sum, crc_terminates_sum, siw_crc_traps_sum, rpc_sum,
         registered_sum, granted_sum, used_sum] = *this;
  opened_sum += more.opened;
  closed_sum += more.closed;
  add_to(ended_sum, more.ended);
  add_to(refused_sum, more.refused);
  add_to(incidents_sum, more.incidents);
  add_to(given_up_sum, more.given_up);
  add_to(spoken_sum, more.spoken);
  add_to(draft_sum, more.draft_messages);
  for (std::size_t i = 0; i < kMessageKinds; ++i) messages_sum[i] += more.messages[i];
  add_to(tcp_sum, more.tcp_bytes);
  for (std::size_t i = 0; i < kRdmaOperations; ++i) add_to(rdma_sum[i], more.rdma_bytes[i]);
  early_wakes_sum += more.early_wakes;
  crc_terminates_sum += more.crc_terminates;
  siw_crc_traps_sum += more.siw_crc_traps;
  for (std::size_t i = 0; i < kRpcPrograms; ++i) rpc_sum[i] += more.rpc[i];
  registered_sum += more.registered_bytes;
  granted_sum += more.credits_granted;
  used_sum += more.credits_used;
  return *this;
}

Stats::Snapshot Stats::snapshot() const {
  // Ends are read before beginnings, so that a concurrent writer cannot make a difference negative.
  Snapshot s;
  s.closed = value(closed_);
  s.opened = value(opened_);
  s.early_wakes = value(early_wakes_);
  s.siw_crc_traps = value(siw_crc_traps_);
  s.crc_terminates = value(crc_terminates_);
  s.rpc = rpc_.snapshot();
  copy(ended_, s.ended);
  copy(refused_, s.refused);
  copy(incidents_, s.incidents);
  copy(given_up_, s.given_up);
  copy(spoken_, s.spoken);
  copy(draft_messages_, s.draft_messages);
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
  nlohmann::json ended = nlohmann::json::object();
  for (std::size_t i = 0; i < kEnds; ++i) {
    if (s.ended[i] > 0) ended[name(static_cast<Errc>(i))] = s.ended[i];
  }
  nlohmann::json programs = nlohmann::json::object();
  for (std::size_t i = 0; i < kRpcPrograms; ++i) {
    const RpcStats::Program& p = s.rpc[i];
    programs[name(static_cast<RpcProgram>(i))] = {{"calls", p.calls},
                                                  {"replies", p.replies()},
                                                  {"failed", p.failed},
                                                  {"unanswered", p.unanswered},
                                                  {"outstanding", p.outstanding()},
                                                  {"call_bytes", p.call_bytes},
                                                  {"reply_bytes", p.reply_bytes},
                                                  {"read_bytes", p.read_bytes},
                                                  {"write_bytes", p.write_bytes},
                                                  {"latency_ns", p.latency_ns}};
  }
  out = {{"connections",
          {{"opened", s.opened},
           {"closed", s.closed},
           {"active", s.active()},
           {"ended", std::move(ended)},
           {"refused", by_name<RefuseReason>(s.refused)},
           {"given_up", by_name<EndReason>(s.given_up)},
           {"by_version", by_name<Spoken>(s.spoken)}}},
         {"incidents", by_name<Incident>(s.incidents)},
         {"draft_2005_messages", by_name<DraftMessage>(s.draft_messages)},
         {"messages", std::move(messages)},
         {"tcp_bytes", ways(s.tcp_bytes)},
         {"rdma_bytes", std::move(rdma_bytes)},
         {"early_wakes", s.early_wakes},
         {"crc_terminates", s.crc_terminates},
         {"siw_crc_traps", s.siw_crc_traps},
         {"programs", std::move(programs)},
         {"live",
          {{"registered_bytes", s.registered_bytes},
           {"credits_granted", s.credits_granted},
           {"credits_used", s.credits_used}}}};
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
    case DropReason::kAuthTls:
      return "auth_tls";
  }
  return "?";
}

const char* name(RefuseReason why) {
  switch (why) {
    case RefuseReason::kNotAllowed:
      return "not_allowed";
    case RefuseReason::kInsecurePort:
      return "insecure_port";
    case RefuseReason::kNoReservedPort:
      return "no_reserved_port";
    case RefuseReason::kBackendUnreachable:
      return "backend_unreachable";
    case RefuseReason::kHandshakeFailed:
      return "handshake_failed";
    case RefuseReason::kLimit:
      return "limit";
  }
  return "?";
}

const char* name(Incident what) {
  switch (what) {
    case Incident::kErrChunkSent:
      return "err_chunk_sent";
    case Incident::kReplyTooLong:
      return "reply_too_long";
    case Incident::kErrVersSent:
      return "err_vers_sent";
    case Incident::kGarbageArgsSent:
      return "garbage_args_sent";
    case Incident::kUnusableMessage:
      return "unusable_message";
    case Incident::kErrChunkReceived:
      return "err_chunk_received";
    case Incident::kErrVersReceived:
      return "err_vers_received";
    case Incident::kBadReply:
      return "bad_reply";
    case Incident::kCannotExpose:
      return "cannot_expose";
    case Incident::kBackwardTimeout:
      return "backward_timeout";
    case Incident::kBackwardRefused:
      return "backward_refused";
    case Incident::kTlsDenied:
      return "auth_tls_denied";
    case Incident::kLayoutsHidden:
      return "layouts_hidden";
    case Incident::kHighPort:
      return "high_port";
    case Incident::kLargerReplyChunk:
      return "larger_reply_chunk";
    case Incident::kVersionLowered:
      return "version_lowered";
    case Incident::kConfigRefused:
      return "config_refused";
    case Incident::kInvalOptionSent:
      return "inval_option_sent";
    case Incident::kReplyNotDone:
      return "reply_not_done";
  }
  return "?";
}

const char* name(EndReason why) {
  switch (why) {
    case EndReason::kLostCall:
      return "lost_call";
    case EndReason::kNoCredit:
      return "no_credit";
    case EndReason::kMalformedReply:
      return "malformed_reply";
    case EndReason::kHalfRecord:
      return "half_record";
    case EndReason::kUnansweredRead:
      return "unanswered_read";
    case EndReason::kUnreadReply:
      return "unread_reply";
    case EndReason::kClientLeft:
      return "client_left";
    case EndReason::kNoVersion:
      return "no_version";
  }
  return "?";
}

const char* name(Spoken what) {
  switch (what) {
    case Spoken::kVersion1:
      return "1";
    case Spoken::kVersion2:
      return "2";
    case Spoken::kDraft2005:
      return "2005";
  }
  return "?";
}

const char* name(DraftMessage what) {
  switch (what) {
    case DraftMessage::kConfigRdma:
      return "config_rdma";
    case DraftMessage::kPaddedCall:
      return "padded_call";
    case DraftMessage::kPaddedReply:
      return "padded_reply";
    case DraftMessage::kReplyInReadChunk:
      return "reply_in_read_chunk";
    case DraftMessage::kDone:
      return "done";
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
