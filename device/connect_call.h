// rdma_connect() in a thread of its own: siw connects TCP in it, and waits for that up to two minutes; other devices
// only hand the request on. The thread knows what it needs and nothing else, so the connection may be given up
// meanwhile: then the thread frees what it has when the call returns.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "iwarp/base/result.h"
#include "iwarp/device/resources.h"

namespace iwarp::device {

class ConnectCall {
 public:
  // Calls of a process under way at a time: beyond it kResource.
  static constexpr int kMost = 256;

  // Begins. The private data are copied. Errors: kResource.
  [[nodiscard]] static Result<std::shared_ptr<ConnectCall>> begin(std::shared_ptr<Resources> resources,
                                                                  const rdma_conn_param& how,
                                                                  std::vector<std::byte> private_data);
  ~ConnectCall();
  ConnectCall(const ConnectCall&) = delete;
  ConnectCall& operator=(const ConnectCall&) = delete;

  // Readable when the call has returned.
  [[nodiscard]] int descriptor() const { return event_; }
  // Whether the call has returned: the thread has nothing in hand any more.
  [[nodiscard]] bool returned() const { return returned_; }
  // 0, or an errno value. Precondition: returned().
  [[nodiscard]] int failed() const { return failed_; }

 private:
  ConnectCall() = default;
  void run(Resources& resources);

  static std::atomic<int> under_way_;

  int event_ = -1;
  rdma_conn_param how_{};
  std::vector<std::byte> private_data_;
  int failed_ = 0;
  std::atomic<bool> returned_{false};
};

}  // namespace iwarp::device
