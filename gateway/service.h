// Several gateways in one process: named listeners, each with a direction, a server and settings of its own. What they
// share is Process. The settings can be changed while connections are served. One thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iwarp/gateway/options.h"
#include "iwarp/gateway/process.h"
#include "iwarp/gateway/session.h"

namespace iwarp::gateway {

enum class Direction : std::uint8_t {
  kRdmaToTcp,  // RPC-over-RDMA clients, a TCP server
  kTcpToRdma,  // TCP clients, an RPC-over-RDMA server
};
// "rdma-to-tcp", "tcp-to-rdma".
[[nodiscard]] const char* name(Direction direction);

struct ListenerSettings {
  // Distinct among the listeners. Empty for a single one: log lines then name none.
  std::string name;
  Direction direction = Direction::kRdmaToTcp;
  boost::asio::ip::tcp::endpoint listen;  // port 0: any free one
  HostPort server;
  Options options;

  friend bool operator==(const ListenerSettings&, const ListenerSettings&) = default;
};

struct ServiceSettings {
  ProcessOptions process;
  std::vector<ListenerSettings> listeners;
};

// A listener as it is now, or one that was removed while its connections go on.
struct FrontStatus {
  std::string name;
  Direction direction = Direction::kRdmaToTcp;
  boost::asio::ip::tcp::endpoint local;  // what it listens on, or did
  HostPort server;
  bool listening = false;
  std::size_t connections = 0;  // served, or being connected
  Stats::Snapshot stats;
};

class Service {
 public:
  // `engine` borrows an io_context that the caller runs; it must outlive the service.
  Service(cm::Engine& engine, const ProcessOptions& options);
  ~Service();  // connections that still live are reset
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  struct Changes {
    std::size_t added = 0, removed = 0, changed = 0;
    friend bool operator==(const Changes&, const Changes&) = default;
  };
  // Makes the listeners what `to` says: at the start, and again at any time. A listener is the same as before when it
  // listens where that one did, in the same direction and with the same device or lower layer; otherwise when it has
  // its name: then it moves. Connections keep the settings that they began with, and go on when their listener is
  // removed. An error, "cannot listen on ...", changes nothing. Precondition: names are distinct, and so are addresses
  // to listen on; not drain()ed yet.
  [[nodiscard]] Parsed<Changes> apply(const ServiceSettings& to);

  // Takes no new clients, lets outstanding RPCs finish (for ProcessOptions::drain_timeout at most), closes. `done` is
  // called once.
  void drain(std::function<void()> done);

  // Those that listen, in the order of their settings, then those that were removed and still have connections.
  [[nodiscard]] std::vector<FrontStatus> fronts() const;
  // All together, those that are no more included.
  [[nodiscard]] Stats::Snapshot snapshot() const;
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] const Process& process() const { return *process_; }

 private:
  struct Running {
    ListenerSettings settings;
    std::shared_ptr<Front> front;
  };

  [[nodiscard]] Parsed<std::shared_ptr<Front>> open(const ListenerSettings& settings);
  void retire(Running running);
  [[nodiscard]] FrontStatus status(const Running& running, bool listening) const;

  cm::Engine& engine_;
  std::shared_ptr<Process> process_;
  std::vector<Running> running_;
  std::vector<Running> retired_;  // listen no more, but have connections
  Stats::Snapshot past_;          // of those that are no more
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::gateway
