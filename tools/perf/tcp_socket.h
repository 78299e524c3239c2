// A plain TCP socket for the baselines: what an application without iwarp would write. Blocking, or spinning on
// non-blocking calls. Functions throw std::runtime_error when the connection fails or the user interrupts.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace iwarp::tools::perf {

// What there was to say cannot be said any more, or is not answered: the peer has closed, or `stop` is set.
struct Gone final : std::runtime_error {
  Gone() : std::runtime_error("plain TCP: the other end closed the connection") {}
};

class TcpSocket {
 public:
  TcpSocket() = default;
  // Takes the descriptor over. `stop`, which must outlive it, ends waiting: receiving sees the end of the stream,
  // sending fails.
  TcpSocket(int descriptor, bool spin, const std::atomic<bool>* stop = nullptr);
  TcpSocket(TcpSocket&& other) noexcept;
  TcpSocket& operator=(TcpSocket&& other) noexcept;
  ~TcpSocket();

  // Looks up a name, and gives the connection up when its peer has vanished. `congestion`: TCP congestion control;
  // empty: the system's.
  [[nodiscard]] static TcpSocket connect(const std::string& host, std::uint16_t port, bool spin,
                                         const std::string& congestion = {});
  // A socket() and a connect().
  [[nodiscard]] static TcpSocket connect(const boost::asio::ip::tcp::endpoint& peer, bool spin,
                                         const std::string& congestion = {});
  // On any free port of `host`. Accepted sockets inherit the congestion control.
  [[nodiscard]] static TcpSocket listen(const std::string& host, const std::string& congestion = {});
  // Waits for a connection up to 200 ms; empty when there was none.
  [[nodiscard]] TcpSocket accept(bool spin, const std::atomic<bool>* stop = nullptr) const;
  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const;
  [[nodiscard]] boost::asio::ip::tcp::endpoint peer() const;
  explicit operator bool() const { return fd_ >= 0; }

  // TCP_NODELAY, which is on at first. Turning it on sends what Nagle's algorithm holds back.
  void set_nodelay(bool on) const;
  // Of a connection: as much room for octets that are not read yet as those of iwarp have
  // (cm::SocketOptions::receive_window).
  void make_room() const;
  // One send() of at most `size` octets, or as much as TCP takes; more than 0. Throws Gone.
  std::size_t send_some(const std::byte* data, std::size_t size) const;
  void send_all(const std::byte* data, std::size_t size) const;
  // One recv(); 0 at the end of the stream, after a reset and after `stop`.
  std::size_t receive_some(std::byte* data, std::size_t size) const;
  // False when receive_some() gives 0.
  bool receive_all(std::byte* data, std::size_t size) const;
  // Closes with RST, so that no port stays in TIME_WAIT.
  void reset();

 private:
  // Throws when the user interrupts.
  [[nodiscard]] bool stopped() const;

  int fd_ = -1;
  int flags_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
};

// The TCP congestion control that new sockets get here, such as "cubic"; "unknown" when the system does not tell.
[[nodiscard]] std::string congestion_control();

// From now on the peer of this TCP socket is probed when it is silent for 15 s, and the connection fails when nothing
// is answered for a minute.
void give_up_vanished_peer(int descriptor);

}  // namespace iwarp::tools::perf
