#include "iwarp/sctp_cm/session_driver.h"

#include <chrono>
#include <utility>

namespace iwarp::sctp_cm {
namespace {

TimePoint clock_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

SessionDriver::SessionDriver(boost::asio::io_context& io, Sessions& sessions, endpoint::Endpoint& endpoint,
                             sctp::Role role, std::function<void()> when_moved, const session::Options& options)
    : sessions_(sessions),
      deadline_(io,
                [this] {
                  half_.on_deadline(clock_now());
                  drive();
                }),
      half_(endpoint, options),
      pump_(half_, role),
      when_moved_(std::move(when_moved)) {}

void SessionDriver::begin(sctp::StreamId stream) {
  pump_.begin(sessions_, stream);
  half_.start(clock_now());
  deadline_.follow(half_.deadline());
}

void SessionDriver::on_event(const sctp::Session::Event& event) {
  pump_.on_event(event, clock_now());
  drive();
}

void SessionDriver::posted(bool receives) {
  if (receives) half_.resume(clock_now());
  drive();
}

void SessionDriver::disconnect() {
  half_.disconnect(clock_now());
  drive();
}

void SessionDriver::abort() {
  half_.abort_sparing(make_error(Errc::kAborted), clock_now());
  drive();
}

void SessionDriver::drive() {
  if (!pump_.begun()) return;
  again_ = true;
  if (driving_) return;  // from when_moved_(): the loop below goes round once more
  driving_ = true;
  const std::shared_ptr<bool> alive = alive_;
  while (std::exchange(again_, false)) {
    pump_.send(clock_now());
    deadline_.follow(half_.deadline());
    when_moved_();
    if (!*alive) return;
  }
  driving_ = false;
}

}  // namespace iwarp::sctp_cm
