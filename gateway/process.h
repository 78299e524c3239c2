// What all listeners of a gateway's process share: memory, places for connections, the log's limits, turns of work, and
// the source ports that servers know clients by. One thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>

#include "iwarp/gateway/client_places.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/port_memories.h"
#include "iwarp/gateway/siw_crc_trap.h"
#include "iwarp/gateway/turn_queue.h"
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

  // Of a front that shares them with no other: from Options.
  [[nodiscard]] static ProcessOptions of_one(const Options& options);
  friend bool operator==(const ProcessOptions&, const ProcessOptions&) = default;
};

class Process {
 public:
  // `io` must outlive whatever works here.
  Process(boost::asio::io_context& io, const ProcessOptions& options);
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

  [[nodiscard]] const std::shared_ptr<rpcrdma::MemoryBudget>& memory() const { return memory_; }
  [[nodiscard]] const std::shared_ptr<TurnQueue>& turns() const { return turns_; }
  [[nodiscard]] const std::shared_ptr<LogLimits>& log_limits() const { return log_limits_; }
  [[nodiscard]] const std::shared_ptr<SiwCrcTrap>& siw_crc_trap() const { return siw_crc_trap_; }
  [[nodiscard]] PortMemories& ports() { return ports_; }

 private:
  ProcessOptions options_;
  std::shared_ptr<rpcrdma::MemoryBudget> memory_;
  std::shared_ptr<TurnQueue> turns_;
  std::shared_ptr<LogLimits> log_limits_ = std::make_shared<LogLimits>();
  std::shared_ptr<SiwCrcTrap> siw_crc_trap_ = std::make_shared<SiwCrcTrap>();
  ClientPlaces clients_;
  std::shared_ptr<std::size_t> connections_ = std::make_shared<std::size_t>(0);
  PortMemories ports_;
};

// A place among the connections of the process, and one among those of the listener.
struct Places {
  ClientPlaces::Place of_both{};
  const char* why = "";  // where it is null
};
[[nodiscard]] Places take_places(Process& process, ClientPlaces& listener, const boost::asio::ip::address& client);

}  // namespace iwarp::gateway
