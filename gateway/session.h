// What the two fronts of the gateway have in common.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "iwarp/cm/engine.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/process.h"
#include "iwarp/gateway/siw_crc_trap.h"
#include "iwarp/gateway/stats.h"
#include "iwarp/gateway/turn_queue.h"
#include "iwarp/gateway/version_memory.h"
#include "iwarp/rpcrdma/memory_budget.h"

namespace iwarp::gateway {

// What a front counts and tells. Its sessions share it: they may end after it, on their worker. Thread-safe.
struct Ledger {
  Ledger(std::shared_ptr<LogLimits> limits, const std::string& name) : log(stats, std::move(limits), name) {}

  Stats stats;
  EventLog log;
};

// What the sessions of a front share. The engine outlives them.
struct Shared {
  cm::Engine& engine;
  std::shared_ptr<const Options> options;  // a session keeps those that it began with
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<rpcrdma::MemoryBudget> memory;
  std::shared_ptr<TurnQueue> turns;
  std::shared_ptr<SiwCrcTrap> crc_trap;
  std::shared_ptr<VersionMemory> versions;

  // For a session that is to live on `worker`.
  static Shared of(const Worker& worker, std::shared_ptr<const Options> options, std::shared_ptr<Ledger> ledger,
                   const Process& process) {
    return {worker.engine(), std::move(options),     std::move(ledger),       worker.memory(),
            worker.turns(),  process.siw_crc_trap(), process.version_memory()};
  }
};

// One client connection with its server connection. It lives on one worker: all of it happens in that thread.
class Session : public TurnTaker {
 public:
  // Close as soon as nothing is outstanding.
  virtual void drain() = 0;
  // Close now.
  virtual void stop() = 0;
  // Close now and report to nobody: the front goes away.
  virtual void orphan() = 0;
  // RDMA octets so far, memory and credits, to be added to a snapshot while the session lives.
  virtual void add_live_counters(Stats::Snapshot& to) const = 0;
};

// Why the fronts refuse clients while MemoryBudget admits none.
inline constexpr const char* kNoMemory = "the memory for all connections is half used up: see --memory";

// A gateway in either direction. One thread, that of the process.
class Front {
 public:
  virtual ~Front() = default;
  // Takes no new clients, lets outstanding RPCs finish (bounded by ProcessOptions::drain_timeout), closes. `done` is
  // called once.
  virtual void drain(std::function<void()> done) = 0;
  // Takes no new clients; those that it has go on. `done` is called once, from the event loop, when there are none.
  virtual void retire(std::function<void()> done) = 0;
  // For clients that come from now on. `name`: see ListenerSettings. Precondition: mpa::validate(options.policy).
  virtual void change(const std::string& name, const HostPort& server, const Options& options) = 0;
  // Served, or being connected.
  [[nodiscard]] virtual std::size_t connections() const = 0;
  [[nodiscard]] virtual Stats::Snapshot snapshot() const = 0;
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
};

}  // namespace iwarp::gateway
