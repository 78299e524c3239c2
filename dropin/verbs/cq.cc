#include "dropin/verbs/cq.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "dropin/verbs/channel.h"
#include "dropin/verbs/context.h"
#include "dropin/verbs/device.h"
#include "dropin/verbs/interface.h"
#include "iwarp/cm/vain_polls.h"

namespace iwarp::dropin {
namespace {

constexpr std::size_t kAtOnce = 16;  // completions taken with one lock

thread_local cm::VainPolls vain_polls;

void polled_in_vain(verbs::CompletionQueue& queue) {
  if (!vain_polls.another()) return;
  const auto begin = cm::VainPolls::Clock::now();
  if (vain_polls.may_doze(begin) && engine().doze(queue)) {
    vain_polls.dozed(begin, cm::VainPolls::Clock::now());
  } else {
    std::this_thread::yield();
    vain_polls.yielded(begin, cm::VainPolls::Clock::now());
  }
}

}  // namespace

Cq::Cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel) {
  c.context = context;
  c.channel = channel;
  c.cq_context = cq_context;
  c.cqe = cqe;
  ::pthread_mutex_init(&c.mutex, nullptr);
  ::pthread_cond_init(&c.cond, nullptr);
  core.emplace(engine(), static_cast<std::size_t>(cqe), *this);
  if (channel != nullptr) dropin::owner(channel).users.fetch_add(1);
}

std::size_t Cq::take(std::span<verbs::Completion> out) {
  if (!process.alive()) [[unlikely]]
    return 0;
  engine().poll(*core);
  const std::size_t n = take_more(out);
  if (n == 0) {
    polled_in_vain(*core);
  } else {
    vain_polls.got_some();
  }
  return n;
}

std::size_t Cq::take_more(std::span<verbs::Completion> out) {
  return core->poll(out);
}

void Cq::Bell::notify(verbs::CompletionQueue&) noexcept {
  owner.armed.store(false);
  dropin::owner(owner.c.channel).tell(owner);
}

void Cq::arm(verbs::CompletionQueue::Notify what) {
  armed.store(what == verbs::CompletionQueue::Notify::kNext);
  core->arm(what, bell);
}

void Cq::tell_of_the_rest() {
  if (!armed.load(std::memory_order_relaxed) || core->empty()) return;
  core->disarm();
  if (armed.exchange(false)) dropin::owner(c.channel).tell(*this);
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
  int done = 0;
  const int error = guarded([&] {
    std::array<verbs::Completion, kAtOnce> some;
    while (done < most) {
      const std::size_t room = std::min(some.size(), static_cast<std::size_t>(most - done));
      const std::size_t n =
          done == 0 ? owner(cq).take(std::span{some}.first(room)) : owner(cq).take_more(std::span{some}.first(room));
      for (std::size_t i = 0; i < n; ++i) out[done++] = to_wc(some[i]);
      if (n < room) return 0;
    }
    owner(cq).tell_of_the_rest();
    return 0;
  });
  return error == 0 || done > 0 ? done : -error;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  if (cq->channel == nullptr) return 0;
  return guarded([&] {
    using Notify = verbs::CompletionQueue::Notify;
    if (!owner(cq).process.alive()) return EINVAL;
    owner(cq).arm(solicited_only != 0 ? Notify::kSolicited : Notify::kNext);
    return 0;
  });
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  if (attr->attr_mask != IBV_CQ_ATTR_MODERATE || !owner(cq).process.alive()) return EINVAL;
  return guarded([&] {
    return answer(
        owner(cq).core->moderate(attr->moderate.cq_count, std::chrono::microseconds{attr->moderate.cq_period}));
  });
}

int make_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, std::uint32_t comp_vector,
            Cq*& out) {
  if (!Opened::of(context).process.alive() || (channel != nullptr && !owner(channel).process.alive())) return EINVAL;
  if (cqe < 1 || cqe > kMostCompletions) return EINVAL;
  if (comp_vector >= static_cast<std::uint32_t>(context->num_comp_vectors)) return EINVAL;
  out = new Cq(context, cqe, cq_context, channel);
  return 0;
}

}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  return made<ibv_cq>([&](ibv_cq*& out) {
    Cq* cq = nullptr;
    const int error = make_cq(context, cqe, cq_context, channel, static_cast<std::uint32_t>(comp_vector), cq);
    if (error == 0) out = cq->face();
    return error;
  });
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
  if (cqe < 1 || cqe > kMostCompletions || !owner(cq).process.alive()) return EINVAL;
  return guarded([&] {
    const int error = answer(owner(cq).core->resize(static_cast<std::size_t>(cqe)));
    if (error == 0) cq->cqe = cqe;
    return error;
  });
}

int ibv_destroy_cq(ibv_cq* cq) {
  return guarded([&] {
    Cq& q = owner(cq);
    if (!q.process.alive()) return 0;
    if (q.users.load() != 0) return EBUSY;
    q.core->disarm();
    {
      std::unique_lock lock(events_mutex());
      if (cq->channel != nullptr) owner(cq->channel).forget(q);  // what was not taken is not given any more
      wait_settled(q.completion_events, q.async_events, lock);
      q.core.reset();  // nor does an asynchronous event name it from here on
    }
    if (cq->channel != nullptr) owner(cq->channel).users.fetch_sub(1);
    ::pthread_mutex_destroy(&cq->mutex);
    ::pthread_cond_destroy(&cq->cond);
    delete &q;
    return 0;
  });
}
}
