// What all listeners of a gateway's process share: workers, memory, places for connections, the log's limits, and the
// source ports that servers know clients by. One thread, that of the process, but for what is said to be for all.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "iwarp/gateway/client_places.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/port_memories.h"
#include "iwarp/gateway/rdma_provider.h"
#include "iwarp/gateway/siw_crc_trap.h"
#include "iwarp/gateway/version_memory.h"
#include "iwarp/gateway/worker.h"
#include "iwarp/rpcrdma/memory_budget.h"

namespace iwarp::gateway {

struct ProcessOptions {
  // Registered memory of all connections, octets: see rpcrdma::MemoryBudget. No bound by default.
  std::size_t memory_bytes = SIZE_MAX;
  // What a connection gets however short memory is, octets: the greatest Options::least_part() of the listeners.
  std::size_t least_part_bytes = rpcrdma::MemoryBudget::kLeastPart;
  // Connections served at a time by all listeners, and of one client (ClientPlaces). No bound by default: each listener
  // has its own besides.
  std::size_t max_connections = SIZE_MAX;
  std::size_t max_connections_per_client = SIZE_MAX;
  // After SIGTERM: how long outstanding RPCs may take to finish.
  std::chrono::milliseconds drain_timeout{10000};
  // Threads that serve connections, that of the process included; 1 to kMostWorkers. Counts at the start only.
  std::size_t workers = 1;
  static constexpr std::size_t kMostWorkers = 64;

  // Of a front that shares them with no other: from Options.
  [[nodiscard]] static ProcessOptions of_one(const Options& options);
  friend bool operator==(const ProcessOptions&, const ProcessOptions&) = default;
};

class Process {
 public:
  // `engine` borrows the io_context of the process, and must outlive whatever works here.
  Process(cm::Engine& engine, const ProcessOptions& options);
  // Ends the workers.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // From now on. Connections that are served stay, though they be more than that.
  void change(const ProcessOptions& options);
  [[nodiscard]] const ProcessOptions& options() const { return options_; }

  // A connection's part in the limits, free again when it is destroyed. Null: there are as many as there may be; `why`
  // then says of whom.
  [[nodiscard]] ClientPlaces::Place take_place(const boost::asio::ip::address& client, const char*& why);
  // Those that hold a place.
  [[nodiscard]] std::size_t connections() const { return *connections_; }

  // Starts the threads of the workers, once: before the first listener, and when the engine has its taps.
  void start_workers();
  // Ends them, each behind the handler that it is in. The thread of the process goes on.
  void end();
  // The thread of the process.
  [[nodiscard]] Worker& home() { return *workers_.front(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  // The one that serves the fewest clients.
  [[nodiscard]] Worker& idlest_worker();
  // Calls `then` in the thread of the process when every worker has been there: at once if there is no other.
  void when_all_answer(std::function<void()> then);
  // Calls `then` in the thread of the process, later, when every thread has seen, as a rule, what its sockets held by
  // now: of the ends of connections above all. One that is very busy may need longer.
  void when_all_have_looked(std::function<void()> then);

  // The part of home().
  [[nodiscard]] const std::shared_ptr<rpcrdma::MemoryBudget>& memory() const { return workers_.front()->memory(); }
  // For all threads.
  [[nodiscard]] const std::shared_ptr<LogLimits>& log_limits() const { return log_limits_; }
  [[nodiscard]] const std::shared_ptr<SiwCrcTrap>& siw_crc_trap() const { return siw_crc_trap_; }
  [[nodiscard]] const std::shared_ptr<VersionMemory>& version_memory() const { return version_memory_; }
  [[nodiscard]] PortMemories& ports() { return ports_; }
  // What Options::device and Options::sctp name: else our own stack over TCP. An error says what is missing. The
  // provider lives as long as this object; fronts that use it go before.
  [[nodiscard]] Parsed<std::shared_ptr<RdmaProvider>> provider(const Options& options);

 private:
  void rounds(int left, std::function<void()> then);

  ProcessOptions options_;
  std::shared_ptr<LogLimits> log_limits_ = std::make_shared<LogLimits>();
  std::shared_ptr<SiwCrcTrap> siw_crc_trap_ = std::make_shared<SiwCrcTrap>();
  std::shared_ptr<VersionMemory> version_memory_ = std::make_shared<VersionMemory>();
  ClientPlaces clients_;
  std::shared_ptr<std::size_t> connections_ = std::make_shared<std::size_t>(0);
  PortMemories ports_;
  std::map<std::string, std::shared_ptr<RdmaProvider>> devices_;  // opened so far, by name
  std::shared_ptr<RdmaProvider> sctp_;                            // null: not yet
  std::vector<std::unique_ptr<Worker>> workers_;                  // one at least
  bool started_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// A place among the connections of the process, and one among those of the listener.
struct Places {
  ClientPlaces::Place of_both{};
  const char* why = "";  // where it is null
};
[[nodiscard]] Places take_places(Process& process, ClientPlaces& listener, const boost::asio::ip::address& client);

}  // namespace iwarp::gateway
