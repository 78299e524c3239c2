#include "iwarp/verbs/context.h"

#include <openssl/rand.h>
#include <pthread.h>

#include <cstdlib>
#include <thread>

namespace iwarp::verbs {
namespace {

// Forks between the first process and this one.
std::atomic<unsigned> forks{0};

unsigned present_generation() {
  static const int watching = ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  if (watching != 0) std::abort();  // out of memory: a child would corrupt its parent's streams
  return forks.load();
}

}  // namespace

// OpenSSL sets itself up when it is first used, and never if there is no memory then: better now than later.
Context::Context() : generation_(present_generation()) {
  (void)random();
}

bool Context::alive() const {
  return forks.load(std::memory_order_relaxed) == generation_;
}

std::optional<std::uint64_t> Context::random() {
  if (entropy_left_ == 0) {
    if (RAND_bytes(reinterpret_cast<unsigned char*>(entropy_.data()), static_cast<int>(sizeof entropy_)) != 1)
      return std::nullopt;
    entropy_left_ = entropy_.size();
  }
  return entropy_[--entropy_left_];
}

Result<Stag> Context::register_memory(const ddp::Registration& registration) {
  if (!alive()) return make_error(Errc::kInvalidArgument, "context used after fork()");
  const std::lock_guard lock(mu_);
  const auto number = random();
  // Predictable keys would be worse than none. Once it is seeded OpenSSL fails only for want of memory.
  if (!number) return make_error(Errc::kResource, "no random number for another STag: is there memory?");
  return stags_.register_memory(registration, *number);  // req: RFC5040-8.1.1-9 RFC5042-6.1.1-7
}

void Context::fence(Stag stag) {
  while (!stags_.quiescent(stag)) std::this_thread::yield();
}

void Context::invalidate(Stag stag) {
  stags_.invalidate(stag);  // req: RFC5040-8.1.1-5
  fence(stag);              // req: RFC5040-8.1.1-7 RFC5042-6.2.2-2
}

void Context::deregister(Stag stag) {
  invalidate(stag);
  const std::lock_guard lock(mu_);
  stags_.release(stag);
}

}  // namespace iwarp::verbs
