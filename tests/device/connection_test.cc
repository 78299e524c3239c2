// A connection that was accepted: how it wakes and how it ends.
#include "iwarp/device/connection.h"

#include "tests/device/end.h"

namespace iwarp::device::test {
namespace {

using DeviceConnection = ConnectionFixture;

TEST_F(DeviceConnection, EndsWhenItsCompletionsCannotBeHeardOf) {
  establish();
  verbs.break_completions(id);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kSystem);
}

// Whoever asks late is told as well, once.
TEST_F(DeviceConnection, TellsItsEndToWhoAsksAfterIt) {
  establish();
  connection->abort(make_error(Errc::kAborted));
  settle(io);
  ASSERT_TRUE(end);
  end.reset();
  connection->on_end([this](const End& how) { end = how; });
  EXPECT_FALSE(end) << "inside the call";
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kAborted);
  EXPECT_TRUE(end->was_established);
}

TEST_F(DeviceConnection, IsAcceptedAndToldOnce) {
  establish();
  EXPECT_EQ(verbs.last_param.responder_resources, 8);
  EXPECT_EQ(verbs.last_param.initiator_depth, 4);
  EXPECT_EQ(connection->life(), Life::kUp);
  verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED);  // once more
  settle(io);
  EXPECT_FALSE(end);
}

TEST_F(DeviceConnection, WakesWhenSomethingHasCompleted) {
  establish();
  int woken = 0;
  post_send();
  connection->arm([&] { ++woken; });
  settle(io);
  EXPECT_EQ(woken, 0);
  verbs.complete(id, verbs.sends.at(0).wr.wr_id);
  ASSERT_TRUE(run_until(io, [&] { return woken > 0; }));
  EXPECT_EQ(poll().size(), 1U);
  settle(io);
  EXPECT_EQ(woken, 1);
}

TEST_F(DeviceConnection, DoesNotWakeWhoHasDisarmed) {
  establish();
  int woken = 0;
  post_send();
  connection->arm([&] { ++woken; });
  connection->disarm();
  verbs.complete(id, verbs.sends.at(0).wr.wr_id);
  settle(io);
  EXPECT_EQ(woken, 0);
}

TEST_F(DeviceConnection, EndsOrderlyWhenThePeerLeaves) {
  establish();
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(end->was_established);
}

// What came before the end is not lost, though the queue pair is gone when the owner hears of it.
TEST_F(DeviceConnection, GivesWhatHadCompletedBeforeItsEnd) {
  establish();
  ASSERT_TRUE(connection->endpoint().post_recv(5, {MutBytes(memory).first(100), Stag{7}}));
  verbs.complete(id, verbs.receives.at(0).wr_id, IBV_WC_SUCCESS, 60);
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kPeerClosed);
  EXPECT_EQ(verbs.calls("destroy_qp"), 1);
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].byte_len, 60U);
  EXPECT_TRUE(poll().empty());
}

// The event is the same: what became of the messages tells.
TEST_F(DeviceConnection, IsLostWhenThePeerLeavesWithMessagesOnTheirWay) {
  establish();
  post_send();
  verbs.flush(id);
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kConnectionLost);
}

TEST_F(DeviceConnection, IsLostWhenMessagesNeitherCompleteNorAreFlushed) {
  establish();
  post_send();
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kConnectionLost);
}

TEST_F(DeviceConnection, TakesTheStatusOfTheEventForAnError) {
  establish();
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED, {.status = -ETIMEDOUT});
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kTimeout);
}

TEST_F(DeviceConnection, EndsWithTheErrorOfACompletion) {
  establish();
  post_send();
  verbs.complete(id, verbs.sends.at(0).wr.wr_id, IBV_WC_REM_ACCESS_ERR);
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, rpcrdma::OpStatus::kFailed);
  EXPECT_FALSE(end) << "told inside poll()";
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kRemoteTerminate);
  EXPECT_STREQ(end->reason.why, "remote access error");
}

// The completion says more than the event that comes first.
TEST_F(DeviceConnection, NamesTheErrorOfACompletionThatNobodyHadSeenYet) {
  establish();
  post_send();
  verbs.complete(id, verbs.sends.at(0).wr.wr_id, IBV_WC_REM_ACCESS_ERR);
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kRemoteTerminate);
}

TEST_F(DeviceConnection, EndsWhenTheQueuePairFailsAndNoEventEverComes) {
  establish();
  ASSERT_TRUE(connection->endpoint().post_recv(5, {MutBytes(memory).first(100), Stag{7}}));
  bool woken = false;
  connection->arm([&] { woken = true; });
  verbs.flush(id);
  ASSERT_TRUE(run_until(io, [&] { return woken; }));
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, rpcrdma::OpStatus::kFlushed);
  EXPECT_EQ(connection->life(), Life::kSuspect);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kConnectionLost);
}

TEST_F(DeviceConnection, IsOrderlyWhenTheEventFollowsTheFlushedReceives) {
  establish();
  ASSERT_TRUE(connection->endpoint().post_recv(5, {MutBytes(memory).first(100), Stag{7}}));
  verbs.flush(id);
  EXPECT_EQ(poll().size(), 1U);
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kPeerClosed);
}

TEST_F(DeviceConnection, EndsWithTheAsynchronousErrorOfItsQueuePairOnly) {
  establish();
  ibv_qp other{};
  verbs.async(IBV_EVENT_QP_FATAL, &other);
  verbs.async(IBV_EVENT_COMM_EST, id->qp);
  verbs.async(IBV_EVENT_PORT_ERR, id->qp);
  settle(io);
  EXPECT_FALSE(end);
  verbs.async(IBV_EVENT_QP_FATAL, id->qp);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kRdmapCatastrophic);
}

TEST_F(DeviceConnection, EndsWithTheErrorOfItsCompletionQueue) {
  establish();
  verbs.async(IBV_EVENT_CQ_ERR, nullptr, id->qp->send_cq);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kRdmapCatastrophic);
}

TEST_F(DeviceConnection, EndsWhenTheDeviceFails) {
  establish();
  verbs.async(IBV_EVENT_DEVICE_FATAL, nullptr);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kSystem);
  EXPECT_TRUE(device->gone());
}

TEST_F(DeviceConnection, EndsWhenTheDeviceIsRemoved) {
  establish();
  verbs.tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kSystem);
  EXPECT_TRUE(device->gone());
  EXPECT_FALSE(Resources::make(device, {}, {}));
}

TEST_F(DeviceConnection, LetsMessagesOutBeforeItLeaves) {
  establish();
  post_send();
  connection->disconnect();
  EXPECT_EQ(verbs.calls("disconnect"), 0);
  verbs.complete(id, verbs.sends.at(0).wr.wr_id);
  EXPECT_EQ(poll().size(), 1U);
  EXPECT_EQ(verbs.calls("disconnect"), 1);
  EXPECT_EQ(connection->life(), Life::kLeaving);
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kAborted);
  EXPECT_STREQ(end->reason.why, kLeft);
}

TEST_F(DeviceConnection, LeavesThoughThePeerDoesNotAnswer) {
  establish();
  connection->disconnect();
  EXPECT_EQ(verbs.calls("disconnect"), 1);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kAborted);
}

TEST_F(DeviceConnection, GivesUpMessagesThatDoNotGoOut) {
  establish();
  post_send();
  connection->disconnect();
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kTimeout);
  EXPECT_EQ(verbs.calls("disconnect"), 0);
}

TEST_F(DeviceConnection, HasNoQueuePairAnyMoreWhenAbortReturns) {
  establish();
  const std::uint64_t before = connection->endpoint().unfinished_sends();
  EXPECT_EQ(before, 0U);
  connection->abort(make_error(Errc::kTimeout, "a test"));
  EXPECT_EQ(verbs.calls("destroy_qp"), 1);
  EXPECT_FALSE(end) << "told inside abort()";
  EXPECT_FALSE(connection->endpoint().post_recv(1, {MutBytes(memory).first(8), Stag{7}}));
  ASSERT_TRUE(ends());
  EXPECT_STREQ(end->reason.why, "a test");
  connection->abort(make_error(Errc::kSystem));  // too late
  settle(io);
  EXPECT_EQ(end->reason.code, Errc::kTimeout);
}

// The peer hears that this end has left, also while messages are on their way; twice it need not hear it.
TEST_F(DeviceConnection, TellsThePeerWhenItLeavesAtOnce) {
  establish();
  connection->leave_at_once();
  EXPECT_EQ(verbs.calls("disconnect"), 1);
  EXPECT_EQ(verbs.calls("destroy_qp"), 1);
  ASSERT_TRUE(ends());
  EXPECT_STREQ(end->reason.why, kLeft);
}

TEST_F(DeviceConnection, TellsThePeerWhenItLeavesAtOnceAfterAll) {
  establish();
  post_send();
  connection->disconnect();
  EXPECT_EQ(verbs.calls("disconnect"), 0);
  connection->leave_at_once();
  EXPECT_EQ(verbs.calls("disconnect"), 1);
  ASSERT_TRUE(ends());
  EXPECT_STREQ(end->reason.why, kLeft);
}

TEST_F(DeviceConnection, TellsThePeerOnceThatItLeaves) {
  establish();
  connection->disconnect();
  connection->leave_at_once();
  EXPECT_EQ(verbs.calls("disconnect"), 1);
  ASSERT_TRUE(ends());
}

TEST_F(DeviceConnection, NamesTheFailedRequestThoughItsOwnerEndsIt) {
  establish();
  post_send();
  verbs.complete(id, verbs.sends.at(0).wr.wr_id, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(poll().size(), 1U);
  connection->abort(make_error(Errc::kAborted, "an operation has failed"));
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kRemoteTerminate);
}

TEST_F(DeviceConnection, ThatWasGivenUpIsNotAccepted) {
  device = verbs.open(io);
  auto made = CmId::make(verbs.table());
  ASSERT_TRUE(made);
  made->get()->verbs = device->context();
  make(std::move(*made));
  connection->abort(make_error(Errc::kAborted));
  connection->accept({}, [this](const Error& error) { take(error); });
  ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
  EXPECT_EQ(told->code, Errc::kAborted);
  EXPECT_EQ(verbs.calls("accept"), 0);
}

TEST_F(DeviceConnection, MayGoWithEventsUnread) {
  establish();
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  verbs.tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  verbs.async(IBV_EVENT_QP_FATAL, id->qp);
  connection.reset();
  settle(io);
}

TEST_F(DeviceConnection, HearsWhyItWasNotEstablished) {
  accept();
  verbs.tell(id, RDMA_CM_EVENT_CONNECT_ERROR, {.status = -EPROTO});
  ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
  EXPECT_EQ(told->code, Errc::kSystem);
  EXPECT_FALSE(end);
}

TEST_F(DeviceConnection, WaitsForThePeerOnlySoLong) {
  times.establish = 50ms;
  accept();
  ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
  EXPECT_EQ(told->code, Errc::kStartupTimeout);
}

TEST_F(DeviceConnection, HearsOfAPeerThatLeftMeanwhile) {
  accept();
  verbs.tell(id, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
  EXPECT_NE(told->code, Errc::kOk);
}

TEST_F(DeviceConnection, HearsThatTheDeviceDoesNotAccept) {
  verbs.fail("accept", EINVAL);
  accept();
  EXPECT_FALSE(told) << "told inside accept()";
  ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
  EXPECT_EQ(told->code, Errc::kSystem);
}

TEST_F(DeviceConnection, EndsWhenItCannotBeWoken) {
  establish();
  verbs.fail("req_notify_cq", EIO);
  connection->arm([] {});
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kSystem);
}

TEST_F(DeviceConnection, EndsWhenItsQueueCannotBeRead) {
  establish();
  verbs.fail("poll_cq", EIO);
  EXPECT_TRUE(poll().empty());
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kSystem);
}

// Whatever cannot be had, nothing of the rest stays.
TEST_F(DeviceConnection, LeavesNothingWhereItCannotBeMade) {
  device = verbs.open(io);
  for (const char* call : {"alloc_pd", "create_comp_channel", "create_cq"}) {
    auto made = CmId::make(verbs.table());
    ASSERT_TRUE(made);
    verbs.fail(call, ENOMEM);
    const auto refused = Connection::make(io, device, std::move(*made), 4);
    ASSERT_FALSE(refused) << call;
    EXPECT_EQ(refused.error().code, Errc::kResource) << call;
    EXPECT_EQ(verbs.live(), 0U) << call;
  }
  for (const char* call : {"create_event_channel", "create_id"}) {
    verbs.fail(call, EMFILE);
    EXPECT_FALSE(CmId::make(verbs.table())) << call;
    EXPECT_EQ(verbs.live(), 0U) << call;
  }
}

TEST_F(DeviceConnection, HasNoQueuePairOnAnotherDevice) {
  device = verbs.open(io);
  auto made = CmId::make(verbs.table());
  ASSERT_TRUE(made);
  ibv_context other{};
  made->get()->verbs = &other;
  make(std::move(*made));
  const auto refused = connection->make_queue_pair();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::device::test
