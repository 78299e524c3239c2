// Peers of queue pairs of the RoCE presentation that say what a test wants: Requests to the port of a number, and a
// listener that is told what to answer.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "dropin/verbs/interface.h"
#include "dropin/verbs/rendezvous.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"

namespace iwarp::dropin {

// Of no use but to be connected. What comes waits.
inline std::shared_ptr<verbs::QueuePair> some_queue_pair() {
  verbs::CompletionQueue none(4);
  verbs::QueuePair::Options options{.send_cq = &none, .recv_cq = &none};
  options.stream.receive_wait = std::chrono::hours(1);
  return std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine().context()), options);
}

struct Answer {
  Error error;                 // of the attempt
  std::optional<Refusal> why;  // it was rejected
  std::shared_ptr<cm::Connection> connection;
};

// A Request with these private data to the port that `number` names, from a local address.
inline std::future<Answer> ask(std::vector<std::byte> private_data, std::uint32_t number,
                               const char* from = "127.0.0.1") {
  const auto told = std::make_shared<std::promise<Answer>>();
  cm::ConnectOptions options{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(number & 0xffff)};
  options.policy = rendezvous_policy();
  options.policy.startup_timeout = std::chrono::seconds(60);
  options.private_data = std::move(private_data);
  options.local = boost::asio::ip::tcp::endpoint(boost::asio::ip::make_address(from), 0);
  cm::connect(engine(), some_queue_pair(), options,
              [told](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                Answer answer{.error = error, .why = std::nullopt, .connection = connection};
                if (error && connection != nullptr)
                  answer.why = parse_refusal(connection->disconnected()->private_data);
                told->set_value(answer);
              });
  return told->get_future();
}

inline std::future<Answer> ask(const RendezvousMessage& message, const char* from = "127.0.0.1") {
  return ask(message.octets(), message.to, from);
}

template <class T>
bool is_there(std::future<T>& result, std::chrono::milliseconds within = std::chrono::milliseconds(1)) {
  return result.wait_for(within) == std::future_status::ready;
}

// The other end of `End`s, at a port of its own: closed until open().
class FakePeer {
 public:
  FakePeer() {
    acceptor_.open(boost::asio::ip::tcp::v4());
    acceptor_.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
    port_ = acceptor_.local_endpoint().port();
  }
  ~FakePeer() {
    {
      const std::lock_guard lock(box_->mutex);
      box_->closed = true;
    }
    listener_.reset();
    for (const auto& qp : queue_pairs_) qp->abort();
  }
  FakePeer(const FakePeer&) = delete;
  FakePeer& operator=(const FakePeer&) = delete;

  // A number that is smaller, or larger, than those of Ends: the latter unless they are very many.
  [[nodiscard]] std::uint32_t smaller() const { return port_; }
  [[nodiscard]] std::uint32_t larger() const { return 0xff0000U | port_; }

  // Takes a TCP connection, and resets it. Before open().
  void reset_one() {
    if (!listens_) acceptor_.listen();
    listens_ = true;
    auto socket = acceptor_.accept();
    std::byte first{};
    (void)socket.read_some(boost::asio::buffer(&first, 1));
    socket.set_option(boost::asio::socket_base::linger(true, 0));
    socket.close();
  }
  void open() {
    cm::ListenOptions options;
    options.policy = rendezvous_policy();
    auto made = cm::Listener::listen(engine(), std::move(acceptor_), options);
    ASSERT_TRUE(made) << made.error().why;
    listener_ = std::move(made).value();
    wait(box_, *listener_);
  }
  // The next Request. Null, and the test has failed: none came within 20 s.
  std::unique_ptr<cm::ConnectRequest> next() {
    std::unique_lock lock(box_->mutex);
    if (!box_->come.wait_for(lock, std::chrono::seconds(20), [&] { return !box_->requests.empty(); })) {
      ADD_FAILURE() << "nobody came";
      return nullptr;
    }
    auto first = std::move(box_->requests.front());
    box_->requests.pop_front();
    return first;
  }
  [[nodiscard]] bool anybody(std::chrono::milliseconds within) {
    std::unique_lock lock(box_->mutex);
    return box_->come.wait_for(lock, within, [&] { return !box_->requests.empty(); });
  }
  // Rejects the next one; what it said.
  std::optional<RendezvousMessage> reject(Refusal why) {
    const auto request = next();
    if (request == nullptr) return std::nullopt;
    const auto said = RendezvousMessage::parse(request->private_data());
    EXPECT_TRUE(request->reject(octets_of(why)));
    return said;
  }
  // Accepts it; likewise.
  std::optional<RendezvousMessage> accept() {
    const auto request = next();
    if (request == nullptr) return std::nullopt;
    queue_pairs_.push_back(some_queue_pair());
    request->accept(queue_pairs_.back(), {}, [](const Error&, const std::shared_ptr<cm::Connection>&) {});
    return RendezvousMessage::parse(request->private_data());
  }

 private:
  struct Box {
    std::mutex mutex;
    std::condition_variable come;
    std::deque<std::unique_ptr<cm::ConnectRequest>> requests;
    bool closed = false;
  };
  static void wait(const std::shared_ptr<Box>& box, cm::Listener& listener) {
    listener.accept([box, &listener](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
      if (error) return;
      const std::lock_guard lock(box->mutex);
      if (box->closed) return;
      box->requests.push_back(std::move(request));
      box->come.notify_all();
      wait(box, listener);
    });
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  bool listens_ = false;
  std::uint16_t port_ = 0;
  std::shared_ptr<Box> box_ = std::make_shared<Box>();
  std::unique_ptr<cm::Listener> listener_;
  std::vector<std::shared_ptr<verbs::QueuePair>> queue_pairs_;
};

}  // namespace iwarp::dropin
