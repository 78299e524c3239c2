#include "iwarp/verbs/queue_pair.h"

#include <array>

namespace iwarp::verbs {
namespace {

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> counter{1};
  return counter.fetch_add(1);
}

}  // namespace

QueuePair::QueuePair(const ProtectionDomain& pd, const Options& options)
    : pd_(pd),
      // req: RFC5040-2.4-1 RFC5041-1.2-7
      who_{pd.id(), pd.context()->allocate_stream()},
      options_(options),
      number_(next_number()),
      core_(pd.context()->stags(), who_, options.stream) {}

QueuePair::~QueuePair() = default;

Result<void> QueuePair::post_send(std::span<const SendWr> list, std::size_t* posted) {
  if (posted != nullptr) *posted = 0;
  if (!pd_.context()->alive()) return make_error(Errc::kInvalidArgument, "queue pair used after fork()");
  const std::lock_guard lock(mu_);
  Result<void> result;
  for (const SendWr& wr : list) {
    result = core_.post_send(wr);
    if (!result) break;
    if (posted != nullptr) ++*posted;
  }
  if (driver_ != nullptr) driver_->kick();
  drain_completions();
  // An overflow of the completion queue ends the connection here: the driver has to see to its socket.
  if (driver_ != nullptr && core_.phase() == stream::Phase::kClosed) driver_->kick();
  return result;
}

Result<void> QueuePair::post_recv(std::span<const RecvWr> list, std::size_t* posted) {
  if (posted != nullptr) *posted = 0;
  if (!pd_.context()->alive()) return make_error(Errc::kInvalidArgument, "queue pair used after fork()");
  const std::lock_guard lock(mu_);
  Result<void> result;
  for (const RecvWr& wr : list) {
    result = core_.post_recv(wr);
    if (!result) break;
    if (posted != nullptr) ++*posted;
  }
  return result;
}

void QueuePair::abort() {
  if (!pd_.context()->alive()) return;
  const std::lock_guard lock(mu_);
  core_.abort(make_error(Errc::kAborted));
  drain_completions();
  if (driver_ != nullptr) driver_->kick();
}

void QueuePair::drain_completions() {
  drain(*options_.send_cq, &stream::Connection::poll_send);
  drain(*options_.recv_cq, &stream::Connection::poll_recv);
}

void QueuePair::drain(CompletionQueue& cq, std::optional<rdmap::Completion> (stream::Connection::*poll)()) {
  while (auto c = (core_.*poll)()) {
    std::array<Completion, 8> some;  // for one turn of the queue's lock
    std::size_t n = 0;
    for (; c; c = n < some.size() ? (core_.*poll)() : std::nullopt) {
      // The peer revoked this STag: nobody hears of it while an access through another connection is still under way.
      if (c->invalidated) pd_.context()->fence(c->invalidated_stag);
      some[n++] = {*c, number_};
    }
    if (!cq.push(std::span{some}.first(n)))
      core_.abort(make_error(Errc::kResource, "completion queue overflow"));  // req: RFC5040-8.1.1-12 RFC5042-6.4.6-1
  }
}

}  // namespace iwarp::verbs
