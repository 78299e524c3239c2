// Our own RPC-over-RDMA applications as victims: a responder that serves NFS version 3 by pattern, and a requester that
// calls without end.
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

// Both of them need threads: one for each connection.
class RpcVictim final : public Target {
 public:
  RpcVictim();
  ~RpcVictim() override;

  // To the responder.
  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  // From a fresh requester.
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;
  // Connections that are not over yet.
  [[nodiscard]] std::size_t living() const { return living_; }

 private:
  void accept_next(Flavour flavour);
  void start(std::function<void()> session);

  cm::Engine engine_;
  std::map<Flavour, std::unique_ptr<cm::Listener>> listeners_;
  test::RawListener hooks_;
  std::mutex mu_;
  std::list<std::jthread> threads_;
  std::atomic<std::size_t> living_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace iwarp::hostile
