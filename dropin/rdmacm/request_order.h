// The order of the events of one listener. A device tells that a connection is established before it tells of the
// next one that its peer asks for then, and programs rely on it (libfabric's fi_multi_ep): they take the next event of
// the channel for the one they wait for. Here the two come from different TCP connections, each read when its turn is.
// So the request of a peer waits while one that this peer made before is being accepted, for the time that the peer's
// RTR message takes; not for long, since that may never come. Of several that wait one is told of at a time, each when
// the one before it is decided: programs that keep one request only (rping) get to it.
//
// Guarded by cm_mutex(), whose holder also keeps what is given back, to let it go without the lock.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>

#include "dropin/rdmacm/event_channel.h"

namespace iwarp::dropin::rdmacm {

class RequestOrder {
 public:
  using Address = boost::asio::ip::address;
  using TimePoint = std::chrono::steady_clock::time_point;
  using Events = std::deque<std::unique_ptr<Event>>;

  // How long a request waits at most.
  static constexpr std::chrono::milliseconds kLimit{250};

  // A request of `peer` is being accepted from now on, until told() is called for it once.
  void accepting(const Address& peer);
  // Whether the next request of `peer` has to wait: one is being accepted, or an earlier one waits.
  [[nodiscard]] bool must_wait(const Address& peer) const;
  // A request that has to wait. Strong guarantee.
  void keep(const Address& peer, std::unique_ptr<Event> request, TimePoint now);
  // How an accept ended has been told, or a request is not to be accepted: what may be told of now, one at most.
  [[nodiscard]] Events told(const Address& peer);
  [[nodiscard]] Events passed_over(const Address& peer) { return next(peer); }
  // Those that have waited for kLimit.
  [[nodiscard]] Events overdue(TimePoint now);
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  // All: the listener goes.
  [[nodiscard]] Events take_all();

 private:
  struct Waiting {
    Address peer;
    std::unique_ptr<Event> request;
    TimePoint since;
  };
  [[nodiscard]] Events next(const Address& peer);
  template <class Wanted>
  [[nodiscard]] Events take(const Wanted& wanted);

  std::map<Address, unsigned> accepting_;
  std::deque<Waiting> waiting_;
};

}  // namespace iwarp::dropin::rdmacm
