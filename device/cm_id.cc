#include "iwarp/device/cm_id.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iwarp/device/failure.h"

namespace iwarp::device {

Result<CmId> CmId::with_channel(const VerbsTable& verbs) {
  CmId out;
  out.verbs_ = &verbs;
  out.channel_ = verbs.create_event_channel();
  if (out.channel_ == nullptr) return failure_of(errno, "no event channel is to be had");
  if (!set_nonblocking(out.channel_->fd)) return failure_of(errno, "the event channel blocks");
  return out;
}

Result<CmId> CmId::make(const VerbsTable& verbs) {
  auto out = with_channel(verbs);
  if (out && verbs.create_id(out->channel_, &out->id_, nullptr, RDMA_PS_TCP) != 0)
    return failure_of(errno, "no id of a connection is to be had");
  return out;
}

Result<CmId> CmId::take(const VerbsTable& verbs, rdma_cm_id* id) {
  auto out = with_channel(verbs);
  if (out && verbs.migrate_id(id, out->channel_) != 0)
    out = failure_of(errno, "the connection cannot have an event channel of its own");
  if (out) {
    out->id_ = id;
  } else {
    (void)verbs.reject(id, nullptr, 0);
    (void)verbs.destroy_id(id);
  }
  return out;
}

void CmId::reset() {
  // Events that nobody has taken go with the id.
  if (rdma_cm_id* const id = std::exchange(id_, nullptr)) (void)verbs_->destroy_id(id);
  if (rdma_event_channel* const channel = std::exchange(channel_, nullptr)) verbs_->destroy_event_channel(channel);
}

std::optional<CmEvent> CmId::next_event() {
  rdma_cm_event* event = nullptr;
  if (channel_ == nullptr || verbs_->get_cm_event(channel_, &event) != 0) return std::nullopt;
  CmEvent out;
  out.type = event->event;
  out.status = event->status;
  out.id = event->id;
  const rdma_conn_param& conn = event->param.conn;
  out.peer_ord = conn.responder_resources;
  out.peer_ird = conn.initiator_depth;
  if (conn.private_data != nullptr) {
    out.private_bytes = conn.private_data_len;
    std::memcpy(out.private_data.data(), conn.private_data, out.private_bytes);
  }
  (void)verbs_->ack_cm_event(event);
  return out;
}

}  // namespace iwarp::device
