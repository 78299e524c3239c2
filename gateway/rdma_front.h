// `iwarp gateway --rdma-listen ... --tcp ...`: gives a TCP ONC RPC server an RPC-over-RDMA front. One thread.
#pragma once

#include <memory>

#include "iwarp/cm/listener.h"
#include "iwarp/gateway/client_places.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/process.h"
#include "iwarp/gateway/session_set.h"

namespace iwarp::gateway {

class RdmaFront final : public Front {
 public:
  // Errors of cm::Listener::listen(). `engine` borrows an io_context that the caller runs; it must outlive the front.
  // `process`: what it shares with others; null: nothing, and it takes its limits from `options`. `name`: see
  // ListenerSettings.
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

  void accept_next();
  void on_request(std::shared_ptr<cm::ConnectRequest> request);
  // Whether the client is being served: then `socket` was taken over.
  [[nodiscard]] bool on_backend(const std::shared_ptr<cm::ConnectRequest>& request, const ClientPlaces::Place& place,
                                const std::shared_ptr<PortMemory>& ports, const Error& error,
                                boost::asio::ip::tcp::socket& socket);
  void note_source_port(const cm::ConnectRequest& request, std::optional<std::uint16_t> wanted,
                        const boost::asio::ip::tcp::socket& socket);
  void refuse(cm::ConnectRequest& request, RefuseReason why, const std::string& text);

  cm::Engine& engine_;
  HostPort server_;
  std::shared_ptr<Process> process_;
  Stats stats_;
  EventLog log_;
  Shared shared_;
  std::shared_ptr<PortMemory> ports_;  // of the server
  ClientPlaces places_;
  SessionSet sessions_;
  std::size_t first_reserved_;  // where the search for a reserved port begins: another place each time
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<cm::Listener> listener_;
  boost::asio::ip::tcp::endpoint local_;
};

}  // namespace iwarp::gateway
