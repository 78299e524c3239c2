// Our own RPC-over-RDMA applications as victims: a responder that serves NFS version 3 by pattern, a requester that
// calls without end, and the gateway in front of a TCP server.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <thread>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/gateway/rdma_front.h"
#include "tests/gateway/rpc_server.h"
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
  void accept_next();
  void start(std::function<void()> session);

  cm::Engine engine_;
  std::unique_ptr<cm::Listener> listener_;
  test::RawListener hooks_;
  std::mutex mu_;
  std::list<std::jthread> threads_;
  std::atomic<std::size_t> living_{0};
  std::atomic<bool> stop_{false};
};

class GatewayVictim final : public Target {
 public:
  GatewayVictim();
  ~GatewayVictim() override;

  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;
  [[nodiscard]] std::size_t living();

 private:
  gateway::test::Loop loop_;
  gateway::test::RpcServer server_{loop_};
  cm::Engine engine_{loop_.io};
  std::unique_ptr<gateway::RdmaFront> front_;
  std::uint16_t port_ = 0;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.io.get_executor()};
  std::jthread thread_;
};

}  // namespace iwarp::hostile
