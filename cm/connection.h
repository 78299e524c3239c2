// Connection: a queue pair joined to a TCP socket, from the first octet of MPA startup to the release of the socket.
// Made by Connector and ConnectRequest. Thread-safe. The engine keeps it alive while the socket is open; the
// application may drop its reference at any time without closing anything. In a forked child it tells nothing but its
// addresses: calls return at once, empty-handed, and disconnected() names the reason.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/container/static_vector.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/cm/description.h"
#include "iwarp/cm/engine.h"
#include "iwarp/cm/handler_room.h"
#include "iwarp/cm/io_right.h"
#include "iwarp/cm/socket_io.h"
#include "iwarp/cm/socket_options.h"
#include "iwarp/cm/socket_side.h"
#include "iwarp/cm/tcp_connection.h"
#include "iwarp/cm/token.h"
#include "iwarp/stream/connection.h"
#include "iwarp/verbs/own_process.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::cm {

// For callbacks that take it alone.
template <>
struct detail::Results<stream::Disconnected> {
  static std::tuple<stream::Disconnected> failed(const Error& error);
};

class Connection final : public verbs::Driver, public std::enable_shared_from_this<Connection> {
 public:
  using tcp = boost::asio::ip::tcp;  // for its socket and endpoint types
  // Hears how an attempt at a connection ended. The Connection is null when none was made.
  using EstablishedHandler = std::function<void(Error, std::shared_ptr<Connection>)>;

  // By Connector and ConnectRequest; applications need not make one. Precondition: stream::validate(mpa) is ok.
  Connection(Engine& engine, tcp::socket socket, std::shared_ptr<verbs::QueuePair> qp, const stream::MpaOptions& mpa);
  ~Connection() override;

  // The queue pair that it serves.
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  // Whether this end has connected; false: it has accepted.
  [[nodiscard]] bool initiator() const { return initiator_; }
  // TCP address of this end.
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  // TCP address of the peer, likewise.
  [[nodiscard]] const tcp::endpoint& remote() const { return remote_; }
  // Agreed parameters and the peer's private data; meaningful once established.
  [[nodiscard]] mpa::Negotiated negotiated() const;
  // The peer's private data, without the enhanced data of RFC 6581; empty before it is established.
  [[nodiscard]] std::vector<std::byte> private_data() const;
  // Octets and messages so far.
  [[nodiscard]] Counters counters() const;
  // "local=127.0.0.1:1 peer=127.0.0.1:2 role=initiator rev=2 enhanced=1 crc=1 ..."
  [[nodiscard]] std::string to_string() const;

  // Orderly close: posted work goes out, then FIN. No-op when closed.
  void disconnect();
  // Reset. Outstanding work completes as kFlushed, at once. An unheard peer that may not like it is waited for first,
  // stream::MpaOptions::unheard_wait at most, and so it is when a Terminate of ours is on its way or has left. The
  // socket follows, in another thread if that is moving its octets.
  void abort(const Error& reason = make_error(Errc::kAborted));
  // The peer's IRD and ORD (0..16382) as the application knows them, from private data for example, for what MPA
  // startup has left open: a peer of revision 1, or 0x3FFF. ORD is lowered to the peer's IRD, IRD raised to its ORD,
  // but not from 0. kInvalidArgument: startup has settled them; kNotConnected: it is not established, or has ended. Let
  // no Read be posted before: the peer may not admit it.
  [[nodiscard]] Result<void> settle_depths(std::uint16_t peer_ird, std::uint16_t peer_ord);
  // Completes with void(error_code, stream::Disconnected) when the connection is over and its socket released; at once
  // if it is already. There is an error only when the wait was cancelled (kAborted). A callback may take
  // stream::Disconnected alone: cancelled, its reason is kAborted with kCancelledWhy, and nothing else.
  template <class Token>
  auto async_wait_disconnected(Token&& token) {
    if constexpr (detail::takes<Token, stream::Disconnected>()) {
      return initiate<stream::Disconnected>(
          operations_, &cancellers_, kHarmless, std::forward<Token>(token),
          [self = shared_from_this()](auto completion) {
            self->on_disconnected({[told = std::move(completion.handler)](const Error&, stream::Disconnected how) {
                                     told(std::move(how));
                                   },
                                   completion.cancel, completion.operation});
          });
    } else {
      return initiate<Error, stream::Disconnected>(
          operations_, &cancellers_, kHarmless, std::forward<Token>(token),
          [self = shared_from_this()](auto completion) { self->on_disconnected(std::move(completion)); });
    }
  }
  // Cancels the waits for its end, and leaves the connection as it is.
  void cancel() {
    if (alive()) cancellers_.cancel();
  }
  using executor_type = Engine::executor_type;  // of get_executor(), as Asio looks for it
  // The engine's. Not to be called when the engine is gone.
  [[nodiscard]] executor_type get_executor() const { return engine_io_.get_executor(); }
  // How it ended; nullopt while it lives.
  [[nodiscard]] std::optional<stream::Disconnected> disconnected() const;

  // The TCP connection of an attempt that the peer (kPeerRejected) or ConnectOptions::judge_reply has rejected, where
  // it was asked to keep it: with the octets that came behind the Reply. Given once; owns nothing in every other case.
  // It is closed with this object, or with the engine, if nobody takes it.
  [[nodiscard]] TcpConnection take_tcp();

  // --- For who gives this class another face: async_wait_disconnected() without a token.
  void on_disconnected(Completion<Error, stream::Disconnected> completion);
  // --- For Connector, before start().
  void keep_tcp_if_rejected() { keep_tcp_ = true; }
  void set_early(std::vector<std::byte> octets) { early_ = std::move(octets); }  // come before what the socket has
  // --- For ConnectRequest, before start(): the tap that has seen the Request.
  void set_tap(std::shared_ptr<ByteTap> tap) { tap_ = std::move(tap); }
  // --- For Connector and ConnectRequest. `handler` is called once, in an engine thread: with no error when
  // established.
  using FallBackHandler = std::function<void(const stream::FallBack&)>;
  // kInvalidArgument, and nothing happens, when the queue pair was used before.
  // `holder`: the queue pair's driver until now, or null; kAborted when the queue pair was aborted while it was that.
  [[nodiscard]] Result<void> start(mpa::Initiator initiator, EstablishedHandler handler, FallBackHandler fall_back,
                                   const verbs::Driver* holder = nullptr, stream::ReplyJudge judge = {},
                                   stream::RetryJudge again = {});
  [[nodiscard]] Result<void> start(mpa::Responder responder, EstablishedHandler handler);
  // Aborts with kAborted what is not established yet.
  void cancel_start();
  // What one read asks for, octets, besides what goes straight to its place.
  static constexpr std::size_t kMostReadBytes = 256 * 1024;
  // --- For Engine.
  struct Driven {
    bool moved = false;    // octets did
    bool blocked = false;  // TCP takes no more for now: the reactor tells when it does
    bool told = false;     // handlers of the application were called
    bool taken = false;    // another thread has the token: nothing was done
  };
  Driven drive(TimePoint now) { return drive(0, now); }
  // Its socket, to wait for what comes; -1 when there is none, when octets wait for TCP to take them, or when a message
  // waits for a Receive, so that what has come stays in the socket. Any thread; it may be another file by the time it
  // is used.
  [[nodiscard]] int quiet_socket() const;
  void detach_from_engine();

  // verbs::Driver
  void kick() override;
  [[nodiscard]] std::optional<Agreed> agreed() const override;

 private:
  class Turn;
  class Holding;
  using Events = boost::container::static_vector<stream::Event, 2>;  // Established and Disconnected, or FallBack
  // Why drive() is called. kApplication: by a call of the application, which no handler may interrupt. kWork: something
  // was posted. kHungUp: TCP has ended, perhaps with a reset.
  enum Fired : unsigned {
    kReadable = 1,
    kWritable = 2,
    kTimer = 4,
    kApplication = 8,
    kPosted = 16,
    kWork = 32,
    kHungUp = 64
  };

  Driven drive(unsigned fired, TimePoint now);
  // Whether this thread has the token now; if not, what fired is left to the holder.
  [[nodiscard]] bool take_token(unsigned fired);
  [[nodiscard]] bool take_turn(Turn& turn);
  std::pair<bool, bool> rounds(Turn& turn);
  void cancel_wait(const Canceller* which);
  [[nodiscard]] Result<void> begin(EstablishedHandler handler, const verbs::Driver* holder);
  // The members below need the queue pair's lock.
  [[nodiscard]] TimePoint advance(TimePoint now);
  [[nodiscard]] bool transmit(Turn& turn);
  [[nodiscard]] bool receive(Turn& turn);
  // `stop`: a message waits for a Receive.
  void stop_reading(bool stop, TimePoint now);
  [[nodiscard]] bool look_behind(TimePoint now);
  [[nodiscard]] bool again(bool sent, bool received);
  // Shorter reads where many small messages come.
  void pace_reads(std::chrono::nanoseconds took, std::size_t octets);
  void step(Side& side, SideInput on);
  void hear();
  // Of sending or receiving.
  void on_tcp_end(const Transfer& failed, TimePoint now);
  void post_drive();
  void send_now();
  // Ends the connection where there is no memory to go on with it.
  void fail_for_memory();
  void apply_link_action();
  void release_socket(bool reset);
  // In place of its release, for the application.
  void keep_socket();
  void socket_gone();
  [[nodiscard]] Transfer receive_early(std::span<const MutBytes> spans);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  void arm();
  // Without the lock at the end.
  void deliver(Events& events, verbs::QueuePair::Lock& lock, bool post);
  [[nodiscard]] bool alive() const { return qp_->pd().context()->alive(); }

  Engine* engine_;  // null once the engine is gone
  boost::asio::io_context& engine_io_;
  const std::shared_ptr<Operations> operations_;
  Cancellers cancellers_;
  verbs::OwnProcess<tcp::socket> socket_;  // these two until detach_from_engine()
  verbs::OwnProcess<boost::asio::steady_timer> timer_;
  std::shared_ptr<verbs::QueuePair> qp_;
  stream::MpaOptions mpa_;
  std::optional<stream::Connection> core_;  // puts the queue pair on MPA and TCP; nothing before begin()
  tcp::endpoint local_, remote_;
  bool initiator_ = false;
  Side rx_side_ = Side::kReady, tx_side_ = Side::kReady;
  bool released_ = false;  // the socket
  bool keep_tcp_ = false;
  TcpConnection kept_;
  std::vector<std::byte> early_;
  // Itself, while a message waits for a Receive: nothing is read, so no handler keeps it alive. Null: it reads.
  std::shared_ptr<Connection> stopped_;
  TimePoint look_at_{};        // with it: when the peer's end is looked for
  bool watched_ = false;       // the reactor was asked to tell of a reset
  bool drive_posted_ = false;  // one at a time: each may post the next
  HandlerRoom drive_room_;
  IoToken token_;
  std::atomic<unsigned> fired_{0};  // word for the holder of the token
  std::size_t read_bytes_;          // to ask for at a time
  std::size_t last_read_bytes_ = 0;
  TimePoint latest_{};            // that the core was told
  unsigned batches_ = 0;          // sent
  std::shared_ptr<ByteTap> tap_;  // null unless somebody watches
  std::optional<TimePoint> timer_deadline_;
  EstablishedHandler established_;
  FallBackHandler fall_back_;
  std::vector<std::byte> private_data_;
  std::optional<stream::Disconnected> disconnected_;
  std::vector<Completion<Error, stream::Disconnected>> disconnect_waiters_;
};

}  // namespace iwarp::cm
