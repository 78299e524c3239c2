// For what runs where nobody catches: handlers in the engine's threads, destructors, what follows a change that stands.
#pragma once

namespace iwarp::dropin {

// Whatever `act` throws, a want of memory as a rule, ends there: nothing is told of it.
template <class Act>
void quietly(const Act& act) noexcept {
  try {
    act();
  } catch (...) {  // what is lost by it comes to its own limit in time
  }
}

}  // namespace iwarp::dropin
