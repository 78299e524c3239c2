#include "tests/faults/relay.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <future>

namespace iwarp::faults {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kSegmentBytes = 1460;
constexpr std::chrono::milliseconds kCoalesceFor{5};

using MaxSegment = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_MAXSEG>;

tcp::endpoint loopback(std::uint16_t port) {
  return {boost::asio::ip::address_v4::loopback(), port};
}

}  // namespace

// One connection: two sockets, and a way from each to the other. Lives in the relay's thread.
class Relay::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Relay& relay, tcp::socket client, const Plan& plan)
      : relay_(relay),
        client_(std::move(client)),
        server_(client_.get_executor()),
        up_(*this, client_, server_, plan.up, record.up),
        down_(*this, server_, client_, plan.down, record.down) {}

  void begin(std::uint16_t target) {
    error_code ec;
    client_.set_option(tcp::no_delay(true), ec);
    server_.open(tcp::v4(), ec);
    server_.set_option(MaxSegment(kSegmentBytes), ec);
    server_.async_connect(loopback(target), [self = shared_from_this()](error_code failed) {
      if (failed) return self->reset();
      error_code ignored;
      self->server_.set_option(tcp::no_delay(true), ignored);
      self->up_.read();
      self->down_.read();
    });
  }
  void reset() {
    if (std::exchange(over_, true)) return;
    error_code ec;
    for (tcp::socket* s : {&client_, &server_}) {
      s->set_option(boost::asio::socket_base::linger(true, 0), ec);
      s->close(ec);
    }
    up_.cancel();
    down_.cancel();
  }
  [[nodiscard]] bool over() const { return over_; }

  Record record;  // guarded by relay_.mu_

 private:
  class Stream {
   public:
    Stream(Link& link, tcp::socket& from, tcp::socket& to, const Way& way, Bytes& record)
        : link_(link), from_(from), to_(to), way_(way), record_(record), timer_(from.get_executor()) {}

    void read() {
      if (link_.over_) return;
      from_.async_read_some(boost::asio::buffer(chunk_),
                            [this, link = link_.shared_from_this()](error_code ec, std::size_t n) {
                              if (link_.over_) return;
                              if (ec) return on_end(ec);
                              take(n);
                              read();
                            });
    }
    void cancel() { timer_.cancel(); }
    [[nodiscard]] bool finished() const { return finished_; }

   private:
    void take(std::size_t n) {
      {
        const std::lock_guard lock(link_.relay_.mu_);
        record_.insert(record_.end(), chunk_.begin(), chunk_.begin() + static_cast<std::ptrdiff_t>(n));
      }
      if (way_.flip_bit && *way_.flip_bit / 8 >= taken_ && *way_.flip_bit / 8 < taken_ + n)
        chunk_[*way_.flip_bit / 8 - taken_] ^= static_cast<std::byte>(1U << (*way_.flip_bit % 8));
      const std::size_t pass =
          way_.cut == Way::Cut::kNone ? n : std::min(n, way_.cut_at - std::min(way_.cut_at, taken_));
      waiting_.insert(waiting_.end(), chunk_.begin(), chunk_.begin() + static_cast<std::ptrdiff_t>(pass));
      taken_ += n;
      write();
    }
    void on_end(error_code ec) {
      if (ec != boost::asio::error::eof) {
        if (!stalled()) link_.reset();
        return;
      }
      // A write to the same socket may have taken the error of a reset, which leaves an end to read: its completion
      // goes first.
      boost::asio::post(from_.get_executor(), [this, link = link_.shared_from_this()] {
        if (link_.over_) return;
        ended_ = true;
        write();
      });
    }
    [[nodiscard]] bool cut_reached() const { return way_.cut != Way::Cut::kNone && passed_ >= way_.cut_at; }
    [[nodiscard]] bool stalled() const { return way_.cut == Way::Cut::kStall && taken_ >= way_.cut_at; }
    [[nodiscard]] bool must_hold() const {
      return way_.coalesce > 0 && waiting_.size() < way_.coalesce && !ended_ && !held_enough_;
    }

    // Sends the next piece, unless one is under way.
    void write() {
      if (writing_ || finished_ || link_.over_) return;
      if (waiting_.empty()) {
        if (cut_reached() || ended_) finish();
        return;
      }
      if (must_hold() && !(way_.cut != Way::Cut::kNone && taken_ >= way_.cut_at))
        return wait(kCoalesceFor, [this] {
          held_enough_ = true;
          write();
        });
      if (way_.delay.count() > 0 && !delayed_)
        return wait(way_.delay, [this] {
          delayed_ = true;
          write();
        });
      held_enough_ = delayed_ = false;
      timer_.cancel();
      const std::size_t limit = way_.pieces.empty() ? waiting_.size() : way_.pieces[next_piece_++ % way_.pieces.size()];
      const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, waiting_.size()));
      piece_.assign(waiting_.begin(), end);
      waiting_.erase(waiting_.begin(), end);
      writing_ = true;
      boost::asio::async_write(to_, boost::asio::buffer(piece_),
                               [this, link = link_.shared_from_this()](error_code ec, std::size_t n) {
                                 writing_ = false;
                                 if (link_.over_) return;
                                 passed_ += n;
                                 if (ec) return on_end(ec);
                                 write();
                               });
    }
    template <class Then>
    void wait(std::chrono::milliseconds time, Then then) {
      timer_.expires_after(time);
      timer_.async_wait([then, link = link_.shared_from_this()](error_code ec) {
        if (!ec && !link->over_) then();
      });
    }
    void finish() {
      if (cut_reached() && way_.cut == Way::Cut::kStall) return;  // neither data nor an end
      if (cut_reached() && way_.cut == Way::Cut::kHold && !ended_) return;
      if (cut_reached() && way_.cut == Way::Cut::kReset) return link_.reset();
      finished_ = true;
      error_code ec;
      to_.shutdown(tcp::socket::shutdown_send, ec);
      link_.close_if_finished();
    }

    Link& link_;
    tcp::socket& from_;
    tcp::socket& to_;
    const Way way_;
    Bytes& record_;
    boost::asio::steady_timer timer_;
    std::array<std::byte, 65536> chunk_{};
    std::deque<std::byte> waiting_;
    Bytes piece_;
    std::size_t taken_ = 0, passed_ = 0, next_piece_ = 0;
    bool ended_ = false, writing_ = false, held_enough_ = false, delayed_ = false, finished_ = false;
  };

  void close_if_finished() {
    if (!up_.finished() || !down_.finished()) return;
    over_ = true;
    error_code ec;
    client_.close(ec);
    server_.close(ec);
  }

  Relay& relay_;
  tcp::socket client_, server_;
  Stream up_, down_;
  bool over_ = false;
};

Relay::Relay(std::uint16_t target) : acceptor_(io_, tcp::v4()), target_(target) {
  acceptor_.set_option(MaxSegment(kSegmentBytes));
  acceptor_.bind(loopback(0));
  acceptor_.listen();
  port_ = acceptor_.local_endpoint().port();
  accept();
  thread_ = std::jthread([this] { io_.run(); });
}

Relay::~Relay() {
  boost::asio::post(io_, [this] {
    error_code ec;
    acceptor_.close(ec);
    for (const auto& link : links_) link->reset();
  });
}

void Relay::accept() {
  acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
    if (ec) return;
    std::shared_ptr<Link> link;
    std::uint16_t target = 0;
    {
      const std::lock_guard lock(mu_);
      std::erase_if(links_, [](const auto& old) { return old->over(); });
      link = links_.emplace_back(std::make_shared<Link>(*this, std::move(socket), once_.value_or(plan_)));
      once_.reset();
      latest_ = link;
      target = target_;
    }
    link->begin(target);
    accept();
  });
}

void Relay::set(Plan plan) {
  const std::lock_guard lock(mu_);
  plan_ = std::move(plan);
  latest_.reset();
}

void Relay::set_once(Plan plan) {
  const std::lock_guard lock(mu_);
  once_ = std::move(plan);
}

void Relay::set_target(std::uint16_t port) {
  const std::lock_guard lock(mu_);
  target_ = port;
}

Relay::Record Relay::record() const {
  const std::lock_guard lock(mu_);
  return latest_ == nullptr ? Record{} : latest_->record;
}

void Relay::reset_all() {
  std::promise<void> done;
  boost::asio::post(io_, [&] {
    for (const auto& link : links_) link->reset();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace iwarp::faults
