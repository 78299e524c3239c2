// Our own RDMA application as a victim: a listener for each flavour, and connections made on demand. Each connection
// has a thread that plays rping's server (rdma_talk.h) until it ends.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "tests/hostile/target.h"

namespace iwarp::hostile {

class RdmaVictim final : public Target {
 public:
  RdmaVictim();
  ~RdmaVictim() override;

  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;

  // Connections that are not over yet.
  [[nodiscard]] std::size_t living() const { return living_; }
  // Octets changed, over all connections, in memory that no peer may write.
  [[nodiscard]] std::uint64_t damage() const { return damage_; }

 private:
  class Session;

  void accept_next(cm::Listener& listener, Flavour flavour);
  void run(std::shared_ptr<Session> session);

  cm::Engine engine_;
  std::map<Flavour, std::unique_ptr<cm::Listener>> listeners_;
  test::RawListener hooks_;
  std::mutex mu_;
  std::list<std::jthread> threads_;
  std::atomic<std::size_t> living_{0};
  std::atomic<std::uint64_t> damage_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace iwarp::hostile
