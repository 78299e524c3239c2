// Connection: a queue pair joined to a TCP socket, from the first octet of MPA startup to the release of the socket.
// Made by Connector and ConnectRequest. Thread-safe. The engine keeps it alive while the socket is open; the
// application may drop its reference at any time without closing anything.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/description.h"
#include "iwarp/cm/engine.h"
#include "iwarp/cm/socket_io.h"
#include "iwarp/cm/socket_options.h"
#include "iwarp/cm/token.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::cm {

class Connection final : public verbs::Driver, public std::enable_shared_from_this<Connection> {
 public:
  using tcp = boost::asio::ip::tcp;
  using EstablishedHandler = std::function<void(Error, std::shared_ptr<Connection>)>;

  Connection(Engine& engine, tcp::socket socket, std::shared_ptr<verbs::QueuePair> qp);
  ~Connection() override;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  [[nodiscard]] bool initiator() const { return initiator_; }
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  [[nodiscard]] const tcp::endpoint& remote() const { return remote_; }
  // Agreed parameters and the peer's private data; meaningful once established.
  [[nodiscard]] mpa::Negotiated negotiated() const;
  [[nodiscard]] std::vector<std::byte> private_data() const;
  [[nodiscard]] Counters counters() const;
  // "local=127.0.0.1:1 peer=127.0.0.1:2 role=initiator rev=2 enhanced=1 crc=1 ..."
  [[nodiscard]] std::string to_string() const;

  // Orderly close: posted work goes out, then FIN. No-op when closed.
  void disconnect();
  // Reset. Outstanding work completes as kFlushed.
  void abort(const Error& reason = make_error(Errc::kAborted));
  // Completes with void(stream::Disconnected) when the connection is over and its socket released; at once if it is
  // already.
  template <class Token>
  auto async_wait_disconnected(Token&& token) {
    return initiate<stream::Disconnected>(
        engine_io_, std::forward<Token>(token),
        [self = shared_from_this()](auto handler) { self->on_disconnected(std::move(handler)); });
  }
  // How it ended; nullopt while it lives.
  [[nodiscard]] std::optional<stream::Disconnected> disconnected() const;

  // --- For ConnectRequest, before start(): the tap that has seen the Request.
  void set_tap(std::shared_ptr<ByteTap> tap) { tap_ = std::move(tap); }
  // --- For Connector and ConnectRequest. `handler` is called once, in an engine thread: with no error when
  // established.
  using RetryHandler = std::function<void(Error)>;
  // kInvalidArgument, and nothing happens, when the queue pair was used before.
  [[nodiscard]] Result<void> start(mpa::Initiator initiator, EstablishedHandler handler, RetryHandler retry);
  [[nodiscard]] Result<void> start(mpa::Responder responder, EstablishedHandler handler);
  // --- For Engine.
  struct Driven {
    bool moved = false;    // octets did
    bool blocked = false;  // TCP takes no more for now: the reactor tells when it does
    bool told = false;     // handlers of the application were called
  };
  Driven drive(TimePoint now) { return drive(0, now); }
  void detach_from_engine();

  // verbs::Driver
  void kick() override;

 private:
  // Why drive() is called. kApplication: by a call of the application, which no handler may interrupt.
  enum Fired : unsigned { kReadable = 1, kWritable = 2, kTimer = 4, kApplication = 8, kPosted = 16 };

  Driven drive(unsigned fired, TimePoint now);
  void on_disconnected(std::function<void(stream::Disconnected)> handler);
  [[nodiscard]] Result<void> begin(EstablishedHandler handler);
  // The members below need the queue pair's lock.
  [[nodiscard]] TimePoint advance(TimePoint now);
  [[nodiscard]] bool transmit(TimePoint now);
  [[nodiscard]] bool receive(TimePoint now);
  // Of sending or receiving.
  void on_tcp_end(const Transfer& failed, TimePoint now);
  void post_drive();
  void apply_link_action();
  void release_socket(bool reset);
  void arm();
  void deliver(std::vector<stream::Event>& events, std::unique_lock<std::mutex>& lock, bool post);

  Engine* engine_;  // null once the engine is gone
  boost::asio::io_context& engine_io_;
  std::optional<tcp::socket> socket_;  // these two until detach_from_engine()
  std::optional<boost::asio::steady_timer> timer_;
  std::shared_ptr<verbs::QueuePair> qp_;
  tcp::endpoint local_, remote_;
  bool initiator_ = false;
  bool read_armed_ = false, write_armed_ = false;
  bool tx_blocked_ = false, rx_wanted_ = false, more_work_ = false;
  bool released_ = false;
  bool drive_posted_ = false;
  TimePoint latest_{};            // that the core was told
  unsigned batches_ = 0;          // sent
  std::shared_ptr<ByteTap> tap_;  // null unless somebody watches
  std::optional<TimePoint> timer_deadline_;
  EstablishedHandler established_;
  RetryHandler retry_;
  std::vector<std::byte> private_data_;
  std::optional<stream::Disconnected> disconnected_;
  std::vector<std::function<void(stream::Disconnected)>> disconnect_waiters_;
};

}  // namespace iwarp::cm
