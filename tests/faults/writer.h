// A client that is patient in one thing only: what was not acknowledged it sends again, on a new connection. What the
// store has applied must hold all that was acknowledged, intact.
#pragma once

#include <map>
#include <random>

#include "tests/faults/chain.h"

namespace iwarp::faults {

// Keeps WRITEs outstanding, and sends those again that were not acknowledged when it has to reconnect.
class Writer {
 public:
  Writer(Chain& chain, unsigned seed) : chain_(chain), random_(seed) {}

  // Until so many more are acknowledged.
  void run(std::size_t acknowledgements);
  // While Calls are outstanding.
  void reset();
  // Acknowledges the rest, and closes.
  void finish();
  // No acknowledged write is lost, and none that was applied is torn.
  void check() const;

  std::map<std::uint32_t, std::uint32_t> acknowledged;  // id to size
  std::size_t reconnects = 0;

 private:
  void reconnect();
  void send_new();
  void send(std::uint32_t id, std::uint32_t size);
  void receive();

  Chain& chain_;
  std::mt19937 random_;
  std::optional<RpcClient> connection_;
  std::map<std::uint32_t, std::uint32_t> outstanding_;
  std::uint32_t latest_ = 0;
};

}  // namespace iwarp::faults
