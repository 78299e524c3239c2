// `iwarp rping`: wire-compatible with rdma-core's rping, both roles.
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_future.hpp>
#include <iostream>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "iwarp/gateway/options.h"
#include "tools/command.h"
#include "tools/connection_log.h"
#include "tools/descriptor_limit.h"
#include "tools/layer_handle.h"
#include "tools/rping_side.h"

namespace iwarp::tools {
namespace {

using namespace rping;

constexpr std::uint32_t kMinSize = 26;  // room for "rdma-ping-4294967295: " and one character
constexpr std::uint32_t kMaxSize = 65535;

// Clients that a persistent server serves at a time, a thread each.
constexpr std::size_t kMaxClients = 256;

template <class T>
using Outcome = std::pair<Error, T>;
using Connected = Outcome<std::shared_ptr<llp::Connection>>;

boost::asio::ip::address address_of(const char* flag, const std::string& text) {
  boost::system::error_code bad;
  const auto address = boost::asio::ip::make_address(text, bad);
  if (bad) throw CLI::ValidationError(flag, "'" + text + "' is not an IP address of this host");
  return address;
}

// Gives the outcome of an asynchronous call to whom it awaits.
template <class T, class Fill>
auto into(Fill fill) {
  return [fill](const Error& error, T result) { fill(Outcome<T>(error, std::move(result))); };
}

// Where the report of each connection goes: a summary for people, and a JSON document of a client or, of a server, a
// record for each client that it served. Thread-safe.
class Reports {
 public:
  explicit Reports(const Flags& flags) : server_(flags.server) {
    if (!flags.json.given()) return;
    json_.emplace(flags.json);
    if (server_) json_->begin_lines(kCommand);
  }

  void tell(const Report& report) {
    const std::lock_guard lock(mu_);
    if (report.negotiated) std::cerr << (server_ ? report.peer + ": " : "") + summary(report) + "\n" << std::flush;
    if (!json_) return;
    if (server_) {
      json_->write_line(to_json(report));
    } else {
      json_->write(kCommand, to_json(report));
    }
  }

 private:
  static constexpr const char* kCommand = "rping";
  const bool server_;
  std::mutex mu_;
  std::optional<JsonOutput> json_;
};

Report begin_report(const Flags& flags, std::string peer) {
  Report report{.role = flags.server ? "server" : "client", .peer = std::move(peer)};
  report.sctp = flags.llp.kind() == llp::Kind::kSctp;
  if (flags.client) {
    report.wanted = flags.count;
    report.size = flags.size;
  }
  return report;
}

// No connection was made.
int not_connected(Reports& reports, Report report, const Error& error, bool interrupted) {
  if (!interrupted) log_failed(report.peer, error);
  report.interrupted = interrupted;
  report.end = name(interrupted ? Errc::kAborted : error.code);
  if (!interrupted) report.error = error.why;
  reports.tell(report);
  return interrupted ? kExitInterrupted : kExitFailed;
}

std::string error_of(const Report& report, const Side& side, const stream::Disconnected& how) {
  if (!side.error().empty()) return side.error();
  if (!side.ended() && cm::ordinary_end(how)) return {};
  // A client may leave a server whenever it likes, if only by its end.
  const bool left = how.reason.code == Errc::kPeerClosed || how.reason.code == Errc::kConnectionLost;
  if (report.role == "server") return left && !how.received ? "" : end_text(how, "client");
  return end_text(how, "server", " after " + pings_text(report.pings, report.wanted));
}

int finish(llp::Connection& connection, bool ok, const Side& side, const Interruption& interruption, Reports& reports,
           Report report) {
  report.interrupted = interruption.happened();
  if (report.interrupted || side.timed_out()) {
    connection.abort();
  } else if (!ok) {
    connection.disconnect();
  }
  const stream::Disconnected how = connection.async_wait_disconnected(boost::asio::use_future).get();
  log_closed(connection, how);
  report.negotiated = connection.negotiated();
  report.pings = side.pings();
  report.round_trips = side.round_trips();
  report.end = name(how.reason.code);
  if (!report.interrupted) report.error = error_of(report, side, how);
  if (!report.error.empty()) spdlog::error("{}", report.error);
  reports.tell(report);
  if (report.interrupted) return kExitInterrupted;
  return report.error.empty() ? kExitOk : kExitFailed;
}

// std::runtime_error: there is none.
LayerHandle lower_layer(cm::Engine& engine, const Flags& flags) {
  auto layer = llp::LowerLayer::make(engine, flags.llp.kind(), flags.llp.sctp());
  if (!layer) throw std::runtime_error(layer.error().why);
  return LayerHandle(layer->release());
}

int run_client(const Flags& flags) {
  Reports reports(flags);
  cm::Engine engine;
  const Interruption interruption(engine.io());
  flags.recorder.apply(engine);
  const auto layer = lower_layer(engine, flags);
  Side side(engine, interruption, flags);
  cm::ConnectOptions o;
  o.host = flags.address;
  o.port = flags.port;
  o.policy = flags.connection_policy();
  o.mpa = flags.policy.mpa();
  o.policy.startup_timeout = flags.patience(o.policy.startup_timeout);
  o.connect_timeout = flags.patience(o.connect_timeout);
  if (!flags.source.empty()) o.local = {address_of("-I", flags.source), 0};
  Report report = begin_report(flags, gateway::HostPort{flags.address, flags.port}.to_string());
  const auto connected = interruption.await<Connected>(
      [&](const auto& fill) { layer->connect(side.qp(), o, into<std::shared_ptr<llp::Connection>>(fill)); });
  const bool interrupted = !connected || interruption.happened();
  if (interrupted || connected->first.code != Errc::kOk)
    return not_connected(reports, std::move(report), interrupted ? Error{} : connected->first, interrupted);
  const auto& connection = connected->second;
  log_established(*connection);
  return finish(*connection, side.ping_client(*connection), side, interruption, reports, std::move(report));
}

int serve(cm::Engine& engine, const Interruption& interruption, const Flags& flags, Reports& reports,
          std::unique_ptr<llp::ConnectRequest> request) {
  Side side(engine, interruption, flags);
  const mpa::Policy policy = flags.connection_policy();
  Report report = begin_report(flags, cm::to_string(request->remote()));
  const auto accepted = interruption.await<Connected>([&](const auto& fill) {
    request->accept(side.qp(), {.ird = policy.ird, .ord = policy.ord, .mpa = flags.policy.mpa()},
                    into<std::shared_ptr<llp::Connection>>(fill));
  });
  const bool interrupted = !accepted || interruption.happened();
  if (interrupted || accepted->first.code != Errc::kOk)
    return not_connected(reports, std::move(report), interrupted ? Error{} : accepted->first, interrupted);
  const auto& connection = accepted->second;
  log_established(*connection);
  return finish(*connection, side.pong_server(*connection), side, interruption, reports, std::move(report));
}

int run_server(const Flags& flags) {
  if (flags.persistent) raise_descriptor_limit();
  Reports reports(flags);
  cm::Engine engine;
  const Interruption interruption(engine.io());
  flags.recorder.apply(engine);
  const auto layer = lower_layer(engine, flags);
  cm::ListenOptions o;
  o.policy = flags.connection_policy();
  o.on_shortage = [](const Error& e) { spdlog::warn("short of resources: {}", e.why); };
  o.policy.startup_timeout = flags.patience(o.policy.startup_timeout);
  o.endpoint = {address_of("-a", flags.address.empty() ? "::" : flags.address), flags.port};
  auto listener = layer->listen(o);
  if (!listener) {
    spdlog::error("cannot listen on {}: {}", cm::to_string(o.endpoint), listener.error().why);
    return kExitFailed;
  }
  spdlog::info("listening on {}", cm::to_string((*listener)->local()));
  struct Client {
    std::atomic<bool> over{false};
    std::jthread thread;
  };
  std::list<Client> clients;
  for (;;) {
    auto next = interruption.await<Outcome<std::unique_ptr<llp::ConnectRequest>>>(
        [&](const auto& fill) { (*listener)->accept(into<std::unique_ptr<llp::ConnectRequest>>(fill)); });
    if (!next) return kExitInterrupted;
    auto& [error, request] = *next;
    if (error.code != Errc::kOk) return kExitFailed;
    clients.remove_if([](const Client& c) { return c.over.load(); });
    if (clients.size() >= kMaxClients) {
      spdlog::warn("refused peer={}: {} clients are being served", cm::to_string(request->remote()), clients.size());
      (void)request->reject();
      continue;
    }
    if (!flags.persistent) return serve(engine, interruption, flags, reports, std::move(request));
    Client& client = clients.emplace_back();
    try {
      client.thread = std::jthread(
          [&engine, &interruption, &flags, &reports, &over = client.over, r = std::move(request)]() mutable {
            try {
              (void)serve(engine, interruption, flags, reports, std::move(r));
            } catch (const std::exception& e) {
              spdlog::error("client not served: {}", e.what());
            }
            over = true;
          });
    } catch (const std::system_error& e) {  // no thread to be had; the request went with the attempt, and is rejected
      spdlog::error("client not served: {}", e.what());
      clients.pop_back();
    }
  }
}

}  // namespace

Run add_rping(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("rping", "RDMA ping, compatible with rdma-core's rping");
  auto* server = cmd->add_flag("-s,--server", flags->server, "Server: wait for a client");
  cmd->add_flag("-c,--client", flags->client, "Client: ping a server")->excludes(server);
  cmd->add_flag("-P,--persistent", flags->persistent, "Server: serve clients until interrupted, many at a time");
  cmd->add_option("-a,--address", flags->address, "Server: address to listen on (default all). Client: host to ping");
  cmd->add_option("-p,--port", flags->port, "TCP port; with --llp sctp that of UDP and of SCTP")->capture_default_str();
  auto* size =
      cmd->add_option("-S,--size", flags->size, "Octets per ping (server: at most; default all that rping allows)")
          ->check(CLI::Range(kMinSize, kMaxSize))
          ->capture_default_str();
  cmd->add_option(
         "-C,--count", flags->count,
         "Client: iterations (default: until interrupted). A server, like rdma-core's, leaves the number to its client")
      ->check(CLI::Range(0, 2147483647));
  cmd->add_option("-I,--source", flags->source, "Client: address of this host to connect from (default: any)")
      ->type_name("ADDRESS");
  cmd->add_option("--timeout", flags->timeout_seconds,
                  "Seconds to wait for each step of the other side, the set-up of the connection included; 0: for ever "
                  "(default: 10 to connect, 5 to set up, 60 for each message)")
      ->check(CLI::Range(0, 86400));
  cmd->add_flag("-V,--validate", flags->validate, "Verify the data");
  cmd->add_flag("-v,--verbose", flags->verbose, "Print the data");
  cmd->add_flag("-d,--debug", flags->debug, "Log each step, and the round-trip time of each ping");
  cmd->add_flag("-q", flags->same_as_ever,
                "Taken for the sake of rdma-core's rping, where it changes how the program sets its device up");
  flags->json.add(*cmd, "Print the report as JSON; of a server a line for each client");
  flags->llp.add(*cmd, "Connection set-up");
  flags->policy.add(*cmd, 1);
  flags->recorder.add(*cmd);
  cmd->footer(
      "Examples:\n"
      "  iwarp rping -s                             serve one client on port 7174\n"
      "  iwarp rping -c -a 10.0.0.2 -C 10 -v -V     ping ten times, print and verify\n"
      "  iwarp rping -c -a ::1 --crc prefer-off     without CRC if the server agrees\n"
      "  iwarp rping -c -a 10.0.0.2 --llp sctp      over SCTP; the server likewise\n"
      "A client says at its end, on standard error, how long the pings took: each is two messages each way, an RDMA "
      "Read\n"
      "and an RDMA Write.");
  return [flags, size]() -> int {
    if (flags->server && size->count() == 0) flags->size = kMaxSize;
    if (flags->server == flags->client)
      throw CLI::ValidationError("rping", "choose one of -s (server) and -c (client)");
    if (flags->client && flags->address.empty())
      throw CLI::ValidationError("rping", "-c needs the server's address: -a HOST");
    if (flags->server && !flags->source.empty())
      throw CLI::ValidationError("-I", "goes with -c; a server listens on the address of -a");
    flags->llp.check();
    if (flags->llp.kind() == llp::Kind::kSctp && flags->recorder.given())
      throw CLI::ValidationError("--llp",
                                 "--trace and --pcap record connections over TCP: capture the packets of SCTP, "
                                 "and read them with `iwarp trace`");
    (void)flags->connection_policy();  // says what goes with what before anything is done
    if (flags->debug) spdlog::set_level(spdlog::level::debug);
    return flags->server ? run_server(*flags) : run_client(*flags);
  };
}

}  // namespace iwarp::tools
