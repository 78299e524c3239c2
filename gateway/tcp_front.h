// `iwarp gateway --tcp-listen ... --rdma ...`: lets TCP ONC RPC clients reach an RPC-over-RDMA server. One
// thread, that of the process; its sessions live on the workers.
#pragma once

#include <memory>

#include "iwarp/cm/accept_pause.h"
#include "iwarp/cm/engine.h"
#include "iwarp/gateway/client_places.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/process.h"
#include "iwarp/gateway/rdma_provider.h"
#include "iwarp/gateway/session_set.h"
#include "iwarp/gateway/tcp_session.h"

namespace iwarp::gateway {

class TcpFront final : public Front {
 public:
  // Errors: kSystem when it cannot listen there, kInvalidArgument: Options::device cannot be used. `engine` borrows an
  // io_context that the caller runs; it must outlive the front. `process`: what it shares with others; null: nothing,
  // and it takes its limits from `options`. `name`: see ListenerSettings.
  [[nodiscard]] static Result<std::unique_ptr<TcpFront>> open(cm::Engine& engine,
                                                              const boost::asio::ip::tcp::endpoint& listen,
                                                              const HostPort& server, const Options& options,
                                                              std::shared_ptr<Process> process = nullptr,
                                                              const std::string& name = {});

  ~TcpFront() override;  // sessions that still live are reset

  void drain(std::function<void()> done) override;
  void retire(std::function<void()> done) override;
  void change(const std::string& name, const HostPort& server, const Options& options) override;
  [[nodiscard]] std::size_t connections() const override { return sessions_.size(); }
  [[nodiscard]] Stats::Snapshot snapshot() const override;
  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const override { return local_; }

 private:
  TcpFront(cm::Engine& engine, HostPort server, const Options& options, std::shared_ptr<Process> process,
           const std::string& name);

  void stop_listening();
  void accept_next();
  void on_client(boost::asio::ip::tcp::socket socket);
  void refuse(const boost::asio::ip::tcp::endpoint& client, RefuseReason why, const std::string& text);
  // What a session holds: its place, and its seat at the worker. Of this thread.
  struct Coming {
    boost::asio::ip::tcp::endpoint client;
    ClientPlaces::Place place;
    std::shared_ptr<const void> seat;
  };
  // On the worker, and back here.
  void make_session(Worker& worker, std::shared_ptr<Coming> coming, boost::asio::ip::tcp::socket socket);
  // On its way between the two. What has sockets at the worker goes before the process, which has the worker.
  struct Made {
    std::shared_ptr<Process> process;
    std::shared_ptr<Coming> coming;
    std::shared_ptr<TcpSession> session;  // null: there was no memory for it, or what `why` says
    const char* why = "out of memory";
  };
  void on_session(Worker& worker, Made& made);

  cm::Engine& engine_;
  HostPort server_;
  std::shared_ptr<Process> process_;
  std::shared_ptr<Ledger> ledger_;
  Stats& stats_;                            // of it
  EventLog& log_;                           // likewise
  std::shared_ptr<const Options> options_;  // for those who come
  std::shared_ptr<RdmaProvider> provider_;
  ClientPlaces places_;
  SessionSet sessions_;
  boost::asio::ip::tcp::acceptor acceptor_;
  cm::AcceptPause pause_;
  boost::asio::ip::tcp::endpoint local_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::gateway
