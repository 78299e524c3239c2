// What must happen, in time.
#pragma once

#include <chrono>
#include <thread>

namespace iwarp::test {

// How long what must happen may take.
inline constexpr std::chrono::seconds kPatience{60};

// Whether `condition` came true in time.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace iwarp::test
