#include "tools/perf/idle.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "iwarp/stream/profile.h"
#include "tools/descriptor_limit.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf/statistics.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kTimed = 100;      // connects at either end of the crowd that are timed
constexpr std::size_t kOtherFiles = 64;  // descriptors of the process itself
constexpr auto kQuiet = 3s;

Holdings server_holdings(Control& control) {
  const auto answer = control.ask({{"command", "holdings"}});
  return {answer.at("resident_bytes").get<std::size_t>(), answer.at("descriptors").get<std::size_t>(),
          answer.at("sleeps").get<std::uint64_t>()};
}

double each(std::size_t before, std::size_t after, std::size_t count) {
  return (static_cast<double>(after) - static_cast<double>(before)) / static_cast<double>(count);
}

}  // namespace

Holdings holdings() {
  Holdings h;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  h.resident_bytes = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  h.descriptors = static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
  const std::string field = "voluntary_ctxt_switches:";
  const std::string self = std::to_string(::gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == self) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.compare(0, field.size(), field) == 0) h.sleeps += std::stoull(line.substr(field.size()));
    }
  }
  return h;
}

IdleReport measure_idle(Control& control, const std::string& host, std::size_t count, const std::string& profile,
                        const std::function<void(const std::string&)>& progress) {
  IdleReport report;
  report.connections = count;
  report.client_limit = raise_descriptor_limit();
  const auto theirs = control.ask({{"command", "limit"}});
  report.server_limit = {theirs.at("before").get<std::size_t>(), theirs.at("now").get<std::size_t>()};
  const std::size_t least = std::min(report.client_limit.now, report.server_limit.now);
  if (least < count + kTimed + kOtherFiles) {
    throw std::runtime_error(
        fmt::format("{} connections need {} descriptors at each end, and RLIMIT_NOFILE allows {} here and {} there: "
                    "raise the hard limit (ulimit -Hn, LimitNOFILE=) or ask for fewer",
                    count, count + kTimed + kOtherFiles, report.client_limit.now, report.server_limit.now));
  }
  Spec spec;
  spec.test = Test::kConnectRate;
  spec.size = 8;
  spec.profile = profile;
  const auto port =
      control.ask({{"command", "start"}, {"spec", spec}}).at("ports").get<std::vector<std::uint16_t>>().at(0);

  verbs::CompletionQueue cq(64);
  std::vector<std::shared_ptr<cm::Connection>> open;
  cm::Engine engine;
  engine.set_tap_maker(tap_maker);
  const verbs::ProtectionDomain pd(engine.context());
  cm::ConnectOptions options;
  options.host = host;
  options.port = port;
  stream::find_profile(profile)->apply(options.policy);
  options.mpa = stream_of(spec);
  const auto one = [&] {
    const auto begin = Clock::now();
    auto qp = std::make_shared<verbs::QueuePair>(
        pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq, .stream = stream_of(spec)});
    auto [error, connection] =
        await(engine, false, cm::async_connect(engine, std::move(qp), options, cm::as_error(boost::asio::use_future)));
    if (error.code != Errc::kOk) throw std::runtime_error(fmt::format("connection {}: {}", open.size() + 1, error.why));
    open.push_back(std::move(connection));
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  std::vector<double> first, last;
  (void)one();  // what comes once
  const Holdings client_before = holdings();
  const Holdings server_before = server_holdings(control);
  for (std::size_t i = 0; i < count; ++i) {
    const double ms = one();
    if (i < kTimed) first.push_back(ms);
    if (i % 256 == 0) progress(fmt::format("{} of {} connections", i, count));
  }
  std::this_thread::sleep_for(500ms);
  const Holdings client_full = holdings();
  const Holdings server_full = server_holdings(control);
  progress("quiet");
  std::this_thread::sleep_for(kQuiet);
  report.client_sleeps = holdings().sleeps - client_full.sleeps;
  report.server_sleeps = server_holdings(control).sleeps - server_full.sleeps;
  report.seconds_quiet = std::chrono::duration<double>(kQuiet).count();
  for (std::size_t i = 0; i < kTimed; ++i) last.push_back(one());
  report.client_bytes_each = each(client_before.resident_bytes, client_full.resident_bytes, count);
  report.server_bytes_each = each(server_before.resident_bytes, server_full.resident_bytes, count);
  report.client_descriptors_each = each(client_before.descriptors, client_full.descriptors, count);
  report.server_descriptors_each = each(server_before.descriptors, server_full.descriptors, count);
  report.first_ms = median(first);
  report.last_ms = median(last);
  for (const auto& connection : open) connection->qp()->abort();
  control.ask({{"command", "stop"}}, 60s);
  return report;
}

}  // namespace iwarp::tools::perf
