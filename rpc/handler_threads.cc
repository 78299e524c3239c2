#include "iwarp/rpc/handler_threads.h"

namespace iwarp::rpc {
namespace {

thread_local const HandlerThreads* of_this_thread = nullptr;

}  // namespace

std::shared_ptr<HandlerThreads> HandlerThreads::start(unsigned threads) {
  const std::shared_ptr<HandlerThreads> made(new HandlerThreads(threads));
  try {
    for (unsigned i = 0; i < threads; ++i) {
      const std::lock_guard lock(made->mu_);
      made->threads_.emplace_back([made] { made->run(); });
      ++made->running_;
    }
  } catch (...) {
    made->stop();
    made->join();
    throw;
  }
  return made;
}

// The last owner may be one of the threads, in its last steps.
HandlerThreads::~HandlerThreads() {
  for (std::thread& thread : threads_) thread.detach();
}

bool HandlerThreads::here() const {
  return of_this_thread == this;
}

void HandlerThreads::run() {
  of_this_thread = this;
  io_.run();
  bool last = false;
  {
    const std::lock_guard lock(mu_);
    last = running_ == 1;
    if (!last) --running_;
  }
  if (last) drop();
  of_this_thread = nullptr;
}

// What is destroyed may bring more.
void HandlerThreads::drop() {
  io_.drop_everything();
  for (;;) {
    std::vector<std::unique_ptr<Late>> late;
    const std::lock_guard lock(mu_);
    late.swap(late_);
    if (late.empty()) {
      dropped_ = true;
      running_ = 0;
      ended_.notify_all();
      return;
    }
  }
}

void HandlerThreads::stop() {
  {
    const std::lock_guard lock(mu_);
    if (!std::exchange(open_, false)) return;
  }
  io_.stop();
}

void HandlerThreads::join() {
  if (here()) return;
  std::vector<std::thread> ended;
  {
    std::unique_lock lock(mu_);
    ended_.wait(lock, [&] { return running_ == 0; });
    ended.swap(threads_);
  }
  for (std::thread& thread : ended) thread.join();
}

}  // namespace iwarp::rpc
