// `iwarp rping`: wire-compatible with rdma-core's rping, both roles. Per iteration: the client advertises a source
// buffer (Send), the server reads it (RDMA Read) and acknowledges (Send); the client advertises a sink, the server
// writes the data back (RDMA Write) and acknowledges.
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <list>
#include <optional>
#include <system_error>
#include <thread>

#include "iwarp/base/wire.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/memory_region.h"
#include "tools/command.h"
#include "tools/connection_log.h"
#include "tools/descriptor_limit.h"
#include "tools/interruption.h"
#include "tools/policy_flags.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using ddp::Access;
using verbs::MemoryRegion;
using Clock = std::chrono::steady_clock;

struct Flags {
  bool server = false;
  bool client = false;
  bool persistent = false;
  bool verbose = false;
  bool validate = false;
  std::string address;
  std::uint16_t port = 7174;
  std::uint32_t size = 64;
  std::uint64_t count = 0;
  unsigned timeout_seconds = 60;
  PolicyFlags policy;
  RecorderFlags recorder;
};

constexpr std::size_t kInfoBytes = 16;  // 0 buffer address (8) | 8 rkey (4) | 12 size (4)
constexpr std::uint32_t kMinSize = 26;  // room for "rdma-ping-4294967295: " and one character
constexpr std::uint32_t kMaxSize = 65535;

// One for the message whose turn it is, one for a message out of turn, so that it can be named.
constexpr std::size_t kReceives = 2;

// Clients that a persistent server serves at a time, a thread each.
constexpr std::size_t kMaxClients = 256;

constexpr unsigned kForEver = 1000000000;  // seconds

// What a peer put into `data`, up to its NUL, fit for a terminal.
std::string printable(ConstBytes data) {
  std::string out;
  for (const std::byte b : data) {
    const auto c = std::to_integer<unsigned char>(b);
    if (c == 0) break;
    out += c >= 0x20 && c < 0x7F ? static_cast<char>(c) : '.';
  }
  return out;
}

// What both roles share: queue pair, completion queue, the message buffers and the data buffers.
class Side {
 public:
  Side(cm::Engine& engine, const Interruption& interruption, const Flags& flags)
      : flags_(flags),
        interruption_(interruption),
        pd_(engine.context()),
        cq_(64, &engine),
        data_(flags.size),
        source_(flags.size) {
    verbs::QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    o.stream.sq_depth = o.stream.rq_depth = 8;
    o.stream.fpdu = flags.policy.fpdu();
    qp_ = std::make_shared<verbs::QueuePair>(pd_, o);
    send_mr_ = add(send_, Access::kLocalRead);
    recv_mr_ = add(recv_, Access::kLocalWrite);
    data_mr_ = add(data_, Access::kLocalWrite | Access::kRemoteWrite);
    source_mr_ = add(source_, Access::kRemoteRead);
    for (std::size_t i = 0; i < kReceives; ++i) check(post_recv(i));
    end_.emplace(interruption, [this] { qp_->abort(); });  // which wakes who waits for a completion
  }

  // The engine may still hold the queue pair, which names our completion queue.
  ~Side() { qp_->abort(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // False when the connection ended (told apart by `why`) or the user pressed Ctrl-C.
  bool ping_client(const std::shared_ptr<cm::Connection>& connection);
  bool pong_server(const std::shared_ptr<cm::Connection>& connection);
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  [[nodiscard]] bool data_error() const { return data_error_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }

 private:
  static void check(const Result<void>& r) {
    if (!r) throw std::runtime_error(r.error().why);
  }
  MemoryRegion add(MutBytes memory, Access access) {
    MemoryRegion::Options o;
    o.access = access;
    auto region = MemoryRegion::register_memory(pd_, memory, o);
    if (!region) throw std::runtime_error(region.error().why);
    return std::move(*region);
  }
  Result<void> post_recv(std::size_t i) {
    return qp_->post_recv({.wr_id = i, .sges = verbs::Sge{recv_.data() + i * kInfoBytes, kInfoBytes, recv_mr_.stag()}});
  }
  bool send_info(const MemoryRegion& advertised, std::uint32_t size) {
    FixedWriter<kInfoBytes> w{std::span{send_}};
    w.be<0>(advertised ? advertised.to_of(advertised.memory().data()) : std::uint64_t{0});
    w.be<8>(advertised ? raw(advertised.stag()) : std::uint32_t{0});
    w.be<12>(size);
    return run({.op = verbs::SendOp::kSend, .sges = verbs::Sge{send_.data(), kInfoBytes, send_mr_.stag()}});
  }
  // Posts and waits for the completion. Receives that complete meanwhile are counted.
  bool run(const verbs::SendWr& wr) {
    if (!qp_->post_send(wr)) return false;
    while (sends_done_ == 0) {
      if (!pump()) return false;
    }
    --sends_done_;
    return true;
  }
  bool await_message() {
    while (!received_) {
      if (!pump()) return false;
    }
    remote_ = *std::exchange(received_, std::nullopt);
    return true;
  }
  bool pump() {
    verbs::Completion c;
    const auto patience = std::chrono::seconds(flags_.timeout_seconds != 0 ? flags_.timeout_seconds : kForEver);
    const auto deadline = Clock::now() + patience;
    while (cq_.poll({&c, 1}) == 0) {
      if (!cq_.wait_for(deadline - Clock::now()) && Clock::now() >= deadline) {
        spdlog::error("nothing from the {} within {} s (--timeout)", flags_.client ? "server" : "client",
                      flags_.timeout_seconds);
        timed_out_ = true;
        return false;
      }
    }
    if (c.status != Errc::kOk) return false;
    if (c.op != verbs::WcOp::kRecv) {
      ++sends_done_;
      return true;
    }
    if (c.byte_len != kInfoBytes) {
      spdlog::error("peer sent a message of {} octets where rping has {}", c.byte_len, kInfoBytes);
      return false;
    }
    // The one in use has been judged, and is not touched.
    if (received_) {
      spdlog::error("peer sent a message out of turn");
      return false;
    }
    const auto v = *FixedView<kInfoBytes>::of(ConstBytes{recv_}.subspan(c.wr_id * kInfoBytes));
    received_ = {v.be<std::uint64_t, 0>(), Stag{v.be<std::uint32_t, 8>()}, v.be<std::uint32_t, 12>()};
    return static_cast<bool>(post_recv(c.wr_id));
  }

  const Flags& flags_;
  const Interruption& interruption_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::array<std::byte, kInfoBytes> send_{};
  std::array<std::byte, kReceives * kInfoBytes> recv_{};
  std::vector<std::byte> data_, source_;
  std::shared_ptr<verbs::QueuePair> qp_;
  MemoryRegion send_mr_, recv_mr_, data_mr_, source_mr_;
  // What the peer advertises.
  struct Remote {
    std::uint64_t to = 0;
    Stag stag{};
    std::uint32_t size = 0;
  };
  std::size_t sends_done_ = 0;
  Remote remote_;                   // of the message last waited for
  std::optional<Remote> received_;  // not yet waited for
  bool data_error_ = false;
  bool timed_out_ = false;
  std::optional<Interruption::Hook> end_;
};

// "rdma-ping-7: HIJ...": the letters start one further with each iteration.
void fill(std::span<std::byte> buffer, std::uint64_t iteration) {
  std::array<char, 48> head{};
  const int n = std::snprintf(head.data(), head.size(), "rdma-ping-%d: ", static_cast<int>(iteration));
  const std::size_t text = std::min(static_cast<std::size_t>(n), buffer.size());
  std::memcpy(buffer.data(), head.data(), text);
  char c = static_cast<char>(65 + iteration % 58);
  for (std::size_t i = text; i < buffer.size(); ++i) {
    buffer[i] = static_cast<std::byte>(c);
    c = c == 122 ? char{65} : static_cast<char>(c + 1);
  }
  buffer.back() = std::byte{0};
}

bool Side::ping_client(const std::shared_ptr<cm::Connection>& connection) {
  for (std::uint64_t i = 0; flags_.count == 0 || i < flags_.count; ++i) {
    fill(source_, i);
    if (!send_info(source_mr_, flags_.size) || !await_message()) return false;
    if (!send_info(data_mr_, flags_.size) || !await_message()) return false;
    if (flags_.validate && std::memcmp(source_.data(), data_.data(), flags_.size) != 0) {
      spdlog::error("data mismatch in iteration {}", i);
      data_error_ = true;
      return false;
    }
    if (flags_.verbose) std::cout << "ping data: " << printable(data_) << '\n';
  }
  connection->disconnect();
  return true;
}

bool Side::pong_server(const std::shared_ptr<cm::Connection>& connection) {
  for (std::uint64_t i = 0;; ++i) {
    if (!await_message()) return i > 0;  // the client decides how often, and ends the connection
    if (remote_.size > flags_.size) {
      spdlog::error("client pings with {} octets, this server has room for {}: start it with -S {}", remote_.size,
                    flags_.size, remote_.size);
      connection->abort();
      return false;
    }
    const verbs::Sge sink{data_.data(), remote_.size, data_mr_.stag()};
    if (!run({.op = verbs::SendOp::kRead, .sges = sink, .remote_stag = remote_.stag, .remote_to = remote_.to}))
      return false;
    if (flags_.verbose) std::cout << "server ping data: " << printable(ConstBytes{data_}.first(remote_.size)) << '\n';
    if (flags_.validate && remote_.size > 0) {
      const auto expected = std::span{source_}.first(remote_.size);
      fill(expected, i);
      if (!std::equal(expected.begin(), expected.end(), data_.begin())) {
        spdlog::error("what the client pinged with is not rping's pattern of iteration {}", i);
        data_error_ = true;
        return false;
      }
    }
    if (!send_info({}, 0) || !await_message()) return false;
    const std::size_t text = ::strnlen(reinterpret_cast<const char*>(data_.data()), data_.size() - 1) + 1;
    const verbs::Sge back{data_.data(), static_cast<std::uint32_t>(std::min<std::size_t>(text, remote_.size)),
                          data_mr_.stag()};
    if (!run({.op = verbs::SendOp::kWrite, .sges = back, .remote_stag = remote_.stag, .remote_to = remote_.to}))
      return false;
    if (!send_info({}, 0)) return false;
  }
}

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
    log_failed(flags.address + ":" + std::to_string(flags.port), error);
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
  o.on_shortage = [](const Error& e) { spdlog::warn("accepting pauses: {}", e.why); };
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
      request->reject({});
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
