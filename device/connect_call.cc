#include "iwarp/device/connect_call.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "iwarp/device/failure.h"

namespace iwarp::device {

std::atomic<int> ConnectCall::under_way_{0};

Result<std::shared_ptr<ConnectCall>> ConnectCall::begin(std::shared_ptr<Resources> resources,
                                                        const rdma_conn_param& how,
                                                        std::vector<std::byte> private_data) {
  std::shared_ptr<ConnectCall> call(new ConnectCall);
  call->event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (call->event_ < 0) return failure_of(errno, "no descriptor is to be had");
  call->private_data_ = std::move(private_data);
  call->how_ = how;
  call->how_.private_data = call->private_data_.data();
  call->how_.private_data_len = static_cast<std::uint8_t>(call->private_data_.size());
  if (under_way_.fetch_add(1) >= kMost) {
    under_way_.fetch_sub(1);
    return make_error(Errc::kResource, "too many connections are on their way");
  }
  // Signals belong to the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread([call, resources = std::move(resources)]() mutable {
      call->run(*resources);
      // If the connection was given up, the last of what it had goes here.
      resources.reset();
      under_way_.fetch_sub(1);
    }).detach();
  } catch (const std::system_error&) {
    started = false;
    under_way_.fetch_sub(1);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return make_error(Errc::kResource, "no thread is to be had");
  return call;
}

void ConnectCall::run(Resources& resources) {
  failed_ = resources.verbs().connect(resources.id().get(), &how_) == 0 ? 0 : (errno != 0 ? errno : EIO);
  returned_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_, &one, sizeof one);
}

ConnectCall::~ConnectCall() {
  if (event_ >= 0) ::close(event_);
}

}  // namespace iwarp::device
