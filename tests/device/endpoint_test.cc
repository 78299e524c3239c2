#include "iwarp/device/endpoint.h"

#include "tests/device/end.h"
#include "tests/support/covers.h"

namespace iwarp::device::test {
namespace {

using rpcrdma::LocalSlice;
using rpcrdma::OpKind;
using rpcrdma::OpStatus;
using rpcrdma::RemoteAccess;

class DeviceEndpoint : public ConnectionFixture {
 protected:
  void SetUp() override { establish(); }
  [[nodiscard]] Endpoint& endpoint() { return connection->endpoint(); }
  [[nodiscard]] LocalSlice slice(std::size_t at, std::size_t bytes) {
    return {MutBytes(memory).subspan(at, bytes), Stag{7}};
  }
};

class DeviceEndpointOfRoce : public DeviceEndpoint {
 protected:
  void SetUp() override {
    verbs.transport = IBV_TRANSPORT_IB;
    verbs.attributes.device_cap_flags = 0;
    DeviceEndpoint::SetUp();
  }
};

TEST_F(DeviceEndpoint, SaysWhatTheDeviceHas) {
  EXPECT_EQ(endpoint().limits().max_sge, 6U);
  EXPECT_EQ(endpoint().limits().max_outstanding_reads, 4U);
  EXPECT_EQ(endpoint().limits().send_queue_depth, 128U);
  EXPECT_EQ(endpoint().limits().receive_queue_depth, 256U);
}

TEST_F(DeviceEndpoint, PostsTogetherInOrder) {
  const std::array both{slice(0, 10), slice(20, 30)};
  ASSERT_TRUE(endpoint().post_write(1, {both.data(), 1}, Stag{99}, 4000));
  ASSERT_TRUE(endpoint().post_send(2, both, std::nullopt));
  EXPECT_TRUE(verbs.sends.empty());
  ASSERT_TRUE(endpoint().flush());
  ASSERT_EQ(verbs.sends.size(), 2U);
  EXPECT_EQ(verbs.sends[0].wr.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(verbs.sends[0].wr.wr.rdma.rkey, 99U);
  EXPECT_EQ(verbs.sends[0].wr.wr.rdma.remote_addr, 4000U);
  EXPECT_EQ(verbs.sends[1].wr.opcode, IBV_WR_SEND);
  ASSERT_EQ(verbs.sends[1].sges.size(), 2U);
  EXPECT_EQ(verbs.sends[1].sges[1].addr, reinterpret_cast<std::uint64_t>(memory.data() + 20));
  EXPECT_EQ(verbs.sends[1].sges[1].length, 30U);
  EXPECT_EQ(verbs.sends[1].sges[1].lkey, 7U);
  for (const auto& request : verbs.sends) EXPECT_NE(request.wr.send_flags & IBV_SEND_SIGNALED, 0U);
}

TEST_F(DeviceEndpoint, SendsWithInvalidateWhereTheDeviceCan) {
  COVERS("RFC8797-3.2-1");
  const LocalSlice one = slice(0, 10);
  ASSERT_TRUE(endpoint().post_send(1, {&one, 1}, Stag{0x1234}));
  ASSERT_TRUE(endpoint().flush());
  EXPECT_EQ(verbs.sends.at(0).wr.opcode, IBV_WR_SEND_WITH_INV);
  EXPECT_EQ(verbs.sends.at(0).wr.invalidate_rkey, 0x1234U);
}

TEST_F(DeviceEndpointOfRoce, SendsWithoutInvalidateWhereTheDeviceCannot) {
  const LocalSlice one = slice(0, 10);
  ASSERT_TRUE(endpoint().post_send(1, {&one, 1}, Stag{0x1234}));
  ASSERT_TRUE(endpoint().flush());
  EXPECT_EQ(verbs.sends.at(0).wr.opcode, IBV_WR_SEND);
}

// On an RNIC the peer must be able to write where the answer goes, and only there, and only then.
TEST_F(DeviceEndpoint, ExposesTheSinkOfARead) {
  ASSERT_TRUE(endpoint().post_read(1, slice(100, 50), Stag{9}, 5));
  ASSERT_TRUE(endpoint().flush());
  ASSERT_EQ(verbs.regions().size(), 1U);
  EXPECT_EQ(verbs.regions()[0].address, memory.data() + 100);
  EXPECT_EQ(verbs.regions()[0].bytes, 50U);
  EXPECT_EQ(verbs.regions()[0].access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_NE(verbs.sends.at(0).sges.at(0).lkey, 7U);
  verbs.complete(id, verbs.sends[0].wr.wr_id);
  ASSERT_EQ(poll().size(), 1U);
  EXPECT_TRUE(verbs.regions().empty());
  EXPECT_EQ(endpoint().traffic().read_bytes, 50U);
}

TEST_F(DeviceEndpointOfRoce, ExposesNothingForARead) {
  ASSERT_TRUE(endpoint().post_read(1, slice(100, 50), Stag{9}, 5));
  ASSERT_TRUE(endpoint().flush());
  EXPECT_TRUE(verbs.regions().empty());
  EXPECT_EQ(verbs.sends.at(0).sges.at(0).lkey, 7U);
}

TEST_F(DeviceEndpoint, RegistersWithTheRightsThatAreNeeded) {
  COVERS("RFC5042-A-1");
  const auto local = endpoint().register_local(MutBytes(memory).first(1024));
  const auto read = endpoint().register_memory(MutBytes(memory).first(100), RemoteAccess::kRead, true);
  const auto write = endpoint().register_memory(MutBytes(memory).first(200), RemoteAccess::kWrite, true);
  ASSERT_TRUE(local && read && write);
  EXPECT_EQ(read->offset, reinterpret_cast<std::uint64_t>(memory.data()));
  std::map<std::size_t, int> access;
  for (const auto& region : verbs.regions()) access[region.bytes] = region.access;
  EXPECT_EQ(access[1024], IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(access[100], IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(access[200], IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_TRUE(endpoint().invalidate(read->handle));
  EXPECT_TRUE(endpoint().invalidate(read->handle));  // again
  endpoint().deregister_local(*local);
  EXPECT_EQ(verbs.regions().size(), 1U);  // the last goes with the endpoint
}

TEST_F(DeviceEndpoint, SaysThatAFenceHasFailed) {
  const auto write = endpoint().register_memory(MutBytes(memory).first(200), RemoteAccess::kWrite, true);
  ASSERT_TRUE(write);
  verbs.fail("dereg_mr", EBUSY);
  EXPECT_FALSE(endpoint().invalidate(write->handle));
  EXPECT_TRUE(endpoint().invalidate(write->handle));
}

TEST_F(DeviceEndpoint, SaysThatNoMemoryCanBeRegistered) {
  verbs.fail("reg_mr", ENOMEM);
  const auto refused = endpoint().register_local(MutBytes(memory));
  ASSERT_FALSE(refused);
  EXPECT_NE(std::string(refused.error().why).find("locked memory"), std::string::npos);
}

// siw does not want it, and locked memory may be short.
TEST_F(DeviceEndpoint, ReadsIntoItsOwnMemoryWhereTheSinkCannotBeExposed) {
  verbs.fail("reg_mr", ENOMEM);
  ASSERT_TRUE(endpoint().post_read(1, slice(0, 10), Stag{1}, 0));
  ASSERT_TRUE(endpoint().flush());
  EXPECT_EQ(verbs.sends.at(0).sges.at(0).lkey, 7U);
}

TEST_F(DeviceEndpoint, TellsWhatWasReceivedAndInvalidated) {
  COVERS("RFC8797-3.2-1");
  ASSERT_TRUE(endpoint().post_recv(77, slice(0, 100)));
  ibv_wc wc{};
  wc.wr_id = verbs.receives.at(0).wr_id;
  wc.byte_len = 40;
  wc.wc_flags = IBV_WC_WITH_INV;
  wc.invalidated_rkey = 0x55;
  verbs.complete(id, wc);
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].id, 77U);
  EXPECT_EQ(done[0].op, OpKind::kRecv);
  EXPECT_EQ(done[0].byte_len, 40U);
  EXPECT_EQ(done[0].invalidated, Stag{0x55});
}

TEST_F(DeviceEndpoint, RefusesMoreThanThereIsRoomFor) {
  std::vector<LocalSlice> many(7, slice(0, 1));
  EXPECT_FALSE(endpoint().post_send(1, many, std::nullopt));
  for (int i = 0; i < 128; ++i) ASSERT_TRUE(endpoint().post_write(1, {many.data(), 1}, Stag{1}, 0));
  EXPECT_EQ(endpoint().post_write(1, {many.data(), 1}, Stag{1}, 0).error().code, Errc::kQueueFull);
}

// What was behind the refused request was never posted, and completes never.
TEST_F(DeviceEndpoint, KnowsWhichRequestsTheDeviceHasTaken) {
  const LocalSlice one = slice(0, 10);
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(endpoint().post_send(i, {&one, 1}, std::nullopt));
  ASSERT_TRUE(endpoint().post_read(4, slice(0, 10), Stag{1}, 0));
  verbs.refuse_sends_from = 1;
  EXPECT_FALSE(endpoint().flush());
  EXPECT_EQ(endpoint().unfinished_sends(), 1U);
  EXPECT_TRUE(verbs.regions().empty());
  verbs.complete(id, verbs.sends.at(0).wr.wr_id);
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].id, 1U);
}

TEST_F(DeviceEndpoint, SaysThatAReceiveWasRefused) {
  verbs.fail("post_recv", ENOMEM);
  EXPECT_FALSE(endpoint().post_recv(1, slice(0, 10)));
}

// A completion with an error has nothing but its number.
TEST_F(DeviceEndpoint, KnowsWhatACompletionIsOfByItsOrder) {
  const LocalSlice one = slice(0, 10);
  ASSERT_TRUE(endpoint().post_write(11, {&one, 1}, Stag{1}, 0));
  ASSERT_TRUE(endpoint().post_send(12, {&one, 1}, std::nullopt));
  ASSERT_TRUE(endpoint().flush());
  ASSERT_TRUE(endpoint().post_recv(13, slice(0, 100)));
  ibv_wc wc{};
  std::memset(&wc, 0xff, sizeof wc);
  wc.status = IBV_WC_WR_FLUSH_ERR;
  for (const std::uint64_t wr_id :
       {verbs.receives.at(0).wr_id, verbs.sends.at(0).wr.wr_id, verbs.sends.at(1).wr.wr_id}) {
    wc.wr_id = wr_id;
    verbs.complete(id, wc);
  }
  const auto done = poll();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].id, 13U);
  EXPECT_EQ(done[0].op, OpKind::kRecv);
  EXPECT_EQ(done[1].id, 11U);
  EXPECT_EQ(done[1].op, OpKind::kWrite);
  EXPECT_EQ(done[2].op, OpKind::kSend);
  for (const auto& d : done) EXPECT_EQ(d.status, OpStatus::kFlushed);
  EXPECT_TRUE(endpoint().sends_flushed());
}

// A device that does not keep to the rules ends its connection, and nothing else happens.
TEST_F(DeviceEndpoint, BelievesNoCompletionOfWhatWasNotPosted) {
  verbs.complete(id, 2 << 1);
  EXPECT_TRUE(poll().empty());
  EXPECT_TRUE(endpoint().failure());
  ASSERT_TRUE(ends());
  EXPECT_EQ(end->reason.code, Errc::kSystem);
}

TEST_F(DeviceEndpoint, BelievesNoCompletionTwice) {
  post_send(1);
  post_send(2);
  for (int i = 0; i < 2; ++i) verbs.complete(id, verbs.sends.at(1).wr.wr_id);
  EXPECT_TRUE(poll().empty());
  EXPECT_TRUE(endpoint().failure());
}

// siw completes a Send that was posted behind a Read before the Read.
TEST_F(DeviceEndpoint, TellsCompletionsInTheOrderPosted) {
  ASSERT_TRUE(endpoint().post_read(1, slice(0, 10), Stag{1}, 0));
  post_send(2);
  post_send(3);
  verbs.complete(id, verbs.sends.at(2).wr.wr_id);
  verbs.complete(id, verbs.sends.at(1).wr.wr_id);
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(endpoint().unfinished_sends(), 3U);
  verbs.complete(id, verbs.sends.at(0).wr.wr_id);
  const auto done = poll();
  ASSERT_EQ(done.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].id, i + 1);
  EXPECT_FALSE(endpoint().failure());
}

TEST_F(DeviceEndpoint, BelievesNoMessageLongerThanItsReceive) {
  ASSERT_TRUE(endpoint().post_recv(5, slice(0, 100)));
  verbs.complete(id, verbs.receives.at(0).wr_id, IBV_WC_SUCCESS, 101);
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, OpStatus::kFailed);
  ASSERT_TRUE(ends());
}

TEST_F(DeviceEndpoint, TakesNothingAfterItsEnd) {
  const LocalSlice one = slice(0, 10);
  ASSERT_TRUE(endpoint().post_send(1, {&one, 1}, std::nullopt));
  ASSERT_TRUE(endpoint().post_read(2, slice(0, 10), Stag{1}, 0));
  connection->abort(make_error(Errc::kAborted));
  EXPECT_EQ(endpoint().post_send(1, {&one, 1}, std::nullopt).error().code, Errc::kNotConnected);
  EXPECT_EQ(endpoint().post_read(1, one, Stag{1}, 0).error().code, Errc::kNotConnected);
  EXPECT_TRUE(endpoint().flush());  // nothing is left
  EXPECT_TRUE(verbs.sends.empty());
  EXPECT_TRUE(verbs.regions().empty());
}

TEST_F(DeviceEndpoint, CountsWhatItHasDone) {
  post_send(1);
  const LocalSlice one = slice(0, 10);
  ASSERT_TRUE(endpoint().post_write(2, {&one, 1}, Stag{1}, 0));
  ASSERT_TRUE(endpoint().flush());
  for (const auto& request : verbs.sends) verbs.complete(id, request.wr.wr_id);
  EXPECT_EQ(poll().size(), 2U);
  EXPECT_EQ(endpoint().traffic().sends, 1U);
  EXPECT_EQ(endpoint().traffic().send_bytes, 100U);
  EXPECT_EQ(endpoint().traffic().writes, 1U);
  EXPECT_EQ(endpoint().traffic().write_bytes, 10U);
}

}  // namespace
}  // namespace iwarp::device::test
