// An id of librdmacm with an event channel of its own, and the events of it. Owning. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"
#include "iwarp/device/verbs_table.h"

namespace iwarp::device {

// An event, copied: the library's was acknowledged before anybody looks at this, so that its id may be destroyed at any
// time.
struct CmEvent {
  rdma_cm_event_type type{};
  int status = 0;
  rdma_cm_id* id = nullptr;        // of a CONNECT_REQUEST: the new one, which nobody owns yet
  std::uint8_t peer_ord = 0;       // RDMA Reads that the peer wants to have outstanding (responder_resources)
  std::uint8_t peer_ird = 0;       // those that it admits (initiator_depth)
  std::uint8_t private_bytes = 0;  // of private_data
  std::array<std::byte, 255> private_data{};

  [[nodiscard]] ConstBytes octets() const { return {private_data.data(), private_bytes}; }
};

class CmId {
 public:
  CmId() = default;
  // A new id on a new channel.
  [[nodiscard]] static Result<CmId> make(const VerbsTable& verbs);
  // `id`, which came with a request, moved to a channel of its own. On failure it is rejected and destroyed.
  [[nodiscard]] static Result<CmId> take(const VerbsTable& verbs, rdma_cm_id* id);
  CmId(CmId&& other) noexcept { swap(other); }
  CmId& operator=(CmId&& other) noexcept {
    swap(other);
    return *this;
  }
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;
  // Its queue pair must be gone.
  ~CmId() { reset(); }
  void reset();

  [[nodiscard]] explicit operator bool() const { return id_ != nullptr; }
  [[nodiscard]] rdma_cm_id* get() const { return id_; }
  // To wait for events with; of the channel. It does not block.
  [[nodiscard]] int descriptor() const { return channel_->fd; }
  // The oldest event, acknowledged; nothing: there is none, or the channel has failed.
  [[nodiscard]] std::optional<CmEvent> next_event();

 private:
  void swap(CmId& other) noexcept {
    std::swap(verbs_, other.verbs_);
    std::swap(channel_, other.channel_);
    std::swap(id_, other.id_);
  }
  [[nodiscard]] static Result<CmId> with_channel(const VerbsTable& verbs);

  const VerbsTable* verbs_ = nullptr;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
};

}  // namespace iwarp::device
