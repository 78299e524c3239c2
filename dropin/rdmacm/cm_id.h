// rdma_cm_id: what an application connects, listens and accepts with. An id whose creator named no event channel is
// synchronous: it has a channel of its own, and calls return when their event has come, which stays in id->event until
// the next call.
//
// Members of Id are guarded by cm_mutex(), but for those of the public struct that only the application's calls change.
#pragma once

#include <rdma/rdma_cma.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "dropin/rdmacm/event_channel.h"
#include "dropin/rdmacm/request_order.h"
#include "dropin/rdmacm/shown.h"
#include "dropin/verbs/agreement.h"
#include "dropin/verbs/interface.h"
#include "iwarp/cm/connect_request.h"
#include "iwarp/cm/connection.h"
#include "iwarp/cm/listener.h"

namespace iwarp::dropin::rdmacm {

// Reads that the other end may have under way here, and this end there.
struct Depths {
  std::uint16_t ird, ord;
};

// What the device admits, for those who ask for the most (RDMA_MAX_RESP_RES).
inline constexpr std::uint16_t kMostDepth = 128;

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  explicit operator bool() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

class Id : public std::enable_shared_from_this<Id> {
 public:
  enum class State : std::uint8_t {
    kIdle,
    kBound,
    kAddressResolved,
    kRouteResolved,
    kListening,
    kConnecting,
    kRequested,  // by a peer: the application has to decide
    kAccepting,
    kConnected,
    kOver,  // disconnected, rejected, or failed
  };

  Id(void* context, rdma_port_space space);
  ~Id();
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;

  [[nodiscard]] static Id& of(rdma_cm_id* id) { return Shown<rdma_cm_id, Id>::of(id); }
  [[nodiscard]] rdma_cm_id* shown() { return &shown_.c; }
  // The application's reference, until release().
  void keep() { kept_ = shared_from_this(); }
  void set_channel(std::shared_ptr<Channel> to, bool is_synchronous);

  // As rdma_destroy_id().
  [[nodiscard]] int release();
  // As rdma_migrate_id(). `to` null: synchronous from now on.
  [[nodiscard]] int migrate(std::shared_ptr<Channel> to);

  // Names the device in the public struct. -1, with errno: there is none.
  [[nodiscard]] int set_device();
  // Addresses of the public struct.
  void set_local(const boost::asio::ip::tcp::endpoint& local);
  void set_peer(const boost::asio::ip::tcp::endpoint& peer);
  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const;
  [[nodiscard]] boost::asio::ip::tcp::endpoint peer() const;

  // Puts an event into the channel, unless the id is being destroyed. Without the lock.
  void tell(rdma_cm_event_type type, int status = 0);
  void tell(std::unique_ptr<Event> event);
  // The same with the lock held: what is of no use comes back, to go without the lock.
  [[nodiscard]] std::unique_ptr<Event> push(std::unique_ptr<Event> event);
  // Likewise of several: what is of no use stays in `events`.
  void push(RequestOrder::Events& events);
  // Likewise, of a request that is not accepted: the listener that it came to, or null, tells of the next one.
  [[nodiscard]] RequestOrder::Events pass_over(Id* came_to) const;
  // Of a synchronous id: waits for the event of the call that has begun. -1, with errno, when that says so.
  [[nodiscard]] int complete();
  // Acknowledges the event that a synchronous id has kept.
  void forget_event();
  // With the lock held: wakes those who wait for acknowledgements.
  static void tell_acknowledged();

  std::shared_ptr<Channel> channel;
  bool synchronous = false;
  bool gone = false;         // being destroyed
  bool disconnects = false;  // by rdma_disconnect() of this end
  State state = State::kIdle;
  unsigned unacknowledged = 0;
  const verbs::ForkGuard process;

  Descriptor bound;  // keeps the port until somebody listens or connects
  bool bound_by_application = false;
  std::optional<bool> v6_only;              // RDMA_OPTION_ID_AFONLY
  std::optional<std::uint8_t> ack_timeout;  // RDMA_OPTION_ID_ACK_TIMEOUT: its queue pair tells it
  bool with_program_qp = false;             // connects one that rdma_create_qp() has not made
  std::unique_ptr<cm::Listener> listener;
  RequestOrder order;                // of one that listens
  std::weak_ptr<Id> requested_from;  // of a request: who listens
  std::shared_ptr<cm::ConnectRequest> request;
  std::shared_ptr<cm::Canceller> canceller;  // of what is being connected or accepted
  std::shared_ptr<cm::Connection> connection;
  Depths asked{};     // of a request: what the peer asks for, in this end's terms
  Agreement offered;  // likewise, in the trailer of its private data; empty: there was none

  // rdma_create_ep() of a passive id: what queue pairs of its requests are made with.
  std::optional<ibv_qp_init_attr> endpoint_attributes;
  ibv_pd* endpoint_pd = nullptr;

 private:
  Shown<rdma_cm_id, Id> shown_;
  std::shared_ptr<Id> kept_;
};

// The Protection Domain of ids whose application names none; null with errno. One for the process.
[[nodiscard]] ibv_pd* usual_pd();

}  // namespace iwarp::dropin::rdmacm
