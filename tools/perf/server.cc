#include "tools/perf/server.h"

#include <poll.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "tools/descriptor_limit.h"
#include "tools/perf/control.h"
#include "tools/perf/end.h"
#include "tools/perf/idle.h"

namespace iwarp::tools::perf {
namespace {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

// Of a kernel that lacks it, a privileged process that asks for it has a module loaded, and no client may do that here.
void check_congestion(const std::string& name) {
  if (name.empty()) return;
  std::ifstream list("/proc/sys/net/ipv4/tcp_available_congestion_control");
  if (!list)
    throw std::runtime_error(name + ": cannot read net.ipv4.tcp_available_congestion_control, so the default only");
  for (std::string known; list >> known;) {
    if (known == name) return;
  }
  throw std::runtime_error(name +
                           ": the kernel has no TCP congestion control of that name here "
                           "(net.ipv4.tcp_available_congestion_control); if it has a module for it, load that first");
}

// What a test does besides its sample: verification of the largest region over a slow network, or a million idle
// connections.
constexpr auto kBesidesSample = 10min;
// How long one that is told to come again may take to go.
constexpr auto kFarewell = 500ms;

// Where a signal handler says that serve() should look up. A flag alone, set just before poll(), would go unseen.
std::atomic<int> alarm_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");

class Alarm {
 public:
  Alarm() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw std::runtime_error(std::string("cannot make an eventfd: ") + std::strerror(errno));
    alarm_fd = fd_;
  }
  ~Alarm() {
    alarm_fd = -1;
    ::close(fd_);
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

// The passive ends of one test, a thread each.
class Running {
 public:
  Running(const Spec& spec, const std::string& host) {
    // In a thread of that processor, as those of an engine, which listening starts, inherit where they run.
    std::async(std::launch::async, [&] {
      bind_to_cpu(spec.cpu);
      for (std::uint32_t i = 0; i < spec.threads; ++i)
        ends_.push_back(is_raw(spec.test) ? listen_raw(spec, host) : listen_rdma(spec, host));
    }).get();
    try {
      for (const auto& end : ends_) threads_.emplace_back([this, &end = *end, cpu = spec.cpu] { serve(end, cpu); });
    } catch (...) {  // no thread to be had: those that run would never end
      (void)stop();
      throw;
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
  void serve(Passive& end, int cpu) {
    try {
      bind_to_cpu(cpu);
      end.serve(stop_);
    } catch (const std::exception& e) {
      const std::lock_guard lock(mu_);
      if (failure_.empty()) failure_ = e.what();
    }
  }

  std::vector<std::unique_ptr<Passive>> ends_;
  std::atomic<bool> stop_{false};
  std::mutex mu_;
  std::string failure_;
  std::list<std::jthread> threads_;  // joined first
};

// One client's control connection.
class Conversation {
 public:
  Conversation(Control& control, std::string host, std::chrono::milliseconds patience)
      : control_(control), host_(std::move(host)), patience_(patience), deadline_(Clock::now() + patience) {}

  // Returns when the client has gone. Throws std::runtime_error when it runs no test for too long, whatever it says.
  void hold() {
    while (!interrupted) {
      const auto message = control_.receive(running_ ? longest_silence(spec_) : deadline_ - Clock::now());
      if (!message) return;
      try {
        control_.send(answer(*message));
      } catch (const nlohmann::json::exception& e) {
        control_.send({{"error", std::string("malformed request: ") + e.what() +
                                     "; do both ends have the same version of iwarp?"}});
      } catch (const std::invalid_argument& e) {
        control_.send({{"error", e.what()}});
      } catch (const std::runtime_error& e) {  // sockets, threads
        control_.send({{"error", e.what()}});
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  nlohmann::json answer(const nlohmann::json& message) {
    const std::string command = message.value("command", "");
    if (command == "start") {
      (void)stop();
      spec_ = message.at("spec").get<Spec>();
      check_cpu(spec_.cpu);
      check_congestion(spec_.congestion);
      running_ = std::make_unique<Running>(spec_, host_);
      return {{"ports", running_->ports()}};
    }
    if (command == "cpu") return {{"seconds", cpu_seconds()}};
    if (command == "limit") {
      const DescriptorLimit limit = raise_descriptor_limit();
      return {{"before", limit.before}, {"now", limit.now}};
    }
    if (command == "holdings") {
      const Holdings h = holdings();
      return {{"resident_bytes", h.resident_bytes}, {"descriptors", h.descriptors}, {"sleeps", h.sleeps}};
    }
    if (command == "stop") return stop();
    return {{"error", "unknown command '" + command + "'"}};
  }

  nlohmann::json stop() {
    if (!running_) return nlohmann::json::object();
    const std::string failure = running_->stop();
    running_.reset();
    deadline_ = Clock::now() + patience_;
    if (!failure.empty()) return {{"error", failure}};
    return nlohmann::json::object();
  }

  Control& control_;
  std::string host_;
  std::chrono::milliseconds patience_;
  Clock::time_point deadline_;  // for the next test to start
  Spec spec_;                   // of the test that runs
  std::unique_ptr<Running> running_;
};

// Closing with its request unread would reset the connection, and the refusal might be lost.
void send_away(tcp::socket socket) {
  try {
    Control control(std::move(socket));
    control.send({{"error", "another client is being served: try again later"}});
    const auto end = std::chrono::steady_clock::now() + kFarewell;
    while (control.receive(end - std::chrono::steady_clock::now())) {
    }
  } catch (const std::exception&) {  // it has gone again, or stays
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
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("cannot run on processor " + std::to_string(cpu) + ": " + std::strerror(errno));
}

void check_cpu(int cpu) {
  std::async(std::launch::async, bind_to_cpu, cpu).get();
}

std::chrono::milliseconds longest_silence(const Spec& spec) {
  return std::chrono::milliseconds(spec.milliseconds) + kBesidesSample;
}

void interrupt() {
  const int before = errno;
  interrupted = true;
  if (const int fd = alarm_fd; fd >= 0) (void)::eventfd_write(fd, 1);
  errno = before;
}

void serve(const tcp::endpoint& endpoint, bool once, std::chrono::milliseconds patience,
           const std::function<void(const tcp::endpoint&)>& listening) {
  const Alarm alarm;
  boost::asio::io_context io;
  tcp::acceptor acceptor(io, endpoint);
  listening(acceptor.local_endpoint());
  std::shared_ptr<Control> current;
  std::atomic<bool> busy{false};
  std::jthread thread;  // joined before what it uses goes
  while (!interrupted) {
    std::array<pollfd, 2> waited{{{acceptor.native_handle(), POLLIN, 0}, {alarm.fd(), POLLIN, 0}}};
    if (::poll(waited.data(), waited.size(), -1) <= 0 || waited[0].revents == 0) continue;
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
      send_away(std::move(socket));
      continue;
    }
    if (thread.joinable()) thread.join();
    current = std::make_shared<Control>(std::move(socket));
    busy = true;
    const auto converse_with = [control = current, host, patience, &busy] {
      try {
        Conversation(*control, host, patience).hold();
      } catch (const std::exception& e) {
        if (!interrupted) spdlog::warn("client lost: {}", e.what());
      }
      busy = false;
      control->shut();  // or a client that was sent away would wait for its next answer
    };
    if (once) return converse_with();
    thread = std::jthread(converse_with);
  }
  if (busy) current->shut();
}

}  // namespace iwarp::tools::perf
