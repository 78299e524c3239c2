#include "iwarp/cm/last_reply.h"

#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

namespace iwarp::cm {
namespace {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// After a Reply with R=1 the peer closes (RFC 5044 s7.1.2 rule 2); whoever does not is closed after this. A Reply that
// TCP has not taken by then is given up.
constexpr std::chrono::seconds kRejectLinger{5};

// Sends the bytes, half-closes, and waits for the peer's end, bounded in time and in what is read.
class Farewell : public std::enable_shared_from_this<Farewell> {
 public:
  Farewell(tcp::socket socket, ConstBytes bytes, std::shared_ptr<void> slot)
      : slot_(std::move(slot)),
        socket_(std::move(socket)),
        strand_(boost::asio::make_strand(socket_.get_executor())),
        timer_(strand_),
        bytes_(bytes.begin(), bytes.end()) {}

  void begin() {
    timer_.expires_after(kRejectLinger);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code) {
      boost::system::error_code ec;
      self->socket_.close(ec);
    });
    auto written = [self = shared_from_this()](boost::system::error_code failed, std::size_t) {
      boost::system::error_code ec;
      self->socket_.shutdown(tcp::socket::shutdown_send, ec);
      if (failed) return self->end();
      self->discard();
    };
    boost::asio::async_write(socket_, boost::asio::buffer(bytes_),
                             boost::asio::bind_executor(strand_, std::move(written)));
  }

 private:
  void discard() {
    auto came = [self = shared_from_this()](boost::system::error_code ec, std::size_t n) {
      self->discarded_ += n;
      if (ec || self->discarded_ > self->sink_.size() * 64) return self->end();
      self->discard();
    };
    socket_.async_read_some(boost::asio::buffer(sink_), boost::asio::bind_executor(strand_, std::move(came)));
  }
  void end() { timer_.cancel(); }

  std::shared_ptr<void> slot_;  // outlives the socket
  tcp::socket socket_;
  boost::asio::strand<tcp::socket::executor_type> strand_;
  boost::asio::steady_timer timer_;
  std::vector<std::byte> bytes_;
  std::array<std::byte, 1024> sink_{};
  std::size_t discarded_ = 0;
};

// Sends the bytes and gives the socket up.
class HandBack : public std::enable_shared_from_this<HandBack> {
 public:
  HandBack(tcp::socket socket, ConstBytes bytes, std::shared_ptr<void> slot,
           std::function<void(Error, TcpConnection)> handler)
      : slot_(std::move(slot)),
        socket_(std::move(socket)),
        strand_(boost::asio::make_strand(socket_.get_executor())),
        timer_(strand_),
        bytes_(bytes.begin(), bytes.end()),
        handler_(std::move(handler)) {}

  void begin() {
    timer_.expires_after(kRejectLinger);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->end(make_error(Errc::kTimeout, "peer did not take the MPA Reply"));
    });
    auto written = [self = shared_from_this()](boost::system::error_code failed, std::size_t) {
      self->end(failed ? make_error(Errc::kConnectionLost, "connection ended before the MPA Reply left") : Error{});
    };
    boost::asio::async_write(socket_, boost::asio::buffer(bytes_),
                             boost::asio::bind_executor(strand_, std::move(written)));
  }

 private:
  void end(const Error& error) {
    if (!handler_) return;
    timer_.cancel();
    boost::system::error_code ec;
    if (error.code != Errc::kOk) socket_.close(ec);
    slot_.reset();
    std::exchange(handler_, {})(error, socket_.is_open() ? TcpConnection(std::move(socket_)) : TcpConnection());
  }

  std::shared_ptr<void> slot_;
  tcp::socket socket_;
  boost::asio::strand<tcp::socket::executor_type> strand_;
  boost::asio::steady_timer timer_;
  std::vector<std::byte> bytes_;
  std::function<void(Error, TcpConnection)> handler_;  // empty: called
};

}  // namespace

void say_farewell(tcp::socket socket, ConstBytes bytes, const std::shared_ptr<ByteTap>& tap,
                  std::shared_ptr<void> slot) {
  if (tap != nullptr) {
    tap->sent({bytes}, Clock::now());
    tap->sent_end(ByteTap::End::kFin, Clock::now());
  }
  std::make_shared<Farewell>(std::move(socket), bytes, std::move(slot))->begin();
}

void hand_back(tcp::socket socket, ConstBytes bytes, const std::shared_ptr<ByteTap>& tap, std::shared_ptr<void> slot,
               std::function<void(Error, TcpConnection)> handler) {
  if (tap != nullptr) tap->sent({bytes}, Clock::now());
  std::make_shared<HandBack>(std::move(socket), bytes, std::move(slot), std::move(handler))->begin();
}

}  // namespace iwarp::cm
