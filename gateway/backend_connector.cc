#include "iwarp/gateway/backend_connector.h"

#include <spdlog/spdlog.h>

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "iwarp/cm/socket_options.h"

namespace iwarp::gateway {
namespace {

using boost::asio::ip::tcp;

class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  using Handler = std::function<void(Error, tcp::socket)>;
  Attempt(boost::asio::io_context& io, BackendRequest request, Handler handler)
      : request_(std::move(request)), handler_(std::move(handler)), resolver_(io), socket_(io), timer_(io) {}

  void begin() {
    timer_.expires_after(request_.timeout);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->finish(make_error(Errc::kTimeout, "TCP server does not answer"));
    });
    resolver_.async_resolve(
        request_.server.host, std::to_string(request_.server.port),
        [self = shared_from_this()](boost::system::error_code ec, const tcp::resolver::results_type& found) {
          if (self->done_) return;
          if (ec) return self->finish(make_error(Errc::kSystem, "cannot resolve the TCP server's name"));
          for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
          self->try_next();
        });
  }

 private:
  void try_next() {
    if (next_ == endpoints_.size())
      return finish(make_error(Errc::kSystem, "cannot connect to the TCP server: is it running?"));
    connect(endpoints_[next_], request_.source_port);
  }

  // With the preferred port first, then with any.
  void connect(const tcp::endpoint& to, std::optional<std::uint16_t> port) {
    boost::system::error_code ec;
    socket_.close(ec);
    socket_.open(to.protocol(), ec);
    if (ec)
      return finish(
          make_error(Errc::kResource, "cannot open a socket for the TCP server: is the limit of open files reached?"));
    // Bound also where any port will do: a port that connect() chooses may be shared with connections to elsewhere, and
    // then cannot be bound again when this client comes back.
    const auto any = to.address().is_v4() ? boost::asio::ip::address(boost::asio::ip::address_v4::any())
                                          : boost::asio::ip::address(boost::asio::ip::address_v6::any());
    socket_.set_option(boost::asio::socket_base::reuse_address(true), ec);
    socket_.bind({request_.source.value_or(any), port.value_or(0)}, ec);
    if (ec) {
      if (port) spdlog::warn("source port {} is taken: the server may execute replays a second time", *port);
      return failed(to, port,
                    make_error(Errc::kSystem, "cannot bind to the source address: is it an address of this host?"));
    }
    socket_.async_connect(to, [self = shared_from_this(), to, port](boost::system::error_code bad) {
      if (self->done_) return;
      const bool itself = !bad && self->reached_itself();
      if (itself) self->socket_.set_option(tcp::socket::linger(true, 0), bad);  // or the port stays in TIME_WAIT
      if (bad || itself)
        return self->failed(to, port, make_error(Errc::kSystem, "cannot connect to the TCP server: is it running?"));
      self->finish(Error{});
    });
  }

  // A local port that happens to be the server's, while no server listens: TCP then connects the socket to itself.
  [[nodiscard]] bool reached_itself() const {
    boost::system::error_code no_local, no_remote;
    return socket_.local_endpoint(no_local) == socket_.remote_endpoint(no_remote) && !no_local && !no_remote;
  }

  void failed(const tcp::endpoint& to, std::optional<std::uint16_t> port, const Error& why) {
    if (port) return connect(to, std::nullopt);
    if (++next_ < endpoints_.size()) return try_next();
    finish(why);
  }

  void finish(Error error) {
    if (std::exchange(done_, true)) return;
    timer_.cancel();
    resolver_.cancel();
    if (error.code == Errc::kOk) {
      if (auto ok = cm::prepare(socket_, {}); !ok) error = ok.error();
    }
    if (error.code != Errc::kOk) {
      boost::system::error_code ec;
      socket_.close(ec);
    }
    handler_(error, std::move(socket_));
  }

  BackendRequest request_;
  Handler handler_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::vector<tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  bool done_ = false;
};

}  // namespace

void connect_backend(boost::asio::io_context& io, const BackendRequest& request,
                     std::function<void(Error, tcp::socket)> handler) {
  std::make_shared<Attempt>(io, request, std::move(handler))->begin();
}

}  // namespace iwarp::gateway
