// In which order a listener tells of what its peers do.
#include "dropin/rdmacm/request_order.h"

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <future>
#include <thread>

#include "dropin/rdmacm/cm_id.h"
#include "tests/dropin/rdma_cm_support.h"
#include "tests/support/eventually.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using rdmacm::Event;
using rdmacm::RequestOrder;

const auto kHere = make_address("192.0.2.1"), kThere = make_address("2001:db8::1");
const RequestOrder::TimePoint kBegin{};

// Events that are told apart by their status.
std::unique_ptr<Event> request(int number) {
  return std::make_unique<Event>(RDMA_CM_EVENT_CONNECT_REQUEST, std::make_shared<rdmacm::Id>(nullptr, RDMA_PS_TCP),
                                 number);
}

std::string numbers(const RequestOrder::Events& events) {
  std::string all;
  for (const auto& event : events) all += std::to_string(event->shown.c.status);
  return all;
}

TEST(RequestOrder, ARequestWaitsForTheAcceptsOfItsPeer) {
  RequestOrder order;
  EXPECT_FALSE(order.must_wait(kHere));
  order.accepting(kHere);
  order.accepting(kHere);
  EXPECT_TRUE(order.must_wait(kHere));
  EXPECT_FALSE(order.must_wait(kThere));
  order.keep(kHere, request(1), kBegin);
  order.keep(kHere, request(2), kBegin);
  EXPECT_EQ(numbers(order.told(kHere)), "");
  EXPECT_EQ(numbers(order.told(kThere)), "") << "of it nothing was accepted";
  EXPECT_EQ(numbers(order.told(kHere)), "1") << "one at a time";
  EXPECT_TRUE(order.must_wait(kHere)) << "behind the one that waits";
  order.accepting(kHere);
  EXPECT_EQ(numbers(order.passed_over(kHere)), "") << "another one is being accepted";
  EXPECT_EQ(numbers(order.told(kHere)), "2");
  EXPECT_FALSE(order.must_wait(kHere));
  EXPECT_EQ(numbers(order.told(kHere)), "");
}

TEST(RequestOrder, TheNextOneIsToldOfBehindOneThatIsPassedOver) {
  RequestOrder order;
  order.accepting(kHere);
  order.keep(kHere, request(1), kBegin);
  order.keep(kHere, request(2), kBegin);
  EXPECT_EQ(numbers(order.told(kHere)), "1");
  EXPECT_EQ(numbers(order.passed_over(kHere)), "2");
  EXPECT_EQ(numbers(order.passed_over(kHere)), "");
}

TEST(RequestOrder, OthersStayWhereTheyAre) {
  RequestOrder order;
  order.accepting(kHere);
  order.accepting(kThere);
  order.keep(kHere, request(1), kBegin);
  order.keep(kThere, request(2), kBegin);
  order.keep(kHere, request(3), kBegin);
  EXPECT_EQ(numbers(order.told(kHere)), "1");
  EXPECT_TRUE(order.must_wait(kThere));
  EXPECT_EQ(numbers(order.take_all()), "23");
}

TEST(RequestOrder, NobodyWaitsForEver) {
  RequestOrder order;
  order.accepting(kHere);
  order.keep(kHere, request(1), kBegin);
  order.keep(kHere, request(2), kBegin + 1ms);
  EXPECT_EQ(numbers(order.overdue(kBegin + RequestOrder::kLimit - 1ns)), "");
  EXPECT_EQ(numbers(order.overdue(kBegin + RequestOrder::kLimit)), "1");
  EXPECT_TRUE(order.must_wait(kHere)) << "the accept is still under way";
  EXPECT_EQ(numbers(order.overdue(kBegin + RequestOrder::kLimit + 1ms)), "2");
}

// Between an initiator and the listener: what the initiator says behind its Request, the RTR message first, is kept
// until it is let through.
class Relay {
 public:
  explicit Relay(std::uint16_t to) : acceptor_(io_, {make_address("127.0.0.1"), 0}), to_(to) {
    threads_.emplace_back([this] { serve(); });
  }
  ~Relay() {
    let_through();
    boost::system::error_code none;
    client_.shutdown(tcp::socket::shutdown_both, none);
    server_.shutdown(tcp::socket::shutdown_both, none);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void let_through() {
    if (!open_.exchange(true)) opened_.set_value();
  }

 private:
  void serve() {
    client_ = acceptor_.accept();
    server_.connect({make_address("127.0.0.1"), to_});
    threads_.emplace_back([this] { pass(server_, client_); });
    std::array<std::byte, 1024> room{};
    boost::asio::write(server_, boost::asio::buffer(room, client_.read_some(boost::asio::buffer(room))));
    opened_.get_future().wait();
    pass(client_, server_);
  }
  static void pass(tcp::socket& from, tcp::socket& to) {
    std::array<std::byte, 1024> room{};
    boost::system::error_code over;
    for (std::size_t n = from.read_some(boost::asio::buffer(room), over); !over;
         n = from.read_some(boost::asio::buffer(room), over))
      boost::asio::write(to, boost::asio::buffer(room, n), over);
    to.shutdown(tcp::socket::shutdown_send, over);
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
  tcp::socket client_{io_}, server_{io_};
  const std::uint16_t to_;
  std::promise<void> opened_;
  std::atomic<bool> open_{false};
  std::deque<std::jthread> threads_;  // joined first
};

class RequestsInOrder : public RdmaCmPair {
 protected:
  // A first connection that is established for its initiator only; the id at the passive end.
  rdma_cm_id* accept_first() {
    rdma_cm_id* const accepted = accept(first);
    active.expect(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_FALSE(readable(passive->fd)) << "there is no RTR message to wait for";
    return accepted;
  }

  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(rdmacm::cm_mutex());
    return rdmacm::Id::of(listener).order.waiting();
  }
  // Another connection: its request waits then, behind those of before, or has been told of for its limit.
  void connect_another(rdma_cm_id* from) {
    const std::size_t before = waiting();
    auto wanted = parameters();
    ASSERT_EQ(::rdma_connect(from, &wanted), 0);
    EXPECT_TRUE(iwarp::test::eventually([&] { return waiting() > before || readable(passive->fd); }));
  }

  const std::uint16_t port = ntohs(::rdma_get_src_port(listener));
  Relay relay{port};
  rdma_cm_id* const first = make_client(active, relay.port());
};

// Whether it worked in time: on a busy machine the request may be told of for its limit.
TEST_F(RequestsInOrder, EstablishedIsToldBeforeThePeersNextRequest) {
  rdma_cm_id* const accepted = accept_first();
  ASSERT_NE(accepted, nullptr);
  const auto before = std::chrono::steady_clock::now();
  connect_another(client);
  relay.let_through();
  rdma_cm_event* event = nullptr;
  ASSERT_TRUE(readable(passive->fd, 20000));
  ASSERT_EQ(::rdma_get_cm_event(passive, &event), 0);
  const bool in_time = std::chrono::steady_clock::now() - before < RequestOrder::kLimit;
  const bool established_first = event->event == RDMA_CM_EVENT_ESTABLISHED;
  rdma_cm_id* second = event->id;
  ::rdma_ack_cm_event(event);
  event = passive.take(established_first ? RDMA_CM_EVENT_CONNECT_REQUEST : RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(event, nullptr);
  if (established_first) second = event->id;
  ::rdma_ack_cm_event(event);
  EXPECT_EQ(::rdma_reject(second, nullptr, 0), 0);
  active.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  for (rdma_cm_id* id : {second, accepted, first, client, listener}) destroy(id);
  if (!in_time) GTEST_SKIP() << "this machine took longer than the request waits";
  EXPECT_TRUE(established_first);
}

TEST_F(RequestsInOrder, ARequestIsToldOfWhenTheRtrMessageDoesNotCome) {
  rdma_cm_id* const accepted = accept_first();
  ASSERT_NE(accepted, nullptr);
  connect();
  rdma_cm_id* const second = requested();
  ASSERT_NE(second, nullptr);
  for (rdma_cm_id* id : {second, accepted, first, client, listener}) destroy(id);
}

TEST_F(RequestsInOrder, WhatWaitsIsRejectedWithTheListener) {
  rdma_cm_id* const accepted = accept_first();
  ASSERT_NE(accepted, nullptr);
  connect_another(client);
  destroy(listener);
  active.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  for (rdma_cm_id* id : {accepted, first, client}) destroy(id);
}

// Who goes before its accept is over leaves nobody waiting.
TEST_F(RequestsInOrder, AnAcceptThatIsGivenUpEndsTheWait) {
  rdma_cm_id* const accepted = accept_first();
  ASSERT_NE(accepted, nullptr);
  connect_another(client);
  destroy(accepted);
  rdma_cm_id* const second = requested();
  ASSERT_NE(second, nullptr);
  for (rdma_cm_id* id : {second, first, client, listener}) destroy(id);
}

// A program that wants none of two requests says so of the first by destroying it.
TEST_F(RequestsInOrder, TheNextOneIsToldOfWhenARequestIsDestroyed) {
  rdma_cm_id* const third = make_client(active, port);
  rdma_cm_id* const accepted = accept_first();
  ASSERT_NE(accepted, nullptr);
  connect_another(client);
  connect_another(third);
  if (readable(passive->fd)) GTEST_SKIP() << "this machine took longer than a request waits";
  relay.let_through();
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  rdma_cm_id* const second = requested();
  ASSERT_NE(second, nullptr);
  destroy(second);
  EXPECT_EQ(waiting(), 0U);
  rdma_cm_id* const last = requested();
  ASSERT_NE(last, nullptr);
  for (rdma_cm_id* id : {last, accepted, first, client, third, listener}) destroy(id);
}

}  // namespace
}  // namespace iwarp::dropin::test
