// rdma_event_channel and rdma_cm_event. The descriptor of a channel is readable as long as events wait in it, and may
// be polled; rdma_get_cm_event() sleeps unless O_NONBLOCK is set on it, and is interrupted by signals as a read is.
//
// An event that the application has taken counts on its id (a CONNECT_REQUEST: on the id that listens) until it is
// acknowledged; rdma_destroy_id() waits for that. Events that nobody has taken go with their id.
//
// One lock, cm_mutex(), guards channels, events and ids. No call into the layers below is made with it, but for those
// that only leave word there.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "dropin/rdmacm/shown.h"
#include "dropin/verbs/sleep.h"
#include "iwarp/base/bytes.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::dropin::rdmacm {

class Id;

// Never destroyed: threads may run while the process ends.
[[nodiscard]] std::mutex& cm_mutex();

struct Event {
  // `listener`: of a CONNECT_REQUEST, whose new id is `subject`; else null. `status`: 0, or an errno value with a
  // minus.
  Event(rdma_cm_event_type type, std::shared_ptr<Id> subject, int status, std::shared_ptr<Id> listener = {});
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Copied; at most 255 octets.
  void set_private_data(ConstBytes octets);
  // The id that it counts on.
  [[nodiscard]] Id& counts_on() const { return listener ? *listener : *id; }

  Shown<rdma_cm_event, Event> shown;
  std::shared_ptr<Id> id;
  std::shared_ptr<Id> listener;
  std::vector<std::byte> private_data;  // of the peer
  const verbs::ForkGuard process;
};

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // Null, with errno: no descriptor.
  [[nodiscard]] static std::shared_ptr<Channel> make();
  explicit Channel(int descriptor);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Whether it is of this process, not of the one that has forked it.
  [[nodiscard]] bool alive() const { return process_.alive(); }
  [[nodiscard]] static Channel& of(rdma_event_channel* channel) {
    return Shown<rdma_event_channel, Channel>::of(channel);
  }
  [[nodiscard]] rdma_event_channel* shown() { return &shown_.c; }
  // The application's reference, from rdma_create_event_channel() to close().
  void keep() { kept_ = shared_from_this(); }
  // As rdma_destroy_event_channel(). A thread that is in get(), or comes late, sleeps there from now on, as one does in
  // the system call of a device. Programs destroy a channel while a thread of theirs is on its way into the next call.
  void close();

  // The oldest event; as rdma_get_cm_event(). Without the lock. A thread may be cancelled while it sleeps here, so no
  // caller is noexcept on its way.
  [[nodiscard]] int get(rdma_cm_event** event);

  // --- With the lock held.
  // Gives the event back where it is of no use any more: it is to go without the lock.
  [[nodiscard]] std::unique_ptr<Event> push(std::unique_ptr<Event> event);
  // Those that count on this id or name it.
  [[nodiscard]] std::deque<std::unique_ptr<Event>> take_events_of(const Id& id);

 private:
  // 0 and null: there is none, and the caller sleeps. -1, with errno.
  [[nodiscard]] int take(rdma_cm_event** event);
  // Makes the descriptor readable, or not, as there are events. Precondition: the lock is held.
  void show();
  // Makes `event` the application's: an errno value, and nothing is changed, when a new id gets no channel.
  [[nodiscard]] static int give(Event& event);

  Shown<rdma_event_channel, Channel> shown_;
  std::shared_ptr<Channel> kept_;
  std::deque<std::unique_ptr<Event>> events_;
  bool readable_ = false;
  bool closed_ = false;
  Sleepers sleepers_{Sleepers::For::kConnections};  // in get()
  const verbs::ForkGuard process_;
};

// As rdma_ack_cm_event(). Without the lock.
void acknowledge(rdma_cm_event* event);

}  // namespace iwarp::dropin::rdmacm
