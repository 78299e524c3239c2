#include "tools/gateway_run.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <utility>

#include "iwarp/gateway/backend_watch.h"
#include "iwarp/gateway/port_state.h"
#include "tools/command.h"
#include "tools/descriptor_limit.h"
#include "tools/gateway_settings.h"
#include "tools/gateway_watch.h"
#include "tools/log_format.h"
#include "tools/service_manager.h"
#include "tools/stats_file.h"

namespace iwarp::tools {
namespace {

using boost::system::error_code;

class GatewayRun {
 public:
  GatewayRun(const GatewayConfig& config, std::string file, bool stats_by_flag)
      : flags_(config.process),
        file_(std::move(file)),
        stats_by_flag_(stats_by_flag),
        stats_(flags_.stats),
        ports_file_(ports_file(flags_.state_dir)),
        engine_(io_),
        service_(engine_, config.service.process) {
    flags_.recorder.apply(engine_);
  }

  int run(const gateway::ServiceSettings& settings) {
    set_log_level(flags_.log_level);
    warn_of_few_descriptors(settings);
    // Before anybody can know that we listen, and send one.
    wait_for_signals();
    load_ports();
    const auto applied = service_.apply(settings);
    if (!applied) {
      spdlog::error("{}", applied.error);
      return kExitFailed;
    }
    if (!watch_.open()) return kExitFailed;
    settings_ = settings;
    log_listeners({});
    watch_.listeners_changed();
    manager_.ready(status());
    spdlog::default_logger()->set_formatter(log_formatter(""));  // errors are no longer those that end a command
    keep_alive();
    backends_.watch(settings_.listeners);
    keep_ports();
    io_.run();
    save_ports();
    if (!flags_.stats.empty()) stats_.write(service_.snapshot());
    return kExitOk;
  }

 private:
  void set_log_level(const std::string& level) const {
    spdlog::set_level(level.empty() ? usual_level_ : spdlog::level::from_str(level));
  }

  // A connection has a socket on either side.
  static void warn_of_few_descriptors(const gateway::ServiceSettings& settings) {
    const std::size_t connections = settings.process.max_connections;
    if (const std::size_t limit = raise_descriptor_limit().now; limit / 2 < connections) {
      spdlog::warn(
          "{} descriptors (RLIMIT_NOFILE) are too few for --max-connections {}: raise the hard limit "
          "(ulimit -Hn, LimitNOFILE=), or clients will have to wait",
          limit, connections);
    }
  }

  void wait_for_signals() {
    wait_for(ends_, [this](int) { end(); });
    wait_for(asks_, [this](int) { stats_.write(service_.snapshot()); });
    wait_for(hangs_up_, [this](int) {
      if (file_.empty()) return spdlog::info("SIGHUP is ignored: flags are read at the start only");
      if (!draining_) reload();
    });
    wait_for(ignored_, [](int) { spdlog::info("SIGUSR2 is ignored"); });
  }
  void wait_for(boost::asio::signal_set& signals, std::function<void(int)> handler) {
    signals.async_wait([this, &signals, handler = std::move(handler)](error_code ec, int number) {
      if (ec) return;
      handler(number);
      wait_for(signals, handler);
    });
  }

  void end() {
    if (std::exchange(draining_, true)) return io_.stop();
    spdlog::info("shutting down: no new clients, waiting for outstanding RPCs (a second signal ends at once)");
    manager_.stopping(std::chrono::ceil<std::chrono::seconds>(service_.process().options().drain_timeout));
    backends_.watch({});
    watch_.ending();
    service_.drain([this] { io_.stop(); });
  }

  // A file with an error changes nothing.
  void reload() {
    manager_.reloading();
    ReadConfig read = read_gateway_config(file_);
    if (read.config) {
      const auto changes = service_.apply(read.config->service);
      if (changes) {
        spdlog::info("reloaded: {} added, {} removed, {} changed", changes.value->added, changes.value->removed,
                     changes.value->changed);
        take_process_flags(std::move(read.config->process));
        const auto before = std::exchange(settings_, std::move(read.config->service));
        log_listeners(before);
        watch_.listeners_changed();
        backends_.watch(settings_.listeners);
        return manager_.ready(status());
      }
      read.errors.push_back(changes.error);
    }
    for (const std::string& error : read.errors) spdlog::error("{}", error);
    spdlog::error("not reloaded: everything stays as it was");
    manager_.ready("reload failed, everything stays as it was: " + read.errors.front());
  }

  void take_process_flags(ProcessFlags next) {
    set_log_level(next.log_level);
    if (stats_by_flag_) next.stats = flags_.stats;
    if (next.stats != flags_.stats || next.state_dir != flags_.state_dir || next.recorder != flags_.recorder ||
        next.watch != flags_.watch || next.workers != flags_.workers)
      spdlog::warn(
          "[process] workers, stats, state-dir, metrics, rpcbind, trace, trace-fpdus and pcap are read at the start "
          "only: restart to change them");
    flags_.log_level = std::move(next.log_level);
  }

  // Those that are not as they were.
  void log_listeners(const gateway::ServiceSettings& before) const {
    const auto fronts = service_.fronts();
    for (std::size_t i = 0; i < settings_.listeners.size(); ++i) {
      const auto& listener = settings_.listeners[i];
      if (std::ranges::count(before.listeners, listener) > 0) continue;
      spdlog::info("{}listening on {}", log_prefix(listener.name), describe(listener, fronts[i].local));
    }
  }

  [[nodiscard]] std::string status() const {
    const std::size_t n = settings_.listeners.size();
    return fmt::format("{} listener{}", n, n == 1 ? "" : "s");
  }

  // When the loops that serve the connections have answered: one that hangs tells nothing.
  void keep_alive() {
    const auto interval = manager_.watchdog();
    if (!interval) return;
    manager_.alive();
    watchdog_.expires_after(*interval);
    watchdog_.async_wait([this](error_code ec) {
      if (!ec) service_.process().when_all_answer([this] { keep_alive(); });
    });
  }

  // Empty: none.
  static std::string ports_file(const std::string& state_dir) {
    std::string directory = state_dir;
    if (const char* given = std::getenv("STATE_DIRECTORY"); directory.empty() && given != nullptr) {
      directory = given;
      directory.erase(std::min(directory.find(':'), directory.size()));  // systemd may name several
    }
    return directory.empty() ? "" : directory + "/ports";
  }

  // A file that is damaged is no reason not to serve; one that cannot be written is.
  void load_ports() {
    if (ports_file_.empty()) return;
    auto& ports = service_.process().ports();
    if (const std::string wrong = gateway::load_ports(ports_file_, ports); !wrong.empty())
      spdlog::warn("source ports of before are not known: {}", wrong);
    if (const std::string wrong = gateway::save_ports(ports_file_, ports); !wrong.empty())
      throw std::runtime_error(wrong + ": see --state-dir");
  }
  void save_ports() {
    if (ports_file_.empty()) return;
    if (const std::string wrong = gateway::save_ports(ports_file_, service_.process().ports()); !wrong.empty())
      spdlog::error("{}", wrong);
  }
  // Now and then, for an end without warning.
  void keep_ports() {
    if (ports_file_.empty()) return;
    save_.expires_after(kSavePorts);
    save_.async_wait([this](error_code ec) {
      if (ec) return;
      const auto snapshot = service_.snapshot();
      if (snapshot.active() > 0 || snapshot.opened != std::exchange(opened_, snapshot.opened)) save_ports();
      keep_ports();
    });
  }

  static constexpr std::chrono::seconds kSavePorts{60};

  ProcessFlags flags_;
  std::string file_;
  bool stats_by_flag_;
  StatsFile stats_;
  std::string ports_file_;
  boost::asio::io_context io_{1};
  cm::Engine engine_;
  gateway::Service service_;
  GatewayWatch watch_{io_, service_, flags_.watch};
  gateway::ServiceSettings settings_;
  ServiceManager manager_;
  boost::asio::signal_set ends_{io_, SIGINT, SIGTERM};
  boost::asio::signal_set asks_{io_, SIGUSR1};
  boost::asio::signal_set hangs_up_{io_, SIGHUP};
  boost::asio::signal_set ignored_{io_, SIGUSR2};
  gateway::BackendWatch backends_{io_};
  boost::asio::steady_timer watchdog_{io_};
  boost::asio::steady_timer save_{io_};
  std::uint64_t opened_ = 0;                                           // connections when the ports were saved
  const spdlog::level::level_enum usual_level_ = spdlog::get_level();  // of --debug
  bool draining_ = false;
};

}  // namespace

int run_gateway(const GatewayConfig& config, const std::string& file, bool stats_by_flag) {
  GatewayRun run(config, file, stats_by_flag);
  return run.run(config.service);
}

}  // namespace iwarp::tools
