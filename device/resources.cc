#include "iwarp/device/resources.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "iwarp/device/failure.h"

namespace iwarp::device {
namespace {

// What the device has, where it says so.
std::size_t at_most(std::size_t wanted, int of_device) {
  return of_device > 0 ? std::min(wanted, static_cast<std::size_t>(of_device)) : wanted;
}

}  // namespace

Result<std::shared_ptr<Resources>> Resources::make(std::shared_ptr<Device> device, CmId id, QueueDepths wanted) {
  if (device->gone()) return make_error(Errc::kSystem, "the RDMA device is gone");
  std::shared_ptr<Resources> out(new Resources(std::move(device)));
  out->id_ = std::move(id);
  const VerbsTable& verbs = out->verbs();
  const ibv_device_attr& has = out->device_->attributes();
  out->depths_ = {at_most(wanted.sends, has.max_qp_wr), at_most(wanted.receives, has.max_qp_wr),
                  at_most(wanted.sges, has.max_sge)};
  ibv_context* const context = out->device_->context();
  if (out->pd_ = verbs.alloc_pd(context); out->pd_ == nullptr)
    return failure_of(errno, "no protection domain is to be had");
  if (out->channel_ = verbs.create_comp_channel(context); out->channel_ == nullptr)
    return failure_of(errno, "no completion channel is to be had");
  if (!set_nonblocking(out->channel_->fd)) return failure_of(errno, "the completion channel blocks");
  const auto entries = static_cast<int>(at_most(out->depths_.sends + out->depths_.receives, has.max_cqe));
  if (out->cq_ = verbs.create_cq(context, entries, nullptr, out->channel_, 0); out->cq_ == nullptr)
    return failure_of(errno, "no completion queue is to be had");
  return out;
}

Resources::~Resources() {
  destroy_queue_pair();
  const VerbsTable& v = verbs();
  if (cq_ != nullptr) (void)v.destroy_cq(cq_);
  if (channel_ != nullptr) (void)v.destroy_comp_channel(channel_);
  if (pd_ != nullptr) (void)v.dealloc_pd(pd_);
}

Result<void> Resources::make_queue_pair() {
  if (id_.get()->verbs != device_->context())
    return make_error(Errc::kInvalidArgument, "the way to that address is not over this RDMA device");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = static_cast<std::uint32_t>(depths_.sends);
  wanted.cap.max_recv_wr = static_cast<std::uint32_t>(depths_.receives);
  wanted.cap.max_send_sge = static_cast<std::uint32_t>(depths_.sges);
  wanted.cap.max_recv_sge = 1;
  if (verbs().create_qp(id_.get(), pd_, &wanted) != 0) return failure_of(errno, "no queue pair is to be had");
  qp_ = id_.get()->qp;
  return {};
}

void Resources::destroy_queue_pair() {
  if (std::exchange(qp_, nullptr) != nullptr) verbs().destroy_qp(id_.get());
}

void Resources::destroy_id() {
  destroy_queue_pair();
  id_.reset();
}

}  // namespace iwarp::device
