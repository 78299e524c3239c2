// What one connection has of a device: id, protection domain, completion queue and queue pair, freed in the right
// order. Every connection has a protection domain of its own (RFC 5042 s6.1.1). Memory regions are the endpoint's, and
// go before. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "iwarp/base/result.h"
#include "iwarp/device/cm_id.h"
#include "iwarp/device/device.h"

namespace iwarp::device {

// Room in the queues; lowered to what the device has.
struct QueueDepths {
  std::size_t sends = 128;
  std::size_t receives = 256;
  std::size_t sges = 8;  // of a Send
};

class Resources {
 public:
  // All but the queue pair. Errors: kResource, kSystem.
  [[nodiscard]] static Result<std::shared_ptr<Resources>> make(std::shared_ptr<Device> device, CmId id,
                                                               QueueDepths wanted);
  ~Resources();
  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;

  // On the id, which has a device by now. kInvalidArgument: another one.
  [[nodiscard]] Result<void> make_queue_pair();
  // Nothing reaches memory through it any more when this returns. What had completed stays in the completion queue on
  // some devices only: poll before.
  void destroy_queue_pair();
  // Tells the peer, where it still listens, and gives up the event channel.
  void destroy_id();

  [[nodiscard]] const VerbsTable& verbs() const { return device_->verbs(); }
  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] CmId& id() { return id_; }
  [[nodiscard]] ibv_pd* pd() const { return pd_; }
  [[nodiscard]] ibv_cq* cq() const { return cq_; }
  [[nodiscard]] ibv_comp_channel* channel() const { return channel_; }
  // Null: there is none.
  [[nodiscard]] ibv_qp* qp() const { return qp_; }
  [[nodiscard]] const QueueDepths& depths() const { return depths_; }

 private:
  explicit Resources(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::shared_ptr<Device> device_;
  CmId id_;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  QueueDepths depths_;
};

}  // namespace iwarp::device
