// What it costs to connect many at once: connections from 8 threads at the same time into one listener, beside as many
// one after the other in the same run. Client and server are a process each. By hand; it prints a table in Markdown.
// Arguments: connections (default 512), rounds (default 9). Exit status 2: the median of the ratios is above the goal.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/cm/link.h"

namespace iwarp {
namespace {

using boost::asio::use_future;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kThreads = 8;
// At once may take so many times of one after the other.
constexpr double kGoal = 2;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Accepts whoever comes, and keeps the last `kept` of them.
[[noreturn]] void serve(int tell, std::size_t kept) {
  cm::Engine engine;
  const verbs::ProtectionDomain pd(engine.context());
  const auto listener =
      cm::Listener::listen(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}}).value();
  const std::uint16_t port = listener->local().port();
  if (::write(tell, &port, sizeof port) != sizeof port) std::_Exit(1);
  cm::CompletionQueue cq(engine, 16);
  std::deque<cm::Link> links;
  for (;;) {
    const auto request = listener->async_accept(use_future).get();
    if (links.size() == kept) links.pop_front();  // of the round before: its client has gone
    auto link = cm::Link::make(pd, {&cq, &cq, {}}).value();
    request->accept(link.qp(), {}, [](const Error&, const std::shared_ptr<cm::Connection>&) {});
    links.push_back(std::move(link));
  }
}

class Client {
 public:
  Client(std::uint16_t port, std::size_t connections)
      : options_{.host = "127.0.0.1", .port = port}, all_(connections) {}

  double one_after_the_other() {
    prepare();
    const auto begin = Clock::now();
    for (const cm::Link& link : links_) cm::async_connect(engine_, link.qp(), options_, use_future).get();
    return milliseconds_since(begin);
  }
  double at_once() {
    prepare();
    const auto begin = Clock::now();
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t] {
        std::vector<std::future<std::shared_ptr<cm::Connection>>> under_way;
        for (std::size_t i = t; i < links_.size(); i += kThreads)
          under_way.push_back(cm::async_connect(engine_, links_[i].qp(), options_, use_future));
        for (auto& connecting : under_way) (void)connecting.get();
      });
    }
    threads.clear();
    return milliseconds_since(begin);
  }

 private:
  void prepare() {
    links_.clear();
    for (std::size_t i = 0; i < all_; ++i) links_.push_back(cm::Link::make(pd_, {&cq_, &cq_, {}}).value());
  }

  cm::Engine engine_;
  verbs::ProtectionDomain pd_{engine_.context()};
  cm::CompletionQueue cq_{engine_, 16};
  cm::ConnectOptions options_;
  std::size_t all_;
  std::vector<cm::Link> links_;
};

int run(std::size_t connections, std::size_t rounds) {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const pid_t server = ::fork();
  if (server == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(ends[1], connections);
  }
  std::uint16_t port = 0;
  if (::read(ends[0], &port, sizeof port) != sizeof port) return 1;
  int code = 0;
  try {
    Client client(port, connections);
    std::vector<double> apart, together, ratios;
    for (std::size_t i = 0; i < rounds; ++i) {
      apart.push_back(client.one_after_the_other());
      together.push_back(client.at_once());
      ratios.push_back(together.back() / apart.back());
    }
    std::printf(
        "| %zu connections | one after the other, ms | at once from %zu threads, ms | at once / one after the other "
        "|\n",
        connections, kThreads);
    std::printf("|---|---|---|---|\n| median of %zu | %.0f | %.0f | %.2f (%.2f-%.2f) |\n", rounds, median(apart),
                median(together), median(ratios), *std::ranges::min_element(ratios), *std::ranges::max_element(ratios));
    if (median(ratios) > kGoal) {
      std::fprintf(stderr, "connects: the goal is missed: at once took %.2f of the time in sequence, at most %.0f\n",
                   median(ratios), kGoal);
      code = 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "connects: %s\n", e.what());
    code = 1;
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return code;
}

}  // namespace
}  // namespace iwarp

int main(int argc, char** argv) {
  const auto number = [&](int i, std::size_t usual) {
    return argc > i ? static_cast<std::size_t>(std::max(1, std::atoi(argv[i]))) : usual;
  };
  return iwarp::run(number(1, 512), number(2, 9));
}
