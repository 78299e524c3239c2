// Ends of a pair of `iwarp perf`, on the loopback.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tools/perf/end.h"

namespace iwarp::tools::perf {

inline const std::string kHost = "127.0.0.1";

// The passive end as `iwarp perf serve` has it.
class Honest {
 public:
  explicit Honest(const Spec& spec, const std::string& host = kHost)
      : passive_(is_raw(spec.test) ? listen_raw(spec, host) : listen_rdma(spec, host)),
        thread_([this] { passive_->serve(stop_); }) {}
  ~Honest() {
    stop_ = true;
    stop_.notify_all();
  }
  Honest(const Honest&) = delete;
  Honest& operator=(const Honest&) = delete;
  [[nodiscard]] std::uint16_t port() const { return passive_->port(); }

 private:
  std::unique_ptr<Passive> passive_;
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

inline std::unique_ptr<Active> connect(const Spec& spec, std::uint16_t port, const std::string& host = kHost) {
  return is_raw(spec.test) ? connect_raw(spec, host, port) : connect_rdma(spec, host, port);
}

}  // namespace iwarp::tools::perf
