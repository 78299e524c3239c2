// `iwarp rping`: wire-compatible with rdma-core's rping, both roles.
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_future.hpp>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/gateway/options.h"
#include "tools/command.h"
#include "tools/connection_log.h"
#include "tools/descriptor_limit.h"
#include "tools/rping_side.h"

namespace iwarp::tools {
namespace {

using rping::Flags;
using rping::Side;

constexpr std::uint32_t kMinSize = 26;  // room for "rdma-ping-4294967295: " and one character
constexpr std::uint32_t kMaxSize = 65535;

// Clients that a persistent server serves at a time, a thread each.
constexpr std::size_t kMaxClients = 256;

template <class T>
using Outcome = std::pair<Error, T>;
using Connected = Outcome<std::shared_ptr<cm::Connection>>;

// Gives the outcome of an asynchronous call to whom it awaits.
template <class T, class Fill>
auto into(Fill fill) {
  return [fill](const Error& error, T result) { fill(Outcome<T>(error, std::move(result))); };
}

int finish(const std::shared_ptr<cm::Connection>& connection, bool ok, const Side& side,
           const Interruption& interruption) {
  const bool interrupted = interruption.happened();
  if (interrupted || side.timed_out()) {
    connection->abort();
  } else if (!ok) {
    connection->disconnect();
  }
  const stream::Disconnected how = connection->async_wait_disconnected(boost::asio::use_future).get();
  log_closed(*connection, how);
  if (interrupted) return kExitInterrupted;
  return ok && !side.data_error() && !side.timed_out() && cm::ordinary_end(how) ? kExitOk : kExitFailed;
}

int run_client(const Flags& flags) {
  cm::Engine engine;
  const Interruption interruption(engine.io());
  flags.recorder.apply(engine);
  Side side(engine, interruption, flags);
  cm::ConnectOptions o;
  o.host = flags.address;
  o.port = flags.port;
  o.policy = flags.policy.policy();
  const auto connected = interruption.await<Connected>(
      [&](const auto& fill) { cm::connect(engine, side.qp(), o, into<std::shared_ptr<cm::Connection>>(fill)); });
  if (!connected || interruption.happened()) return kExitInterrupted;
  const auto& [error, connection] = *connected;
  if (error.code != Errc::kOk) {
    log_failed(gateway::HostPort{flags.address, flags.port}.to_string(), error);
    return kExitFailed;
  }
  log_established(*connection);
  return finish(connection, side.ping_client(connection), side, interruption);
}

int serve(cm::Engine& engine, const Interruption& interruption, const Flags& flags,
          std::unique_ptr<cm::ConnectRequest> request) {
  Side side(engine, interruption, flags);
  const mpa::Policy policy = flags.policy.policy();
  const std::string peer = cm::to_string(request->remote());
  const auto accepted = interruption.await<Connected>([&](const auto& fill) {
    request->accept(side.qp(), {policy.ird, policy.ord, {}}, into<std::shared_ptr<cm::Connection>>(fill));
  });
  if (!accepted || interruption.happened()) return kExitInterrupted;
  const auto& [error, connection] = *accepted;
  if (error.code != Errc::kOk) {
    log_failed(peer, error);
    return kExitFailed;
  }
  log_established(*connection);
  return finish(connection, side.pong_server(connection), side, interruption);
}

int run_server(const Flags& flags) {
  if (flags.persistent) raise_descriptor_limit();
  cm::Engine engine;
  const Interruption interruption(engine.io());
  flags.recorder.apply(engine);
  cm::ListenOptions o;
  o.policy = flags.policy.policy();
  o.on_shortage = [](const Error& e) { spdlog::warn("short of resources: {}", e.why); };
  boost::system::error_code bad;
  const auto address = boost::asio::ip::make_address(flags.address.empty() ? "::" : flags.address, bad);
  if (bad) throw CLI::ValidationError("-a", "'" + flags.address + "' is not an IP address of this host");
  o.endpoint = {address, flags.port};
  auto listener = cm::Listener::listen(engine, o);
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
    auto next = interruption.await<Outcome<std::unique_ptr<cm::ConnectRequest>>>(
        [&](const auto& fill) { (*listener)->accept(into<std::unique_ptr<cm::ConnectRequest>>(fill)); });
    if (!next) return kExitInterrupted;
    auto& [error, request] = *next;
    if (error.code != Errc::kOk) return kExitFailed;
    clients.remove_if([](const Client& c) { return c.over.load(); });
    if (clients.size() >= kMaxClients) {
      spdlog::warn("refused peer={}: {} clients are being served", cm::to_string(request->remote()), clients.size());
      request->reject();
      continue;
    }
    if (!flags.persistent) return serve(engine, interruption, flags, std::move(request));
    Client& client = clients.emplace_back();
    try {
      client.thread =
          std::jthread([&engine, &interruption, &flags, &over = client.over, r = std::move(request)]() mutable {
            try {
              (void)serve(engine, interruption, flags, std::move(r));
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
  cmd->add_option("-p,--port", flags->port, "TCP port")->capture_default_str();
  auto* size =
      cmd->add_option("-S,--size", flags->size, "Octets per ping (server: at most; default all that rping allows)")
          ->check(CLI::Range(kMinSize, kMaxSize))
          ->capture_default_str();
  cmd->add_option(
         "-C,--count", flags->count,
         "Client: iterations (default: until interrupted). A server, like rdma-core's, leaves the number to its client")
      ->check(CLI::Range(0, 2147483647));
  cmd->add_option("--timeout", flags->timeout_seconds, "Seconds to wait for each step of the other side; 0: for ever")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  cmd->add_flag("-V,--validate", flags->validate, "Verify the data");
  cmd->add_flag("-v,--verbose", flags->verbose, "Print the data");
  flags->policy.add(*cmd, 1);
  flags->recorder.add(*cmd);
  cmd->footer(
      "Examples:\n"
      "  iwarp rping -s                             serve one client on port 7174\n"
      "  iwarp rping -c -a 10.0.0.2 -C 10 -v -V     ping ten times, print and verify\n"
      "  iwarp rping -c -a ::1 --crc prefer-off     without CRC if the server agrees");
  return [flags, size]() -> int {
    if (flags->server && size->count() == 0) flags->size = kMaxSize;
    if (flags->server == flags->client)
      throw CLI::ValidationError("rping", "choose one of -s (server) and -c (client)");
    if (flags->client && flags->address.empty())
      throw CLI::ValidationError("rping", "-c needs the server's address: -a HOST");
    return flags->server ? run_server(*flags) : run_client(*flags);
  };
}

}  // namespace iwarp::tools
