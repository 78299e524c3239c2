#include "iwarp/verbs/queue_pair.h"

#include <array>
#include <chrono>
#include <new>

namespace iwarp::verbs {
namespace {

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> counter{1};
  return counter.fetch_add(1);
}

std::shared_ptr<CompletionQueue::Shared> shared(const CompletionQueue* cq) {
  return cq == nullptr ? nullptr : cq->shared();
}

Result<void> check(const QueuePair::Options& options, const ProtectionDomain& pd) {
  if (options.send_cq == nullptr || options.recv_cq == nullptr)
    return make_error(Errc::kInvalidArgument, "a queue pair needs a send_cq and a recv_cq");
  if (options.srq != nullptr) {
    if (auto ok = options.srq->usable(); !ok) return ok;
    if (options.srq->pd().context() != pd.context() || options.srq->pd().id() != pd.id())
      return make_error(Errc::kInvalidArgument, "the shared receive queue is of another Protection Domain");
  }
  return endpoint::validate(options.stream);
}

// What may be made of them, if nothing can be done with it.
endpoint::Options usable_options(const Result<void>& usable, const endpoint::Options& options) {
  return usable ? options : endpoint::Options{};
}

}  // namespace

QueuePair::QueuePair(const ProtectionDomain& pd, const Options& options)
    : pd_(pd),
      // req: RFC5040-2.4-1 RFC5041-1.2-7
      who_{pd.id(), pd.context()->allocate_stream()},
      send_cq_(shared(options.send_cq)),
      recv_cq_(shared(options.recv_cq)),
      usable_(check(options, pd)),
      number_(options.number != 0 ? options.number : next_number()),
      share_(options.srq == nullptr ? std::nullopt
                                    : std::optional<Share>(std::in_place, options.srq->shared(),
                                                           options.stream.receive_wait.count() > 0 ? this : nullptr)),
      endpoint_(pd.context()->stags(), who_, usable_options(usable_, options.stream), share_ ? &*share_ : nullptr),
      user_(options.user) {}

void QueuePair::set_driver(Driver* driver, endpoint::Half* half) {
  if (driver_ != nullptr && driver != driver_) agreed_ = driver_->agreed().value_or(agreed_);
  driver_ = driver;
  half_ = half;
}

QueuePair::~QueuePair() {
  if (share_ && pd_.context()->alive()) share_->let_go();
}

Result<void> QueuePair::may_post() const {
  if (!usable_) [[unlikely]]
    return usable_;
  if (!pd_.context()->alive()) [[unlikely]]
    return make_error(Errc::kInvalidArgument, "queue pair used after fork()");
  return {};
}

// Completions of what is posted behind the end come at once: who posts until that is refused must not overflow their
// queue.
QueuePair::Room::Room(QueuePair& qp, const Cq& cq, bool at_once, std::size_t posts) : qp_(qp), cq_(cq), most_(posts) {
  if (!at_once) return;
  qp_.drain_completions();  // who ended it may not have come to that
  most_ = cq_->promise(posts);
  qp_.promised_ = most_;
  qp_.promised_by_ = cq_.get();
}

// What has no completion, or was refused, needs no place.
QueuePair::Room::~Room() {
  if (qp_.promised_ > 0) (void)cq_->push({}, std::exchange(qp_.promised_, 0));
}

Result<void> QueuePair::post_send(std::span<const SendWr> list, std::size_t* posted) {
  if (posted != nullptr) *posted = 0;
  if (auto may = may_post(); !may) return may;
  const std::lock_guard lock(mu_);
  const Room room(*this, send_cq_, sends_end_at_once(), list.size());
  return post_in_turn(list, room, posted);
}

Result<void> QueuePair::post_all(std::span<const SendWr> list) {
  if (auto may = may_post(); !may) return may;
  const std::lock_guard lock(mu_);
  for (const SendWr& wr : list) {
    if (auto may = endpoint_.may_post(wr); !may) return may;
  }
  if (endpoint_.sends_posted() + list.size() > endpoint_.options().sq_depth) return make_error(Errc::kQueueFull);
  const Room room(*this, send_cq_, sends_end_at_once(), list.size());
  if (room.most() < list.size()) return make_error(Errc::kQueueFull, kNoRoom);
  return post_in_turn(list, room, nullptr);
}

Result<void> QueuePair::post_in_turn(std::span<const SendWr> list, const Room& room, std::size_t* posted) {
  Result<void> result;
  std::size_t n = 0;
  for (; n < list.size() && result; n += result ? 1 : 0)
    result = n < room.most() ? endpoint_.post_send(list[n]) : make_error(Errc::kQueueFull, kNoRoom);
  if (posted != nullptr) *posted = n;
  kick();
  finish_post();
  return result;
}

Result<void> QueuePair::post_recv(std::span<const RecvWr> list, std::size_t* posted) {
  if (posted != nullptr) *posted = 0;
  if (auto may = may_post(); !may) return may;
  const std::lock_guard lock(mu_);
  const Room room(*this, recv_cq_, endpoint_.done_receiving(), list.size());
  Result<void> result;
  std::size_t n = 0;
  for (; n < list.size() && result; n += result ? 1 : 0)
    result = n < room.most() ? endpoint_.post_recv(list[n]) : make_error(Errc::kQueueFull, kNoRoom);
  if (posted != nullptr) *posted = n;
  if (endpoint_.holding()) [[unlikely]]
    go_on();
  if (endpoint_.phase() > endpoint::Phase::kFull) [[unlikely]]
    finish_post();
  return result;
}

void QueuePair::go_on() {
  if (half_ != nullptr) half_->resume(std::chrono::steady_clock::now());
  drain_completions();
  kick();  // there may be something to send, and what is to be read
}

void QueuePair::receives_came() {
  const std::lock_guard lock(mu_);
  go_on();
}

void QueuePair::finish_post() {
  drain_completions();
  // An overflow of the completion queue, or a want of memory, ends the connection here: the driver has to see to its
  // socket.
  if (endpoint_.phase() >= endpoint::Phase::kLingering) kick();
}

void QueuePair::abort() {
  if (!pd_.context()->alive()) return;
  const std::lock_guard lock(mu_);
  end(make_error(Errc::kAborted));
  drain_completions();
  kick();
}

void QueuePair::leave(Unfinished what) {
  if (!pd_.context()->alive()) return;
  const std::lock_guard lock(mu_);
  drain_completions();
  left_ = left_ || what == Unfinished::kDropped;
  const Error reason = make_error(Errc::kAborted, "the application has left");
  driven() ? half_->leave(reason, std::chrono::steady_clock::now()) : end_at_once(reason);
  drain_completions();
  kick();
}

void QueuePair::give_up_peer() {
  if (!pd_.context()->alive()) return;
  const std::lock_guard lock(mu_);
  endpoint_.give_up_peer();
  drain_completions();
  kick();
}

// Without a driver nobody would send a last wake.
void QueuePair::end(const Error& reason) {
  driven() ? half_->abort_sparing(reason, std::chrono::steady_clock::now()) : end_at_once(reason);
}

void QueuePair::end_at_once(const Error& reason) {
  half_ != nullptr ? half_->abort(reason) : endpoint_.end(endpoint::Input::kAbort, reason);
}

// What is posted is posted, whatever happens to it: nothing is thrown, or the application would post it again.
void QueuePair::kick() {
  if (driver_ == nullptr) return;
  try {
    driver_->kick();
  } catch (const std::bad_alloc&) {
    end_at_once(make_error(Errc::kResource, "no memory to go on with what was posted"));
  }
}

void QueuePair::drain_completions() {
  move_completions();
  if (endpoint_.phase() > endpoint::Phase::kFull && !left_) [[unlikely]]
    tell_end();
}

void QueuePair::move_completions() {
  const auto sends = [this] { return move(send_cq_, &endpoint::Endpoint::poll_send, last_good_send_); };
  const auto receives = [this] { return move(recv_cq_, &endpoint::Endpoint::poll_recv, last_good_recv_); };
  if (sends() && receives()) return;
  // The end has flushed what was posted on either side: every request completes.
  (void)sends();
  (void)receives();
}

bool QueuePair::move(const Cq& cq, std::optional<rdmap::Completion> (endpoint::Endpoint::*poll)(),
                     std::atomic<std::uint64_t>& last_good) {
  bool fit = true;
  while (auto c = (endpoint_.*poll)()) {
    std::array<Completion, 8> some;  // for one turn of the queue's lock
    std::size_t n = 0;
    for (; c; c = n < some.size() ? (endpoint_.*poll)() : std::nullopt) {
      // This STag is revoked: nobody hears of it while an access through another connection is still under way.
      if (c->invalidated) pd_.context()->fence(c->invalidated_stag);
      if (c->silent || left_) continue;
      some[n++] = {*c, number_, user_};
    }
    const std::size_t promised = cq.get() == promised_by_ ? std::min(n, promised_) : 0;
    promised_ -= promised;
    if (cq->push(std::span{some}.first(n), promised, &last_good)) continue;
    fit = false;
    cq->overflowed(pd_.async_events(), number_);
    end(make_error(Errc::kResource, "completion queue overflow"));  // req: RFC5040-8.1.1-12 RFC5042-6.4.6-1
  }
  return fit;
}

}  // namespace iwarp::verbs
