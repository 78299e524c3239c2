// A stream rsocket: what a descriptor of rsocket() names. Its calls are those of sockets: they give -1 with errno, and
// wait unless O_NONBLOCK or MSG_DONTWAIT says otherwise; a signal ends a wait as it does for sockets. Calls that wait
// are no cancellation points. Thread-safe, as sockets are: what two threads send at a time may be mixed where one of
// them has to wait for room.
//
// Nobody has to call anything for what is under way to go on: the engine's thread takes what comes, and gives the peer
// its credits.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "dropin/rdmacm/cm_id.h"
#include "dropin/rsocket/stream.h"
#include "dropin/rsocket/waiters.h"
#include "iwarp/cm/connection.h"
#include "iwarp/cm/listener.h"

namespace iwarp::dropin::rsockets {

class Socket : public std::enable_shared_from_this<Socket> {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  // `family`: AF_INET or AF_INET6. By std::make_shared.
  Socket(int family, bool nonblocking);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int family() const { return family_; }

  // --- Names and connections: connect.cc, listen.cc.
  [[nodiscard]] int bind(const Endpoint& local);
  [[nodiscard]] int connect(const Endpoint& peer);
  [[nodiscard]] int listen(int backlog);
  // Null, with errno.
  [[nodiscard]] std::shared_ptr<Socket> accept();
  // What accept() gave, and nobody could take.
  void give_back(std::shared_ptr<Socket> accepted);
  // nullopt: there is no peer.
  [[nodiscard]] std::optional<Endpoint> peer_name();
  [[nodiscard]] Endpoint own_name();

  // --- Data: data.cc.
  [[nodiscard]] ssize_t send(std::span<const iovec> pieces, int flags);
  [[nodiscard]] ssize_t receive(std::span<const iovec> pieces, int flags);

  // --- The end: end.cc. `how` as in shutdown(2). Both wait until TCP has what was sent, as SO_LINGER says.
  [[nodiscard]] int shut(int how);
  // What was sent reaches the peer. The descriptor is the caller's.
  void close();

  // --- Readiness, as poll(2) has it: poll.cc.
  // `drive`: octets are moved first where nothing is ready.
  [[nodiscard]] short ready(short events, bool drive);
  [[nodiscard]] Waiters& waiters() { return *waiters_; }

  // --- Options: options.cc.
  [[nodiscard]] int get_option(int level, int name, void* value, socklen_t* size);
  [[nodiscard]] int set_option(int level, int name, const void* value, socklen_t size);
  [[nodiscard]] bool nonblocking();
  void set_nonblocking(bool on);

  // --- Mapped memory: iomap.cc.
  // -1, with errno; else the offset.
  [[nodiscard]] off_t map(void* memory, std::size_t size, int protection, off_t offset);
  [[nodiscard]] int unmap(void* memory, std::size_t size);
  [[nodiscard]] ssize_t write_mapped(const void* octets, std::size_t size, off_t offset, int flags);

 private:
  enum class State : std::uint8_t {
    kIdle,
    kBound,
    kListening,
    kConnecting,  // or being accepted
    kConnected,   // also when the connection is over
    kFailed,      // to connect
    kClosed,
  };
  // The lock for one call. Its end wakes those who wait, if anything has changed.
  class Turn {
   public:
    explicit Turn(Socket& socket) : socket_(socket), lock_(socket.mutex_), seen_(socket.waiters_->wakes()) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Takes what has come.
    void process();
    // For who does not wait: moves octets in this thread, without the lock meanwhile, and takes what has come.
    void drive();
    // Waits until something changes that was not there when process(), or the lock, was called for last: without the
    // lock meanwhile. False, with errno: a signal.
    [[nodiscard]] bool wait();
    // The same until a moment; true then as well. No signal ends it.
    void wait_until(TimePoint deadline);
    void changed() { changed_ = true; }
    [[nodiscard]] std::unique_lock<std::mutex>& lock() { return lock_; }

   private:
    Socket& socket_;
    std::unique_lock<std::mutex> lock_;
    std::uint32_t seen_;  // wakes
    bool changed_ = false;
  };
  struct Options {
    Sizes sizes;
    bool nonblocking = false;
    bool v6_only = false;
    std::optional<int> linger;               // seconds
    std::set<std::pair<int, int>> switches;  // levels and names of those that are on, and change nothing
    int keepalive_seconds = 7200;
    int inline_octets = 64;  // told again only: all data are copied
  };

  void make_stream();
  // Handlers of the engine.
  void rung();
  void on_connected(const Error& error, const std::shared_ptr<cm::Connection>& connection);
  void on_accepted(const Error& error, const std::shared_ptr<cm::Connection>& connection);
  void on_request(std::unique_ptr<cm::ConnectRequest> request);
  void on_over(const stream::Disconnected& how);
  // Precondition of these: the lock is held.
  void watch_end();
  void wait_for_request();
  [[nodiscard]] bool waits(int flags) const;
  // Until it is connected. 0, or an errno value: EAGAIN, EINTR among them.
  [[nodiscard]] int await_connection(Turn& turn, int flags);
  // Waits until so many requests of the stream have completed (nullopt: for nothing), or the connection is over.
  void linger_until(Turn& turn, TimePoint deadline, std::optional<std::uint64_t> completed);
  [[nodiscard]] TimePoint linger_deadline() const;
  [[nodiscard]] short ready_stream(short events) const;
  [[nodiscard]] int take_failure() { return std::exchange(failure_, 0); }

  const int family_;
  std::mutex mutex_;
  const std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();  // also of what rings
  State state_ = State::kIdle;
  Options options_;
  Endpoint local_, peer_;
  rdmacm::Descriptor bound_;  // keeps the port until somebody listens or connects
  int failure_ = 0;           // of connecting, an errno value; told once by SO_ERROR
  bool told_connected_ = false;

  // Of one that listens.
  std::unique_ptr<cm::Listener> listener_;
  std::size_t backlog_ = 1, arriving_ = 0;
  bool asked_ = false;  // for a request
  std::deque<std::shared_ptr<Socket>> arrived_;

  std::shared_ptr<cm::Canceller> canceller_;
  std::shared_ptr<Stream> stream_;   // from connecting on
  std::vector<MutBytes> unwritten_;  // mapped, and nobody is told of it
  std::shared_ptr<cm::Connection> connection_;
};

}  // namespace iwarp::dropin::rsockets
