// How tests wait for a completion, by polling alone.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>

namespace iwarp::dropin::test {

// Within 20 s, or the test has failed.
inline ibv_wc next_completion(ibv_cq* cq) {
  ibv_wc wc{};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (::ibv_poll_cq(cq, 1, &wc) == 0) {
    if (std::chrono::steady_clock::now() < until) continue;
    ADD_FAILURE() << "no completion";
    break;
  }
  return wc;
}

}  // namespace iwarp::dropin::test
