// What the two fronts of the gateway have in common.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "iwarp/gateway/stats.h"

namespace iwarp::gateway {

// One client connection with its server connection.
class Session {
 public:
  virtual ~Session() = default;
  // Close as soon as nothing is outstanding.
  virtual void drain() = 0;
  // Close now.
  virtual void stop() = 0;
  // Close now and report to nobody: the front goes away.
  virtual void orphan() = 0;
  // RDMA octets so far, to be added to a snapshot while the session lives.
  virtual void add_live_counters(Stats::Snapshot& to) const = 0;
};

// Why the fronts refuse clients while MemoryBudget admits none.
inline constexpr const char* kNoMemory = "the memory for all connections is half used up: see --memory";

// A gateway in either direction, on one io_context.
class Front {
 public:
  virtual ~Front() = default;
  // Takes no new clients, lets outstanding RPCs finish (bounded by Options::drain_timeout), closes. `done` is called
  // once.
  virtual void drain(std::function<void()> done) = 0;
  [[nodiscard]] virtual Stats::Snapshot snapshot() const = 0;
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
};

}  // namespace iwarp::gateway
