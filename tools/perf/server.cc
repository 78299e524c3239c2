#include "tools/perf/server.h"

#include <poll.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <list>
#include <mutex>
#include <thread>

#include "tools/perf/control.h"
#include "tools/perf/end.h"
#include "tools/perf/idle.h"

namespace iwarp::tools::perf {
namespace {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

// A sample takes an hour at most.
constexpr std::chrono::seconds kLongestTest = 2h;

// The passive ends of one test, a thread each.
class Running {
 public:
  Running(const Spec& spec, const std::string& host) {
    for (std::uint32_t i = 0; i < spec.threads; ++i)
      ends_.push_back(is_raw(spec.test) ? listen_raw(spec, host) : listen_rdma(spec, host));
    for (const auto& end : ends_) {
      threads_.emplace_back([this, &end = *end, cpu = spec.cpu] {
        try {
          bind_to_cpu(cpu);
          end.serve(stop_);
        } catch (const std::exception& e) {
          const std::lock_guard lock(mu_);
          if (failure_.empty()) failure_ = e.what();
        }
      });
    }
  }
  ~Running() { (void)stop(); }

  [[nodiscard]] std::vector<std::uint16_t> ports() const {
    std::vector<std::uint16_t> list;
    for (const auto& end : ends_) list.push_back(end->port());
    return list;
  }
  // Ends the test; what went wrong, if anything.
  std::string stop() {
    stop_ = true;
    stop_.notify_all();
    threads_.clear();
    return failure_;
  }

 private:
  std::vector<std::unique_ptr<Passive>> ends_;
  std::atomic<bool> stop_{false};
  std::mutex mu_;
  std::string failure_;
  std::list<std::jthread> threads_;  // joined first
};

nlohmann::json answer(const nlohmann::json& message, const std::string& host, std::unique_ptr<Running>& running) {
  const std::string command = message.value("command", "");
  if (command == "start") {
    running.reset();
    running = std::make_unique<Running>(message.at("spec").get<Spec>(), host);
    return {{"ports", running->ports()}};
  }
  if (command == "cpu") return {{"seconds", cpu_seconds()}};
  if (command == "limit") return {{"descriptors", raise_descriptor_limit()}};
  if (command == "holdings") {
    const Holdings h = holdings();
    return {{"resident_bytes", h.resident_bytes}, {"descriptors", h.descriptors}, {"sleeps", h.sleeps}};
  }
  if (command == "stop") {
    const std::string failure = running ? running->stop() : "";
    running.reset();
    if (!failure.empty()) return {{"error", failure}};
    return nlohmann::json::object();
  }
  return {{"error", "unknown command '" + command + "'"}};
}

void converse(Control& control, const std::string& host) {
  std::unique_ptr<Running> running;
  std::chrono::seconds patience = 10s;  // nobody else is served meanwhile
  while (!interrupted) {
    const auto message = control.receive(patience);
    if (!message) return;
    patience = kLongestTest;
    try {
      control.send(answer(*message, host, running));
    } catch (const nlohmann::json::exception& e) {
      control.send({{"error", std::string("malformed request: ") + e.what()}});
    } catch (const std::invalid_argument& e) {
      control.send({{"error", e.what()}});
    } catch (const boost::system::system_error& e) {
      control.send({{"error", e.what()}});
    }
  }
}

}  // namespace

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void bind_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0) {
    CPU_SET(static_cast<unsigned>(cpu), &set);
  } else {
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) CPU_SET(i, &set);
  }
  ::sched_setaffinity(0, sizeof set, &set);
}

void serve(const tcp::endpoint& endpoint, bool once, const std::function<void(const tcp::endpoint&)>& listening) {
  boost::asio::io_context io;
  tcp::acceptor acceptor(io, endpoint);
  listening(acceptor.local_endpoint());
  std::shared_ptr<Control> current;
  std::atomic<bool> busy{false};
  std::jthread thread;  // joined before what it uses goes
  while (!interrupted) {
    pollfd waited{acceptor.native_handle(), POLLIN, 0};
    if (::poll(&waited, 1, -1) <= 0) continue;  // a signal
    boost::system::error_code ec;
    tcp::socket socket(io);
    acceptor.accept(socket, ec);
    if (ec) {
      std::this_thread::sleep_for(100ms);  // no descriptor is left, perhaps
      continue;
    }
    const std::string host = socket.local_endpoint(ec).address().to_string();
    if (ec) continue;
    if (busy) {
      try {
        Control(std::move(socket)).send({{"error", "another client is being served: try again later"}});
      } catch (const std::exception&) {  // it has gone again
      }
      continue;
    }
    if (thread.joinable()) thread.join();
    current = std::make_shared<Control>(std::move(socket));
    busy = true;
    const auto converse_with = [control = current, host, &busy] {
      try {
        converse(*control, host);
      } catch (const std::exception& e) {
        if (!interrupted) spdlog::warn("client lost: {}", e.what());
      }
      busy = false;
    };
    if (once) return converse_with();
    thread = std::jthread(converse_with);
  }
  if (busy) current->shut();
}

}  // namespace iwarp::tools::perf
