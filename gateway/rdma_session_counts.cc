// RdmaSession: what is counted of its client, and of what the Responder does by itself.
#include <spdlog/spdlog.h>

#include "iwarp/gateway/rdma_session.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// With the first Call.
void RdmaSession::note_version() {
  version_noted_ = true;
  const bool two = responder_.client_version() == rpcrdma::kVersion2;
  stats_.connection_speaks(responder_.configured() ? Spoken::kDraft2005 : two ? Spoken::kVersion2 : Spoken::kVersion1);
}

// What only the draft of 2005 and version 2 have.
void RdmaSession::note_messages() {
  const rpcrdma::Responder::Stats& now = responder_.stats();
  const auto since = [&](std::uint64_t rpcrdma::Responder::Stats::*what) { return now.*what - noted_.*what; };
  using S = rpcrdma::Responder::Stats;
  const auto options = since(&S::inval_option_sent), configurations = since(&S::configurations);
  const auto padded = since(&S::calls_padded), padded_replies = since(&S::replies_padded);
  const auto by_read = since(&S::replies_in_read_chunk);
  const auto dones = since(&S::dones), not_done = since(&S::replies_not_done);
  if (options + configurations + padded + padded_replies + by_read + dones + not_done == 0) return;
  noted_ = now;
  stats_.incident(Incident::kInvalOptionSent, options);
  stats_.incident(Incident::kReplyNotDone, not_done);
  stats_.draft_messages(DraftMessage::kConfigRdma, configurations);
  stats_.draft_messages(DraftMessage::kPaddedCall, padded);
  stats_.draft_messages(DraftMessage::kPaddedReply, padded_replies);
  stats_.draft_messages(DraftMessage::kReplyInReadChunk, by_read);
  stats_.draft_messages(DraftMessage::kDone, dones);
}

// What the Responder answered or dropped by itself: counted, and told in one line however many there were.
void RdmaSession::note_refusals() {
  const rpcrdma::Responder::Stats& now = responder_.stats();
  const auto count = [&](std::uint64_t rpcrdma::Responder::Stats::*what, std::optional<DropReason> why,
                         MessageKind kind = MessageKind::kCall) {
    const std::uint64_t n = now.*what - refusals_seen_.*what;
    for (std::uint64_t i = 0; i < n && why; ++i) {
      stats_.received(kind);
      stats_.dropped(kind, *why);
    }
    return n;
  };
  using S = rpcrdma::Responder::Stats;
  const auto duplicates = count(&S::duplicate_xids, DropReason::kDuplicateXid);
  const auto dropped = count(&S::dropped_messages, DropReason::kMalformed);
  const auto late = count(&S::late_backward_replies, DropReason::kUnknownXid, MessageKind::kBackwardReply);
  const auto versions = count(&S::err_vers_sent, DropReason::kMalformed);
  const auto chunks = count(&S::err_chunk_sent, std::nullopt);         // to a Call, or to one whose Reply has no room
  const auto replies = count(&S::replies_as_err_chunk, std::nullopt);  // the latter
  const auto garbage = count(&S::garbage_args_sent, std::nullopt);
  if (duplicates + dropped + late + versions + chunks + garbage == 0) return;
  refusals_seen_ = now;
  stats_.incident(Incident::kErrVersSent, versions);
  stats_.incident(Incident::kErrChunkSent, chunks);
  stats_.incident(Incident::kReplyTooLong, replies);
  stats_.incident(Incident::kGarbageArgsSent, garbage);
  stats_.incident(Incident::kUnusableMessage, dropped);
  const auto client = cm::to_string(connection_->remote());
  if (duplicates + late > 0)
    log_.info(LogKind::kDropped,
              fmt::format("dropped peer={} duplicate_xids={} late_backward_replies={}", client, duplicates, late),
              Clock::now());
  if (dropped + versions + chunks + garbage == 0) return;
  log_.warn(LogKind::kUnusable,
            fmt::format("unusable messages peer={} err_vers={} err_chunk={} (of them for replies: {}) garbage_args={} "
                        "dropped={}",
                        client, versions, chunks, replies, garbage, dropped),
            Clock::now());
}

}  // namespace iwarp::gateway
