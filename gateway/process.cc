#include "iwarp/gateway/process.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace iwarp::gateway {

ProcessOptions ProcessOptions::of_one(const Options& options) {
  ProcessOptions o;
  o.memory_bytes = options.process_memory_bytes;
  o.least_part_bytes = options.least_part();
  o.drain_timeout = options.drain_timeout;
  return o;
}

Process::Process(cm::Engine& engine, const ProcessOptions& options)
    : options_(options), clients_(options.max_connections_per_client) {
  workers_.push_back(std::make_unique<Worker>(
      engine, std::make_shared<rpcrdma::MemoryBudget>(options.memory_bytes, options.least_part_bytes)));
}

// The threads first: they may ask each other for memory until they end.
Process::~Process() {
  end();
  // What is left of their connections ends here, and may name the thread of the process.
  while (!workers_.empty()) workers_.pop_back();
}

void Process::end() {
  for (const auto& worker : workers_) worker->end();
}

void Process::start_workers() {
  if (std::exchange(started_, true)) return;
  while (workers_.size() < std::min(options_.workers, ProcessOptions::kMostWorkers))
    workers_.push_back(std::make_unique<Worker>(Worker::OwnThread{}, home().engine(), memory()->another_part()));
  if (workers_.size() == 1) return;
  for (const auto& worker : workers_) {
    worker->memory()->set_ask_others([this, asks = worker.get()] {
      for (const auto& other : workers_) {
        if (other.get() != asks) other->ask_for_memory();
      }
    });
  }
  for (std::size_t i = 1; i < workers_.size(); ++i) workers_[i]->start(i);
}

Worker& Process::idlest_worker() {
  return **std::ranges::min_element(workers_, {}, [](const auto& worker) { return worker->seats(); });
}

void Process::when_all_answer(std::function<void()> then) {
  if (workers_.size() == 1) return then();
  struct Round {
    std::size_t left;
    std::function<void()> then;
  };
  const auto round = std::make_shared<Round>(Round{workers_.size() - 1, std::move(then)});
  for (std::size_t i = 1; i < workers_.size(); ++i) {
    // Nothing of the round stays with the worker: what waits for the answers goes in the thread of the process.
    workers_[i]->run([home = &home(), round]() mutable {
      home->run([round = std::move(round)] {
        if (--round->left == 0) std::exchange(round->then, {})();
      });
    });
  }
}

// What is posted may overtake news of sockets that came before it, once; and an end takes a handler more.
void Process::when_all_have_looked(std::function<void()> then) {
  rounds(3, std::move(then));
}

void Process::rounds(int left, std::function<void()> then) {
  if (left == 0) return then();
  auto next = [this, alive = std::weak_ptr<bool>(alive_), left, then = std::move(then)]() mutable {
    if (!alive.expired()) rounds(left - 1, std::move(then));
  };
  // The thread of the process has sockets, too.
  boost::asio::post(home().engine().io(),
                    [this, alive = std::weak_ptr<bool>(alive_), next = std::move(next)]() mutable {
                      if (!alive.expired()) when_all_answer(std::move(next));
                    });
}

Parsed<std::shared_ptr<RdmaProvider>> Process::provider(const Options& options) {
  if (options.sctp) {
    if (sctp_ != nullptr) return {sctp_, {}};
    auto opened = open_sctp(home().engine());
    if (opened) sctp_ = *opened.value;
    return opened;
  }
  const std::string& device = options.device;
  if (device.empty()) return {own_stack(), {}};
  if (const auto opened = devices_.find(device); opened != devices_.end()) return {opened->second, {}};
  auto opened = open_device(home().engine(), device);
  if (opened) devices_.emplace(device, *opened.value);
  return opened;
}

void Process::change(const ProcessOptions& options) {
  options_ = options;
  memory()->change(options.memory_bytes, options.least_part_bytes);
  clients_.set_limit(options.max_connections_per_client);
}

ClientPlaces::Place Process::take_place(const boost::asio::ip::address& client, const char*& why) {
  if (*connections_ >= options_.max_connections) {
    why = "the gateway has as many connections as it may have";
    return nullptr;
  }
  auto of_client = clients_.take(client);
  if (!of_client) {
    why = "this client has as many connections as it may have";
    return nullptr;
  }
  ++*connections_;
  const void* const place = of_client.get();
  return {place, [of_client = std::move(of_client), connections = connections_](const void*) { --*connections; }};
}

Places take_places(Process& process, ClientPlaces& listener, const boost::asio::ip::address& client) {
  Places out;
  auto of_listener = listener.take(client);
  if (!of_listener) {
    out.why = "this client has as many connections as it may have";
    return out;
  }
  auto of_process = process.take_place(client, out.why);
  if (!of_process) return out;
  const void* const place = of_process.get();
  out.of_both = {place, [of_listener = std::move(of_listener), of_process = std::move(of_process)](const void*) {}};
  return out;
}

}  // namespace iwarp::gateway
