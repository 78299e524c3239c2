#include "iwarp/gateway/backend_watch.h"

#include <spdlog/spdlog.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <vector>

#include "iwarp/cm/socket_options.h"

namespace iwarp::gateway {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Of one server: until it is well, or stop().
class BackendWatch::Look : public std::enable_shared_from_this<BackendWatch::Look> {
 public:
  Look(boost::asio::io_context& io, const BackendWatchOptions& options, const ListenerSettings& listener,
       std::function<void()> well)
      : options_(options),
        server_(listener.server),
        what_((listener.name.empty() ? "" : listener.name + ": ") + "the server " + listener.server.to_string()),
        connects_(listener.direction == Direction::kRdmaToTcp),
        well_(std::move(well)),
        resolver_(io),
        socket_(io),
        timer_(io) {}

  void begin() {
    ++round_;
    timer_.expires_after(options_.patience);
    timer_.async_wait([self = shared_from_this(), round = round_](error_code ec) {
      if (!ec && self->current(round))
        self->failed(self->resolved_ ? "it does not answer" : "its name cannot be looked up: no answer in time");
    });
    error_code no_address;
    const auto address = boost::asio::ip::make_address(server_.host, no_address);
    resolved_ = !no_address;
    if (resolved_) {
      const tcp::endpoint server(address, server_.port);
      return boost::asio::post(socket_.get_executor(), [self = shared_from_this(), round = round_, server] {
        if (self->current(round)) self->connect({server});
      });
    }
    resolver_.async_resolve(server_.host, std::to_string(server_.port),
                            [self = shared_from_this(), round = round_](error_code ec, const auto& found) {
                              if (self->current(round)) self->on_resolved(ec, found);
                            });
  }
  void stop() {
    stopped_ = true;
    abandon();
    timer_.cancel();
  }

 private:
  [[nodiscard]] bool current(unsigned round) const { return !stopped_ && round == round_; }

  void on_resolved(error_code ec, const tcp::resolver::results_type& found) {
    if (ec) return failed("its name cannot be looked up: " + ec.message());
    resolved_ = true;
    connect({found.begin(), found.end()});
  }

  void connect(std::vector<tcp::endpoint> to) {
    if (!connects_) return succeeded();
    endpoints_ = std::move(to);
    next_ = 0;
    try_next(boost::asio::error::not_found);
  }

  // `last`: why the one before failed.
  void try_next(error_code last) {
    if (next_ == endpoints_.size()) return failed("it cannot be connected to: " + last.message());
    const tcp::endpoint to = endpoints_[next_++];
    error_code ec;
    socket_.close(ec);
    cm::open_tcp(socket_, to.protocol(), ec);
    if (ec) return try_next(ec);
    socket_.async_connect(to, [self = shared_from_this(), round = round_](error_code bad) {
      if (!self->current(round)) return;
      bad ? self->try_next(bad) : self->succeeded();
    });
  }

  void failed(const std::string& why) {
    ++round_;  // what else is under way comes too late
    abandon();
    if (why != last_why_) {
      spdlog::warn("{} is not ready: {}; clients will be refused until it is", what_, why);
      last_why_ = why;
    }
    timer_.expires_after(options_.every);
    timer_.async_wait([self = shared_from_this()](error_code ec) {
      if (!ec && !self->stopped_) self->begin();
    });
  }

  void succeeded() {
    if (!last_why_.empty()) spdlog::info("{} is ready now", what_);
    stop();
    well_();
  }

  void abandon() {
    resolver_.cancel();
    error_code ec;
    socket_.close(ec);
  }

  BackendWatchOptions options_;
  HostPort server_;
  std::string what_;
  bool connects_;
  std::function<void()> well_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  std::vector<tcp::endpoint> endpoints_;
  std::size_t next_ = 0;  // of them, to be tried
  boost::asio::steady_timer timer_;
  std::string last_why_;
  unsigned round_ = 0;
  bool resolved_ = false;
  bool stopped_ = false;
};

BackendWatch::BackendWatch(boost::asio::io_context& io, const BackendWatchOptions& options)
    : io_(io), options_(options) {}

BackendWatch::~BackendWatch() {
  for (const auto& [key, look] : looks_) look->stop();
}

void BackendWatch::watch(const std::vector<ListenerSettings>& listeners) {
  std::set<Key> wanted;
  for (const ListenerSettings& listener : listeners) {
    const Key key{listener.direction, listener.server.to_string()};
    wanted.insert(key);
    if (!known_.insert(key).second) continue;
    const auto look = std::make_shared<Look>(io_, options_, listener, [this, key] { looks_.erase(key); });
    looks_.emplace(key, look);
    look->begin();
  }
  std::erase_if(known_, [&](const Key& key) { return !wanted.contains(key); });
  std::erase_if(looks_, [&](const auto& entry) {
    if (wanted.contains(entry.first)) return false;
    entry.second->stop();
    return true;
  });
}

}  // namespace iwarp::gateway
