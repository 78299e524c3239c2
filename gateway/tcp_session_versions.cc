// TcpSession: which version of RPC-over-RDMA its server speaks, and what is counted of that.
#include <spdlog/spdlog.h>

#include "iwarp/gateway/tcp_session.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// With the first Reply.
void TcpSession::tell_version() {
  version_told_ = true;
  if (options_.draft_2005.enabled) return tell_configuration();
  const std::uint32_t version = requester_->versions().version();
  stats_.connection_speaks(version == rpcrdma::kVersion2 ? Spoken::kVersion2 : Spoken::kVersion1);
  if (version < requester_options_.highest_version) stats_.incident(Incident::kVersionLowered);
  if (options_.rpcrdma_version == rpcrdma::kVersion1) return;  // nothing was asked
  log_.info(LogKind::kEstablished,
            fmt::format("version of RPC-over-RDMA peer={} tcp_peer={} rpcrdma={}", cm::to_string(connection_->remote()),
                        cm::to_string(tcp_->remote()), version),
            Clock::now());
}

void TcpSession::tell_configuration() {
  const rpcrdma::ConfigClient& config = requester_->configuration();
  const rpcrdma::ConfigTerms& terms = config.terms();
  const bool configured = config.state() == rpcrdma::ConfigClient::State::kConfigured;
  stats_.connection_speaks(configured ? Spoken::kDraft2005 : Spoken::kVersion1);
  if (!configured) stats_.incident(Incident::kConfigRefused);
  log_.info(LogKind::kEstablished,
            fmt::format("draft of 2005 peer={} tcp_peer={} config_rdma={}{}", cm::to_string(connection_->remote()),
                        cm::to_string(tcp_->remote()), configured ? "configured" : "refused",
                        configured ? fmt::format(" call={} reply={} reads={} align={}", terms.call_bytes,
                                                 terms.reply_bytes, terms.reads, terms.align)
                                   : ""),
            Clock::now());
}

void TcpSession::remember_version() {
  using End = VersionMemory::End;
  const TimePoint now = Clock::now();
  // A client that leaves before the server could answer says nothing about it.
  const End how = !server_ended_ ? End::kOurs : question_.expired(now) ? End::kUnanswered : End::kLost;
  // req: V2-5.2-3 V2-5.2-4
  const bool lowered = versions_->learn(server_, requester_->versions(), how, begun_, now);
  if (lowered && !version_told_) stats_.incident(Incident::kVersionLowered);  // no Reply has come
}

// What the Requester has sent and taken by itself.
void TcpSession::note_messages() {
  const rpcrdma::Requester::Stats& now = requester_->stats();
  const auto since = [&](std::uint64_t rpcrdma::Requester::Stats::*what) { return now.*what - noted_.*what; };
  using S = rpcrdma::Requester::Stats;
  const auto options = since(&S::inval_option_sent);
  const auto padded = since(&S::calls_padded), padded_replies = since(&S::replies_padded);
  const auto by_read = since(&S::replies_in_read_chunk), dones = since(&S::dones_sent);
  const bool asked = requester_->configuration().state() != rpcrdma::ConfigClient::State::kUnasked;
  if (asked && !configuration_noted_) stats_.draft_messages(DraftMessage::kConfigRdma, 1);
  configuration_noted_ = asked;
  if (options + padded + padded_replies + by_read + dones == 0) return;
  noted_ = now;
  stats_.incident(Incident::kInvalOptionSent, options);
  stats_.draft_messages(DraftMessage::kPaddedCall, padded);
  stats_.draft_messages(DraftMessage::kPaddedReply, padded_replies);
  stats_.draft_messages(DraftMessage::kReplyInReadChunk, by_read);
  stats_.draft_messages(DraftMessage::kDone, dones);
}

}  // namespace iwarp::gateway
