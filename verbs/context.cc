#include "iwarp/verbs/context.h"

#include <span>
#include <thread>

#include "iwarp/verbs/entropy.h"

namespace iwarp::verbs {
// OpenSSL sets itself up when it is first used, and never if there is no memory then: better now than later.
Context::Context() {
  (void)random();
}

std::optional<std::uint64_t> Context::random() {
  if (entropy_left_ == 0) {
    if (!fill_random(std::as_writable_bytes(std::span{entropy_}))) return std::nullopt;
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

Result<Stag> Context::reregister(Stag stag, const ddp::Registration& registration, std::optional<std::uint8_t> key) {
  if (!alive()) return make_error(Errc::kInvalidArgument, "context used after fork()");
  if (const auto ok = ddp::StagTable::check(registration); !ok) return ok.error();
  const auto present = static_cast<std::uint8_t>(raw(stag));
  if (!key) {
    const std::lock_guard lock(mu_);
    const auto number = random();
    if (!number) return make_error(Errc::kResource, "no random number for another key: is there memory?");
    key = static_cast<std::uint8_t>(present + 1 + *number % 255);  // any but the present one
  }
  // With the same key the STag would never have been dead.
  if (*key == present)
    return make_error(Errc::kInvalidArgument, "the key of a region is registered anew with another one");
  invalidate(stag);
  const std::lock_guard lock(mu_);
  return stags_.renew(stag, registration, *key);
}

void Context::fence(Stag stag) {
  while (alive() && !stags_.quiescent(stag)) std::this_thread::yield();
}

void Context::invalidate(Stag stag) {
  if (!alive()) return;
  stags_.invalidate(stag);  // req: RFC5040-8.1.1-5
  fence(stag);              // req: RFC5040-8.1.1-7 RFC5042-6.2.2-2
}

void Context::deregister(Stag stag) {
  if (!alive()) return;
  invalidate(stag);
  const std::lock_guard lock(mu_);
  stags_.release(stag);
}

}  // namespace iwarp::verbs
