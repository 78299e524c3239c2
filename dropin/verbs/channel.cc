#include "dropin/verbs/channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "dropin/verbs/context.h"
#include "dropin/verbs/cq.h"
#include "dropin/verbs/events.h"

namespace iwarp::dropin {
namespace {

void raise(int fd) {
  const std::uint64_t one = 1;
  while (::write(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void lower(int fd) {
  std::uint64_t one = 0;
  while (::read(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace

Channel::Channel(ibv_context* context) {
  c.context = context;
  c.fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (c.fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Channel::~Channel() {
  ::close(c.fd);
}

void Channel::tell(Cq& cq) noexcept {
  const std::lock_guard lock(mutex_);
  if (++cq.told == 1) {
    cq.next_told = nullptr;
    (last_ == nullptr ? first_ : last_->next_told) = &cq;
    last_ = &cq;
  }
  raise(c.fd);
  sleepers.wake();
}

void Channel::pop_first() {
  first_ = first_->next_told;
  if (first_ == nullptr) last_ = nullptr;
}

Cq* Channel::take() {
  const std::lock_guard events(events_mutex());
  const std::lock_guard lock(mutex_);
  Cq* const cq = first_;
  if (cq == nullptr) return nullptr;
  if (--cq->told == 0) pop_first();
  lower(c.fd);
  ++cq->completion_events.given;
  return cq;
}

void Channel::forget(Cq& cq) {
  const std::lock_guard lock(mutex_);
  if (cq.told == 0) return;
  for (; cq.told > 0; --cq.told) lower(c.fd);
  if (first_ == &cq) return pop_first();
  Cq* before = first_;
  while (before->next_told != &cq) before = before->next_told;
  before->next_told = cq.next_told;
  if (last_ == &cq) last_ = before;
}

}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return made<ibv_comp_channel>([&](ibv_comp_channel*& out) {
    if (!Opened::of(context).process.alive()) return EINVAL;
    out = &(new Channel(context))->c;
    return 0;
  });
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return guarded([&] {
    Channel& ch = owner(channel);
    if (!ch.process.alive()) return 0;
    if (ch.users.load() != 0) return EBUSY;
    delete &ch;
    return 0;
  });
}

// A thread may be cancelled while it sleeps here.
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  Channel& ch = owner(channel);
  for (;;) {
    const std::uint32_t seen = ch.sleepers.wakes();
    Cq* got = nullptr;
    const int error = guarded([&] {
      if (!ch.process.alive()) return EINVAL;
      got = ch.take();
      return 0;
    });
    if (error != 0) return minus_one(error);
    if (got != nullptr) {
      *cq = got->face();
      *cq_context = got->c.cq_context;
      return 0;
    }
    if (!blocks(channel->fd)) return minus_one(EAGAIN);
    if (!ch.sleepers.wait(seen)) return -1;
  }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned nevents) {
  (void)guarded([&] {
    acknowledge(owner(cq).completion_events, nevents);
    return 0;
  });
}
}
