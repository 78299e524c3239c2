// Passive side: accepts TCP, waits for a valid MPA Request (bounded in time and size), and hands it to the application
// as a ConnectRequest. A peer that stalls, trickles or vanishes costs only its own connection.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/cm/connect_request.h"
#include "iwarp/mpa/policy.h"

namespace iwarp::cm {

// Where to listen, and what to take.
struct ListenOptions {
  boost::asio::ip::tcp::endpoint endpoint{};  // port 0: any free one, see Listener::local()
  mpa::Policy policy{};                       // what is answered to MPA Requests
  // Connections that the system may hold while they wait for accept(2); net.core.somaxconn bounds it (Linux: 4096).
  // Beyond it SYNs are dropped, and those who connect try again a second later. Default 4096; lower only loses time.
  int backlog = 4096;
  // Connections that may be between accept(2) and the application's decision, or, when rejected, the peer's close or
  // 5 s. Beyond it accepting pauses. Default 256, at least 1; lower lets few slow peers keep others out, higher costs a
  // descriptor each.
  std::size_t max_pending = 256;
  // Of a socket that the application has bound: it keeps a duplicate, which is to go on listening when the Listener
  // goes, as processes do that share a port. Then that port is not free.
  bool shared_socket = false;
  SocketOptions socket{};  // of the TCP connections
  // Engines that serve the connections: each gets the Request that comes when it has the fewest. Of one Context with
  // the listener's, which takes part only when it is named here; empty: all are the listener's. They must outlive the
  // listener, its requests and, unless no async_accept() waits, the listener's engine. Whoever wants another rule calls
  // ConnectRequest::move_to().
  std::vector<Engine*> engines{};
  // Called in an engine thread when the process or the system has no descriptor or memory left for another connection;
  // at most once in 30 s. It goes on by itself: clients wait, or are closed if accepted. May be empty.
  std::function<void(Error)> on_shortage{};
};

// kInvalidArgument, which names the option and its range. Listener::listen() asks it first.
[[nodiscard]] Result<void> validate(const ListenOptions& options);

class Listener {
 public:
  // Hears of a Request, or why there is none: then it is null.
  using AcceptHandler = std::function<void(Error, std::unique_ptr<ConnectRequest>)>;

  // Errors: kSystem (address in use, no such address: the text is that of errno), kInvalidArgument (options; an engine
  // of another Context).
  [[nodiscard]] static Result<std::unique_ptr<Listener>> listen(Engine& engine, const ListenOptions& options);
  // With a socket that the application has opened and bound, where a port must be known, or kept, before anybody is to
  // come. `options.endpoint` counts for nothing. Errors as above, and kInvalidArgument: it is not bound.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> listen(Engine& engine, boost::asio::ip::tcp::acceptor bound,
                                                                const ListenOptions& options);
  // Stops accepting, and the port is free when it returns, also where a forked child has the socket (but see
  // ListenOptions::shared_socket); unfinished startups are closed, requests not yet taken rejected, a waiting accept()
  // is called with kAborted. When it returns, it gives no engine anything any more.
  ~Listener();

  // The address that it listens at, with the port that the system picked.
  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const;
  // `handler` gets the next valid Request, once, in an engine thread. One at a time may wait. `cancel` gives the
  // waiting up with kAborted; a Request that comes later is kept for the next accept().
  void accept(AcceptHandler handler, const std::shared_ptr<Canceller>& cancel = {});
  // void(error_code, std::unique_ptr<ConnectRequest>). Understands all kinds of cancellation.
  template <class Token>
  auto async_accept(Token&& token) {
    return initiate<Error, std::unique_ptr<ConnectRequest>>(
        operations_, &cancellers_, kHarmless, std::forward<Token>(token),
        [this](auto completion) { accept(std::move(completion.handler), completion.cancel); });
  }
  // For peers that connect from now on. kInvalidArgument: mpa::validate() refuses it, and nothing changes. Thread-safe.
  [[nodiscard]] Result<void> set_policy(const mpa::Policy& policy);
  // Gives a waiting async_accept() up with kAborted; it may be called again.
  void cancel() {
    if (impl_.alive()) cancellers_.cancel();
  }
  using executor_type = Engine::executor_type;  // of get_executor(), as Asio looks for it
  // The engine's: where handlers run that name no executor.
  [[nodiscard]] executor_type get_executor() const { return operations_->io().get_executor(); }
  // Requests that failed before they reached the application: malformed, timed out, refused by policy, no resources.
  [[nodiscard]] std::uint64_t failed_startups() const;

 private:
  class Impl;
  [[nodiscard]] static std::unique_ptr<Listener> begin(Engine& engine, const ListenOptions& options,
                                                       std::shared_ptr<Impl> impl);
  Listener(std::shared_ptr<Operations> operations, std::shared_ptr<Impl> impl)
      : operations_(std::move(operations)), impl_(std::in_place, std::move(impl)) {}

  std::shared_ptr<Operations> operations_;
  Cancellers cancellers_;
  verbs::OwnProcess<std::shared_ptr<Impl>> impl_;
};

}  // namespace iwarp::cm
