#include "iwarp/verbs/context.h"

#include <openssl/rand.h>
#include <unistd.h>

#include <thread>

namespace iwarp::verbs {

Context::Context() : owner_(::getpid()) {}

bool Context::alive() const { return ::getpid() == owner_; }

std::uint64_t Context::random() {
  if (entropy_left_ == 0) {
    // Cannot fail once OpenSSL is seeded; if it ever does, predictable keys would be the worst answer.
    if (RAND_bytes(reinterpret_cast<unsigned char*>(entropy_.data()), static_cast<int>(sizeof entropy_)) != 1) std::abort();
    entropy_left_ = entropy_.size();
  }
  return entropy_[--entropy_left_];
}

Result<Stag> Context::register_memory(const ddp::Registration& registration) {
  if (!alive()) return make_error(Errc::kInvalidArgument, "context used after fork()");
  const std::lock_guard lock(mu_);
  return stags_.register_memory(registration, random());
}

void Context::fence(Stag stag) {
  while (!stags_.quiescent(stag)) std::this_thread::yield();
}

void Context::invalidate(Stag stag) {
  stags_.invalidate(stag);
  fence(stag);
}

void Context::deregister(Stag stag) {
  invalidate(stag);
  const std::lock_guard lock(mu_);
  stags_.release(stag);
}

}  // namespace iwarp::verbs
