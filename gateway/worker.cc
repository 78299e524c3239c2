#include "iwarp/gateway/worker.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <csignal>
#include <string>

namespace iwarp::gateway {
namespace {

// Signals are for the thread of the process: a new thread inherits the mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    (void)::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

std::unique_ptr<cm::Engine> make_engine(boost::asio::io_context& io, const cm::Engine& first) {
  auto engine = std::make_unique<cm::Engine>(io, first.context());
  engine->set_tap_maker(first.tap_maker());
  return engine;
}

}  // namespace

thread_local const Worker* Worker::current_ = nullptr;

Worker::Worker(cm::Engine& engine, std::shared_ptr<rpcrdma::MemoryBudget> memory)
    : engine_(engine), turns_(std::make_shared<TurnQueue>(engine.io())), memory_(std::move(memory)) {}

Worker::Worker(OwnThread, const cm::Engine& first, std::shared_ptr<rpcrdma::MemoryBudget> memory)
    : own_io_(std::make_unique<boost::asio::io_context>(1)),
      own_engine_(make_engine(*own_io_, first)),
      engine_(*own_engine_),
      turns_(std::make_shared<TurnQueue>(*own_io_)),
      memory_(std::move(memory)) {}

Worker::~Worker() {
  end();
}

void Worker::start(std::size_t number) {
  if (!own_engine_ || thread_.joinable()) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([this, name = "worker " + std::to_string(number)] {
    current_ = this;
    (void)::pthread_setname_np(::pthread_self(), name.c_str());
    const auto work = boost::asio::make_work_guard(*own_io_);
    own_io_->run();
  });
}

void Worker::end() {
  if (!thread_.joinable()) return;
  own_io_->stop();
  thread_.join();
}

void Worker::ask_for_memory() {
  if (asked_->exchange(true)) return;
  boost::asio::post(engine_.io(), [asked = asked_, memory = memory_] {
    asked->store(false);
    memory->reclaim();
  });
}

std::shared_ptr<const void> Worker::take_seat() {
  seats_->fetch_add(1);
  return {seats_.get(), [seats = seats_](const void*) { seats->fetch_sub(1); }};
}

}  // namespace iwarp::gateway
