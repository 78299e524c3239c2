// Work for the thread of an engine, from any other.
#pragma once

#include <functional>

#include "iwarp/cm/engine.h"

namespace iwarp::cm {

// Has `what` done where the handlers of `engine` run, and returns when it is done: at once in the caller's thread if
// that is where, or if the engine borrows its io_context. What else runs there meanwhile may throw out of here, but not
// before `what` is done, so that it may hold references to the caller's objects. Not with a lock held that a handler
// takes, nor in a forked child.
void run_in(Engine& engine, const std::function<void()>& what);

}  // namespace iwarp::cm
