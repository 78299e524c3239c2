#include "iwarp/verbs/queue_pair.h"

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

Result<void> QueuePair::post_recv(const RecvWr& wr) {
  if (!pd_.context()->alive()) return make_error(Errc::kInvalidArgument, "queue pair used after fork()");
  const std::lock_guard lock(mu_);
  return core_.post_recv(wr);
}

void QueuePair::abort() {
  if (!pd_.context()->alive()) return;
  const std::lock_guard lock(mu_);
  core_.abort(make_error(Errc::kAborted));
  drain_completions();
  if (driver_ != nullptr) driver_->kick();
}

void QueuePair::drain_completions() {
  const auto give = [&](CompletionQueue& cq, const rdmap::Completion& c) {
    // The peer revoked this STag: nobody hears of it while an access through another connection is still under way.
    if (c.invalidated) pd_.context()->fence(c.invalidated_stag);
    if (!cq.push({c, number_}))
      core_.abort(make_error(Errc::kResource, "completion queue overflow"));  // req: RFC5040-8.1.1-12 RFC5042-6.4.6-1
  };
  while (auto c = core_.poll_send()) give(*options_.send_cq, *c);
  while (auto c = core_.poll_recv()) give(*options_.recv_cq, *c);
}

}  // namespace iwarp::verbs
