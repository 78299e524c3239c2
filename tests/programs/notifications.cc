#include "tests/programs/notifications.h"

#include <string>

namespace iwarp::programs {

using Notify = verbs::CompletionQueue::Notify;

void Notifications::polled(std::size_t host, bool receives, std::span<const verbs::Completion> completions) {
  Armed& a = of(host, receives);
  for (const verbs::Completion& c : completions) {
    const bool wanted = a.what == Notify::kNext || c.solicited || c.status != Errc::kOk;
    a.due = a.due || (a.armed && wanted);
  }
}

void Notifications::check(std::size_t host, bool receives, Model& model) {
  const Armed& a = of(host, receives);
  const std::size_t told = hosts_.notifier(host, receives).told - a.before;
  if (a.armed && told != (a.due ? 1U : 0U))
    model.wrong("host " + std::to_string(host) + ": " + std::to_string(told) + " notifications of a completion queue");
}

void Notifications::arm(std::size_t host, bool receives, bool solicited) {
  Armed& a = of(host, receives);
  const bool stands = a.armed && !a.due && a.what == Notify::kNext;  // the stronger of two
  CountingNotifier& notifier = hosts_.notifier(host, receives);
  a = {true, false, stands || !solicited ? Notify::kNext : Notify::kSolicited, notifier.told};
  hosts_.cq(host, receives).arm(solicited ? Notify::kSolicited : Notify::kNext, notifier);
}

}  // namespace iwarp::programs
