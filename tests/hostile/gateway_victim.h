// `iwarp gateway` as a victim, either way round: its RDMA front, before a TCP server, meets hostile clients; its TCP
// front, behind a TCP client, meets hostile NFS/RDMA servers.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <thread>

#include "iwarp/cm/engine.h"
#include "iwarp/gateway/session.h"
#include "tests/gateway/rpc_server.h"
#include "tests/hostile/target.h"

namespace iwarp::hostile {

// What both have in common: fronts, and the thread that everything on their side runs on.
class GatewayVictim : public Target {
 public:
  // Sessions that are not over yet.
  [[nodiscard]] std::size_t living();

 protected:
  GatewayVictim();
  ~GatewayVictim() override = default;  // after stop()
  // The thread begins; fronts that come later are its own.
  void start();
  // Ends the thread, calls `first`, and ends every session.
  void stop(const std::function<void()>& first);

  gateway::test::Loop loop_;
  cm::Engine engine_{loop_.io};
  std::vector<std::unique_ptr<gateway::Front>> fronts_;

 private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.io.get_executor()};
  std::jthread thread_;
};

class RdmaFrontVictim final : public GatewayVictim {
 public:
  RdmaFrontVictim();
  ~RdmaFrontVictim() override;

  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;

 private:
  gateway::test::RpcServer server_{loop_};
};

class TcpFrontVictim final : public GatewayVictim {
 public:
  TcpFrontVictim();
  ~TcpFrontVictim() override;

  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  // Of a fresh TCP client that calls without end (rpc_talk.h). For version 2 and the draft of 2005 the front is fresh
  // as well: it remembers who has refused. It takes no chunks in backward Calls.
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;

 private:
  test::RawListener hooks_;
  std::vector<std::shared_ptr<gateway::test::TcpPeer>> clients_;  // of the thread
};

}  // namespace iwarp::hostile
