// A service of the tests, run by threads of its own.
#pragma once

#include <poll.h>
#include <rpc/rpc.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "iwarp/tirpc/rpcrdma.h"

namespace iwarp::tirpc::test {

inline constexpr std::uint32_t kProgram = 0x20000045;

class RunningService {
 public:
  // Throws std::runtime_error: there can be none at that address.
  RunningService(unsigned threads, void (*dispatch)(svc_req*, SVCXPRT*), const char* host = "127.0.0.1")
      : xprt_(svc_rpcrdma_create(host, 0, nullptr)) {
    if (xprt_ == nullptr || !svc_reg(xprt_, kProgram, 1, dispatch, nullptr)) throw std::runtime_error("no service");
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        pollfd ready{xprt_->xp_fd, POLLIN, 0};
        while (!over_) {
          if (::poll(&ready, 1, 20) == 1) svc_getreq_common(xprt_->xp_fd);
        }
      });
    }
  }
  ~RunningService() {
    over_ = true;
    for (auto& t : threads_) t.join();
    svc_destroy(xprt_);
    svc_unreg(kProgram, 1);
  }
  RunningService(const RunningService&) = delete;
  RunningService& operator=(const RunningService&) = delete;

  [[nodiscard]] CLIENT* client() const {
    return clnt_rpcrdma_create("127.0.0.1", kProgram, 1, xprt_->xp_port, nullptr);
  }
  [[nodiscard]] std::uint16_t port() const { return xprt_->xp_port; }
  [[nodiscard]] SVCXPRT* xprt() const { return xprt_; }

 private:
  SVCXPRT* xprt_ = nullptr;
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

}  // namespace iwarp::tirpc::test
