// A connection that is made from this side.
#include "tests/device/end.h"

namespace iwarp::device::test {
namespace {

class DeviceConnect : public ConnectionFixture {
 protected:
  void begin(const tcp::endpoint& to = {boost::asio::ip::make_address("10.0.0.2"), 20049}) {
    device = verbs.open(io);
    auto made = CmId::make(verbs.table());
    ASSERT_TRUE(made);
    id = made->get();
    make(std::move(*made));
    connection->connect(to, from, {16, 0, {std::byte{1}, std::byte{2}}}, [this](const Error& error) { take(error); });
  }
  void resolve() {
    begin();
    verbs.tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    verbs.tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  [[nodiscard]] ::testing::AssertionResult fails(Errc code) {
    if (!run_until(io, [&] { return told.has_value(); })) return ::testing::AssertionFailure() << "told nothing";
    if (told->code == code) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << name(told->code) << ": " << told->why;
  }

  std::optional<tcp::endpoint> from;
};

TEST_F(DeviceConnect, GoesThroughItsSteps) {
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return verbs.calls("connect") == 1; }));
  EXPECT_EQ(connection->life(), Life::kConnecting);
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED, {.private_data = {std::byte{9}}});
  ASSERT_TRUE(fails(Errc::kOk));
  EXPECT_EQ(verbs.last_param.responder_resources, 16);
  EXPECT_EQ(verbs.last_private_data, (std::vector{std::byte{1}, std::byte{2}}));
  EXPECT_EQ(connection->agreed().private_data, std::vector{std::byte{9}});
  EXPECT_EQ(connection->remote(), (tcp::endpoint{boost::asio::ip::make_address("10.0.0.2"), 20049}));
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kPeerClosed);
}

TEST_F(DeviceConnect, KnowsIpv6) {
  const tcp::endpoint to{boost::asio::ip::make_address("fd00::2"), 20049};
  begin(to);
  verbs.tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  verbs.tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_TRUE(fails(Errc::kOk));
  EXPECT_EQ(connection->remote(), to);
  EXPECT_EQ(to_endpoint(to_socket_address(to).any), to);
}

// The event loop goes on while the device connects TCP in the call.
TEST_F(DeviceConnect, DoesNotWaitForACallThatBlocks) {
  verbs.hold_connects();
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return connection->life() == Life::kConnecting; }));
  int turns = 0;
  boost::asio::post(io, [&] { ++turns; });
  settle(io);
  EXPECT_EQ(turns, 1);
  verbs.release_connects();
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_TRUE(fails(Errc::kOk));
}

// Given up while the call has them in hand, the objects go when it returns.
TEST_F(DeviceConnect, MayBeGivenUpWhileTheCallBlocks) {
  times.establish = 50ms;
  verbs.hold_connects();
  resolve();
  ASSERT_TRUE(fails(Errc::kTimeout));
  connection.reset();
  EXPECT_GT(verbs.live(), 0U);
  EXPECT_EQ(verbs.calls("destroy_qp"), 0);
  verbs.release_connects();
  ASSERT_TRUE(run_until(io, [&] { return verbs.live() == 0; }));
  EXPECT_EQ(verbs.calls("destroy_qp"), 1);
}

// The peer may be quicker than the return of the call, which has the id in hand until then.
TEST_F(DeviceConnect, IsEstablishedWhenTheCallHasReturned) {
  verbs.hold_connects();
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return connection->life() == Life::kConnecting; }));
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED, {.private_data = {std::byte{9}}});
  settle(io);
  EXPECT_FALSE(told);
  EXPECT_EQ(connection->life(), Life::kConnecting);
  verbs.release_connects();
  ASSERT_TRUE(fails(Errc::kOk));
  EXPECT_EQ(connection->life(), Life::kUp);
  EXPECT_EQ(connection->agreed().private_data, std::vector{std::byte{9}});
}

TEST_F(DeviceConnect, IsNotEstablishedWhenTheCallFailsAfterAll) {
  verbs.hold_connects();
  verbs.fail("connect", ECONNREFUSED);
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return connection->life() == Life::kConnecting; }));
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED);
  settle(io);
  EXPECT_FALSE(told);
  verbs.release_connects();
  ASSERT_TRUE(fails(Errc::kConnectionRefused));
  EXPECT_EQ(connection->life(), Life::kOver);
}

TEST_F(DeviceConnect, HearsOfAPeerThatComesAndGoesWhileTheCallBlocks) {
  verbs.hold_connects();
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return connection->life() == Life::kConnecting; }));
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED);
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED, {.status = -ECONNRESET});
  ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
  EXPECT_NE(told->code, Errc::kOk);
  EXPECT_EQ(verbs.calls("destroy_qp"), 0);
  connection.reset();
  verbs.release_connects();
  ASSERT_TRUE(run_until(io, [&] { return verbs.live() == 0; }));
  EXPECT_EQ(verbs.calls("destroy_qp"), 1);
  EXPECT_FALSE(end);
}

TEST_F(DeviceConnect, HearsWhyTheCallFailed) {
  verbs.fail("connect", ECONNREFUSED);
  resolve();
  ASSERT_TRUE(fails(Errc::kConnectionRefused));
}

TEST_F(DeviceConnect, HearsOfARejection) {
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return verbs.calls("connect") == 1; }));
  verbs.tell(id, RDMA_CM_EVENT_REJECTED, {.status = 28});
  ASSERT_TRUE(fails(Errc::kPeerRejected));
}

TEST_F(DeviceConnect, HearsThatNobodyAnswers) {
  resolve();
  ASSERT_TRUE(run_until(io, [&] { return verbs.calls("connect") == 1; }));
  verbs.tell(id, RDMA_CM_EVENT_UNREACHABLE, {.status = -ETIMEDOUT});
  ASSERT_TRUE(fails(Errc::kTimeout));
}

TEST_F(DeviceConnect, HearsThatThereIsNoSuchAddress) {
  begin();
  verbs.tell(id, RDMA_CM_EVENT_ADDR_ERROR, {.status = -ENODEV});
  ASSERT_TRUE(fails(Errc::kSystem));
}

TEST_F(DeviceConnect, HearsThatThereIsNoWay) {
  begin();
  verbs.tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  verbs.tell(id, RDMA_CM_EVENT_ROUTE_ERROR, {.status = -EHOSTUNREACH});
  ASSERT_TRUE(fails(Errc::kSystem));
}

TEST_F(DeviceConnect, RefusesAWayOverAnotherDevice) {
  verbs.device_of_address = 1;
  begin();
  verbs.tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_TRUE(fails(Errc::kInvalidArgument));
}

TEST_F(DeviceConnect, HearsOfEachCallThatFails) {
  for (const char* call : {"resolve_addr", "resolve_route", "create_qp"}) {
    told.reset();
    verbs.fail(call, ENOMEM);
    begin();
    if (std::string(call) != "resolve_addr") verbs.tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_TRUE(fails(Errc::kResource)) << call;
    connection.reset();
    EXPECT_EQ(verbs.live(), 0U) << call;
  }
}

// Events that nobody has asked for, or that come twice.
TEST_F(DeviceConnect, IgnoresEventsThatDoNotBelongThere) {
  begin();
  for (const auto type : {RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED,
                          RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_ADDR_CHANGE})
    verbs.tell(id, type);
  settle(io);
  EXPECT_EQ(connection->life(), Life::kAddress);
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace iwarp::device::test
