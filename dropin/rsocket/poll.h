// rpoll() and rselect(): readiness of rsockets and of any other descriptors together.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <span>

namespace iwarp::dropin::rsockets {

// As ppoll(2) without a signal mask: for descriptors that are no rsockets it is poll(2). nullopt: without limit. Not to
// be cancelled meanwhile.
[[nodiscard]] int poll(std::span<pollfd> watched, std::optional<std::chrono::nanoseconds> timeout);

}  // namespace iwarp::dropin::rsockets
