// `iwarp gateway --rdma-listen ... --tcp ...`: gives a TCP ONC RPC server an RPC-over-RDMA front. One
// thread, that of the process; its sessions live on the workers.
#pragma once

#include <memory>

#include "iwarp/gateway/client_places.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/process.h"
#include "iwarp/gateway/rdma_provider.h"
#include "iwarp/gateway/rdma_session.h"
#include "iwarp/gateway/session_set.h"

namespace iwarp::gateway {

class RdmaFront final : public Front {
 public:
  // Errors of RdmaProvider::listen(), and kInvalidArgument: Options::device cannot be used. `engine` borrows an
  // io_context that the caller runs; it must outlive the front. `process`: what it shares with others; null: nothing,
  // and it takes its limits from `options`. `name`: see ListenerSettings.
  [[nodiscard]] static Result<std::unique_ptr<RdmaFront>> open(cm::Engine& engine,
                                                               const boost::asio::ip::tcp::endpoint& listen,
                                                               const HostPort& server, const Options& options,
                                                               std::shared_ptr<Process> process = nullptr,
                                                               const std::string& name = {});

  ~RdmaFront() override;  // sessions that still live are reset

  void drain(std::function<void()> done) override;
  void retire(std::function<void()> done) override;
  void change(const std::string& name, const HostPort& server, const Options& options) override;
  [[nodiscard]] std::size_t connections() const override { return sessions_.size(); }
  [[nodiscard]] Stats::Snapshot snapshot() const override;
  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const override { return local_; }

 private:
  RdmaFront(cm::Engine& engine, HostPort server, const Options& options, std::shared_ptr<Process> process,
            const std::string& name);

  void on_request(std::shared_ptr<RdmaRequest> request);
  void on_lost(const Error& why);
  void on_back();
  // A client whose server is being connected, and what its session holds afterwards.
  struct Coming {
    std::shared_ptr<RdmaRequest> request;  // until a worker has it
    boost::asio::ip::address client;
    ClientPlaces::Place place;
    std::shared_ptr<const void> seat;  // of the worker
    std::shared_ptr<PortMemory> ports;
    std::optional<std::uint16_t> wanted_port;
    PortMemory::Use port_in_use;  // from the beginning: whoever saves the ports must not miss it
  };
  // Why the client cannot be served; nothing: it can.
  [[nodiscard]] std::optional<std::pair<RefuseReason, std::string>> objection(const Error& error) const;
  void connect_server(const std::shared_ptr<Coming>& coming);
  void on_backend(const std::shared_ptr<Coming>& coming, const Error& error, boost::asio::ip::tcp::socket socket);
  void turn_away(RdmaRequest& request, Coming& coming, RefuseReason why, const std::string& text);
  // On the worker, and back here.
  void make_session(Worker& worker, const std::shared_ptr<Coming>& coming, boost::asio::ip::tcp::socket socket);
  // On its way between the two. What has sockets at the worker goes before the process, which has the worker.
  struct Made {
    std::shared_ptr<Process> process;
    std::shared_ptr<Coming> coming;
    std::shared_ptr<RdmaRequest> request;
    std::shared_ptr<RdmaSession> session;  // null: there was no memory for it, or what `why` says
    const char* why = "out of memory";
  };
  void on_session(Worker& worker, Made& made);
  void note_source_port(const Coming& coming, const boost::asio::ip::tcp::socket& socket);
  void refuse(RdmaRequest& request, RefuseReason why, const std::string& text);

  cm::Engine& engine_;
  HostPort server_;
  std::shared_ptr<Process> process_;
  std::shared_ptr<Ledger> ledger_;
  Stats& stats_;                            // of it
  EventLog& log_;                           // likewise
  std::shared_ptr<const Options> options_;  // for those who come
  std::shared_ptr<PortMemory> ports_;       // of the server
  ClientPlaces places_;
  SessionSet sessions_;
  std::size_t first_reserved_;  // where the search for a reserved port begins: another place each time
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<RdmaProvider> provider_;
  std::unique_ptr<RdmaListener> listener_;
  boost::asio::ip::tcp::endpoint local_;
};

}  // namespace iwarp::gateway
