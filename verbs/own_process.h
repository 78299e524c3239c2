// Objects and fork(). In a child the threads of the parent are gone, and the locks that they held stay held for ever;
// sockets and epoll sets are shared with the parent. So nothing that was made before fork() may be used in the child,
// nor be destroyed: it refuses, and its memory is left.
#pragma once

#include <memory>
#include <utility>

#include "iwarp/base/error.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::verbs {

// Why calls in a forked child fail.
[[nodiscard]] inline Error used_after_fork() {
  return make_error(Errc::kInvalidArgument, "used after fork()");
}

// Owns a T like std::unique_ptr, and destroys it in the process that made it only.
template <class T>
class OwnProcess {
 public:
  template <class... Args>
  explicit OwnProcess(std::in_place_t, Args&&... args) : it_(std::make_unique<T>(std::forward<Args>(args)...)) {}
  ~OwnProcess() { reset(); }
  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;

  [[nodiscard]] bool alive() const { return process_.alive(); }
  // Destroys it, or leaves it alone. Empty afterwards.
  void reset() {
    if (alive()) {
      it_.reset();
    } else {
      (void)it_.release();
    }
  }
  T& operator*() const { return *it_; }
  T* operator->() const { return it_.get(); }

 private:
  ForkGuard process_;
  std::unique_ptr<T> it_;
};

}  // namespace iwarp::verbs
