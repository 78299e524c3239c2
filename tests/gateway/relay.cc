#include "tests/gateway/relay.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace iwarp::gateway::test {

struct Relay::Link : std::enable_shared_from_this<Link> {
  Link(Relay& owner, tcp::socket from)
      : relay(owner),
        client(std::move(from)),
        server(client.get_executor()),
        up_pause(client.get_executor()),
        down_pause(client.get_executor()) {}

  Relay& relay;
  tcp::socket client, server;
  std::array<std::byte, 65536> up{}, down{};
  Bytes held;
  boost::asio::steady_timer up_pause, down_pause;
  std::size_t up_passed = 0, down_passed = 0;
  bool over = false, reading_down = false, writing_down = false;

  void cut() {
    if (std::exchange(over, true)) return;
    held.clear();
    up_pause.cancel();
    down_pause.cancel();
    boost::system::error_code ec;
    for (tcp::socket* s : {&client, &server}) {
      s->set_option(boost::asio::socket_base::linger(true, 0), ec);
      s->close(ec);
    }
  }
  bool failed(boost::system::error_code ec) {
    if (ec && !over) cut();
    return over;
  }
  // `n` octets have passed: `next`, at once or after the pause.
  template <class Next>
  void paced(std::size_t n, std::size_t& passed, const Pace& pace, boost::asio::steady_timer& timer, Next next) {
    passed += n;
    if (passed < pace.bytes) return next();
    passed = 0;
    timer.expires_after(pace.pause);
    timer.async_wait([self = shared_from_this(), next](boost::system::error_code ec) {
      if (!ec && !self->over) next();
    });
  }
  void connect() {
    boost::system::error_code ec;
    server.open(relay.server_.protocol());
    if (relay.source_) {
      server.set_option(boost::asio::socket_base::reuse_address(true));
      server.bind({*relay.source_, client.remote_endpoint(ec).port()}, ec);
      if (ec) return cut();
    }
    server.async_connect(relay.server_, [self = shared_from_this()](boost::system::error_code bad) {
      if (self->failed(bad)) return;
      self->pump_up();
      self->pump_down();
    });
  }
  void pump_up() {
    client.async_read_some(boost::asio::buffer(up), [self = shared_from_this()](auto ec, std::size_t n) {
      if (self->failed(ec)) return;
      boost::asio::async_write(self->server, boost::asio::buffer(self->up, n), [self, n](auto bad, std::size_t) {
        if (self->failed(bad)) return;
        self->paced(n, self->up_passed, self->relay.calls_, self->up_pause, [self] { self->pump_up(); });
      });
    });
  }
  void pump_down() {
    if (over || reading_down || relay.stall_) return;
    reading_down = true;
    server.async_read_some(boost::asio::buffer(down), [self = shared_from_this()](auto ec, std::size_t n) {
      self->reading_down = false;
      if (self->failed(ec)) return;
      self->held.insert(self->held.end(), self->down.begin(), self->down.begin() + static_cast<std::ptrdiff_t>(n));
      self->release();
    });
  }
  // Passes on what is held, unless it is to be kept.
  void release() {
    if (over || writing_down) return;
    if (relay.hold_ || held.empty()) return pump_down();
    writing_down = true;
    auto bytes = std::make_shared<Bytes>(std::exchange(held, {}));
    boost::asio::async_write(
        client, boost::asio::buffer(*bytes), [self = shared_from_this(), bytes](auto ec, std::size_t) {
          if (self->failed(ec)) return;
          self->paced(bytes->size(), self->down_passed, self->relay.replies_, self->down_pause, [self] {
            self->writing_down = false;
            self->release();
          });
        });
  }
};

Relay::Relay(Loop& loop, const tcp::endpoint& server, std::optional<boost::asio::ip::address> source)
    : loop_(loop),
      acceptor_(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0}),
      local_(acceptor_.local_endpoint()),
      server_(server),
      source_(std::move(source)) {
  accept();
}

Relay::~Relay() {
  cut();
}

void Relay::accept() {
  acceptor_.async_accept([this](boost::system::error_code ec, tcp::socket socket) {
    if (ec) return;
    links_.push_back(std::make_shared<Link>(*this, std::move(socket)));
    links_.back()->connect();
    accept();
  });
}

void Relay::hold_replies(bool on) {
  hold_ = on;
  for (const auto& link : links_) link->release();
}

std::size_t Relay::held_bytes() const {
  std::size_t sum = 0;
  for (const auto& link : links_) sum += link->held.size();
  return sum;
}

void Relay::stall_replies(bool on) {
  stall_ = on;
  for (const auto& link : links_) link->pump_down();
}

void Relay::cut() {
  for (const auto& link : links_) link->cut();
}

std::size_t Relay::live() const {
  std::size_t n = 0;
  for (const auto& link : links_) n += link->over ? 0 : 1;
  return n;
}

}  // namespace iwarp::gateway::test
