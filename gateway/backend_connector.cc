#include "iwarp/gateway/backend_connector.h"

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "iwarp/cm/socket_options.h"
#include "iwarp/cm/system_cause.h"

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
    // The resolver asks one name at a time: an address need not wait behind a name server that does not answer.
    boost::system::error_code no_address;
    const auto address = boost::asio::ip::make_address(request_.server.host, no_address);
    if (!no_address) {
      endpoints_.emplace_back(address, request_.server.port);
      return boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        if (!self->done_) self->try_next();
      });
    }
    resolver_.async_resolve(
        request_.server.host, std::to_string(request_.server.port),
        [self = shared_from_this()](boost::system::error_code ec, const tcp::resolver::results_type& found) {
          if (self->done_) return;
          if (ec) return self->finish(cm::resolve_error(ec));
          for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
          self->try_next();
        });
  }

 private:
  void try_next() {
    if (next_ == endpoints_.size())
      return finish(why_.value_or(make_error(Errc::kSystem, "the TCP server's name has no address")));
    ports_ = request_.source_ports;
    try_port();
  }

  // The next port towards this address of the server, or its next address.
  void try_port() {
    const auto port = ports_.next();
    if (!port) {
      if (!why_) why_ = make_error(Errc::kInvalidArgument, "no port from 512 to 1023 is to be had");
      ++next_;
      return try_next();
    }
    connect(endpoints_[next_], *port);
  }

  void connect(const tcp::endpoint& to, std::uint16_t port) {
    boost::system::error_code ec;
    socket_.close(ec);
    cm::open_tcp(socket_, to.protocol(), ec);
    if (ec)
      return finish(
          make_error(Errc::kResource, "cannot open a socket for the TCP server: is the limit of open files reached?"));
    // Bound also where any port will do: a port that connect() chooses may be shared with connections to elsewhere, and
    // then cannot be bound again when this client comes back.
    const auto any = to.address().is_v4() ? boost::asio::ip::address(boost::asio::ip::address_v4::any())
                                          : boost::asio::ip::address(boost::asio::ip::address_v6::any());
    socket_.set_option(boost::asio::socket_base::reuse_address(true), ec);
    socket_.bind({request_.source.value_or(any), port}, ec);
    if (ec) return failed_to_bind(port, ec);
    socket_.async_connect(to, [self = shared_from_this(), port](boost::system::error_code bad) {
      if (!self->done_) self->on_connected(port, bad);
    });
  }

  void failed_to_bind(std::uint16_t port, boost::system::error_code ec) {
    if (ec == boost::asio::error::access_denied && is_reserved(port)) {
      ports_.no_privilege();
      if (!why_)
        why_ = make_error(Errc::kInvalidArgument, "may not use ports below 1024: CAP_NET_BIND_SERVICE is missing");
      return try_port();
    }
    if (port != 0 && ec == boost::asio::error::address_in_use) return try_port();
    why_ = cm::connect_error(ec);
    ++next_;
    try_next();
  }

  void on_connected(std::uint16_t port, boost::system::error_code bad) {
    if (!bad && !reached_itself()) return finish(Error{});
    boost::system::error_code ec;
    if (!bad) socket_.set_option(tcp::socket::linger(true, 0), ec);  // or the port stays in TIME_WAIT
    // Port and server are in use together already, or were until a moment ago.
    const bool port_is_taken = !bad || bad == boost::asio::error::address_in_use || bad.value() == EADDRNOTAVAIL;
    if (!port_is_taken || port == 0)
      why_ = cm::connect_error(bad ? bad : make_error_code(boost::system::errc::connection_refused));
    if (port_is_taken || !is_reserved(port)) return try_port();
    ++next_;  // no other port will help
    try_next();
  }

  // A local port that happens to be the server's, while no server listens: TCP then connects the socket to itself.
  [[nodiscard]] bool reached_itself() const {
    boost::system::error_code no_local, no_remote;
    return socket_.local_endpoint(no_local) == socket_.remote_endpoint(no_remote) && !no_local && !no_remote;
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
  SourcePorts ports_ = request_.source_ports;  // left to try towards this address
  std::optional<Error> why_;                   // of the last failure
  bool done_ = false;
};

}  // namespace

void connect_backend(boost::asio::io_context& io, const BackendRequest& request,
                     std::function<void(Error, tcp::socket)> handler) {
  std::make_shared<Attempt>(io, request, std::move(handler))->begin();
}

}  // namespace iwarp::gateway
