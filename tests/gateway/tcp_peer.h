// The far end of a TCP connection of the gateway: ONC RPC records in and out, and everything a peer can do wrong.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "tests/support/hex.h"

namespace iwarp::gateway::test {

using boost::asio::ip::tcp;
using iwarp::test::Bytes;

class TcpPeer : public std::enable_shared_from_this<TcpPeer> {
 public:
  explicit TcpPeer(tcp::socket socket);

  // Begins to read.
  void start();
  // Called for each record; without it they collect in `inbox`.
  std::function<void(TcpPeer&, Bytes)> on_record;
  std::deque<Bytes> inbox;
  // Records that came in more than one fragment.
  std::size_t split_records = 0;
  std::size_t received_bytes = 0;
  [[nodiscard]] bool ended() const { return ended_; }  // FIN, RST, or closed by us
  [[nodiscard]] bool was_reset() const { return reset_; }

  void send(const Bytes& record);
  void send_in_fragments(const Bytes& record, std::size_t fragment_bytes);
  void send_raw(Bytes bytes);
  // Not yet taken by TCP.
  [[nodiscard]] std::size_t unsent_bytes() const { return unsent_; }
  void pause() { paused_ = true; }
  void resume();
  void close();
  void reset();

  [[nodiscard]] tcp::endpoint remote() const { return remote_; }
  [[nodiscard]] tcp::endpoint local() const { return local_; }

 private:
  void read();
  void write();
  void parse();

  tcp::socket socket_;
  tcp::endpoint local_, remote_;
  std::array<std::byte, 65536> chunk_{};
  Bytes stream_;
  Bytes record_;
  std::size_t fragments_ = 0;
  std::deque<Bytes> outbox_;
  std::size_t unsent_ = 0;
  bool paused_ = false, reading_ = false, writing_ = false, ended_ = false, reset_ = false;
};

// A record mark for `bytes` octets.
[[nodiscard]] Bytes record_mark(std::size_t bytes, bool last = true);

}  // namespace iwarp::gateway::test
