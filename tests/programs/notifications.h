// Who was told of completions, and must have been: a queue that is armed tells once, of the first that was asked for
// (completion_queue.h).
#pragma once

#include <array>
#include <span>

#include "tests/programs/hosts.h"
#include "tests/programs/model.h"

namespace iwarp::programs {

class Notifications {
 public:
  Notifications(Hosts& hosts, const Setup& setup) : hosts_(hosts), setup_(setup) {}

  // Those came from the queue of sends, or of receives, of `host`.
  void polled(std::size_t host, bool receives, std::span<const verbs::Completion> completions);
  // Tells the model what is wrong. Precondition: the queue is empty.
  void check(std::size_t host, bool receives, Model& model);
  // Likewise.
  void arm(std::size_t host, bool receives, bool solicited);

 private:
  struct Armed {
    bool armed = false;
    bool due = false;  // what was asked for has come
    verbs::CompletionQueue::Notify what = verbs::CompletionQueue::Notify::kNext;
    std::size_t before = 0;  // notifications until then
  };
  [[nodiscard]] Armed& of(std::size_t host, bool receives) {
    return armed_[host][receives && !setup_.hosts[host].one_cq ? 1 : 0];
  }

  Hosts& hosts_;
  const Setup& setup_;
  std::array<std::array<Armed, 2>, kHosts> armed_;
};

}  // namespace iwarp::programs
