// pNFS through either front, and what a TCP client's AUTH_TLS probe gets.
#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

constexpr std::uint32_t kNonPnfs = 0x10000, kPnfsMds = 0x20000;

Bytes exchange_id_call(std::uint32_t xid) {
  return samples::rpc_call(xid, samples::kNfs, 4, 1, samples::words({0, 1, 1, 42, 1, 2, 4, 0x61626364, 0x100, 0, 0}));
}
Bytes exchange_id_reply(std::uint32_t xid, std::uint32_t flags) {
  return samples::rpc_reply(xid, samples::words({0, 0, 1, 42, 0, 1, 2, 3, flags, 0, 0, 9, 0, 0, 0}));
}

class Layouts : public Chained {
 protected:
  void SetUp() override {
    server.on_call = [](TcpPeer& from, const Bytes& call) {
      from.send(exchange_id_reply(load_be<std::uint32_t>(call), kPnfsMds));
    };
  }
  void open_chain(bool pnfs_of_rdma_front, bool pnfs_of_tcp_front) {
    options.pnfs = pnfs_of_rdma_front;
    open();
    options.pnfs = pnfs_of_tcp_front;
    open_tcp(front->local());
  }
  Bytes answer() {
    auto c = tcp_client();
    c->send(exchange_id_call(7));
    return await(*c);
  }
};

TEST_F(Layouts, AreHiddenByTheTcpFront) {
  open_chain(true, false);
  EXPECT_EQ(answer(), exchange_id_reply(7, kNonPnfs));
  EXPECT_EQ(tcp_front->snapshot().of(Incident::kLayoutsHidden), 1u);
  EXPECT_EQ(front->snapshot().of(Incident::kLayoutsHidden), 0u);
}

TEST_F(Layouts, AreHiddenByTheRdmaFront) {
  open_chain(false, true);
  EXPECT_EQ(answer(), exchange_id_reply(7, kNonPnfs));
  EXPECT_EQ(front->snapshot().of(Incident::kLayoutsHidden), 1u);
}

TEST_F(Layouts, PassWhereTheyAreWanted) {
  open_chain(true, true);
  EXPECT_EQ(answer(), exchange_id_reply(7, kPnfsMds));
}

// GETATTR of type, fs_layout_type and mdsthreshold.
Bytes getattr_call(std::uint32_t xid, std::uint32_t word1, std::uint32_t word2) {
  return samples::rpc_call(xid, samples::kNfs, 4, 1, samples::words({0, 1, 2, 24, 9, 3, 2, word1, word2}));
}

TEST_F(Layouts, AreNotAskedForThroughTheTcpFront) {
  open_chain(true, false);
  auto c = tcp_client();
  c->send(getattr_call(7, 1u << 30, 0x10));
  (void)await(*c);
  ASSERT_FALSE(server.calls.empty());
  EXPECT_EQ(server.calls.back(), getattr_call(7, 0, 0));
}

TEST_F(Layouts, AreNotAskedForThroughTheRdmaFront) {
  open_chain(false, true);
  auto c = tcp_client();
  c->send(getattr_call(7, 1u << 30, 0x10));
  (void)await(*c);
  ASSERT_FALSE(server.calls.empty());
  EXPECT_EQ(server.calls.back(), getattr_call(7, 0, 0));
}

TEST_F(Layouts, MayBeAskedForWhereTheyAreWanted) {
  open_chain(true, true);
  auto c = tcp_client();
  c->send(getattr_call(7, 1u << 30, 0x10));
  (void)await(*c);
  ASSERT_FALSE(server.calls.empty());
  EXPECT_EQ(server.calls.back(), getattr_call(7, 1u << 30, 0x10));
}

// The same octets in the Reply to something else are not flags.
TEST_F(Layouts, OtherRepliesPassUnchanged) {
  open_chain(false, false);
  auto c = tcp_client();
  c->send(samples::null_call(8));
  EXPECT_EQ(await(*c), exchange_id_reply(8, kPnfsMds));
}

// An xid is of one Reply: what a later Call of the same xid gets is not looked at.
TEST_F(Layouts, ALaterReplyOfTheSameXidPassesUnchanged) {
  open_chain(true, false);
  auto c = tcp_client();
  c->send(exchange_id_call(7));
  EXPECT_EQ(await(*c), exchange_id_reply(7, kNonPnfs));
  c->send(samples::null_call(7));
  EXPECT_EQ(await(*c), exchange_id_reply(7, kPnfsMds));
}

TEST_F(Chained, DeniesAuthTls) {
  auto c = warm_client();
  c->send(samples::words({1, 0, 2, samples::kNfs, 4, 0, 7, 0, 0, 0}));
  EXPECT_EQ(await(*c), samples::words({1, 1, 1, 1, 2}));
  c->send(samples::null_call(2));
  EXPECT_EQ(await(*c), samples::rpc_reply(2));
  EXPECT_EQ(server.calls.size(), 2u) << "the probe has reached the server";
  EXPECT_EQ(tcp_front->snapshot().of(Incident::kTlsDenied), 1u);
  expect_tcp_front_adds_up();
}

// One record of the largest size passes, one octet more ends the connection.
TEST_F(Chained, RecordsAreLimitedAsTold) {
  options.max_record_bytes = 70000;
  open();
  open_tcp(front->local());
  for (const std::size_t bytes : {std::size_t{70000}, std::size_t{70004}}) {
    server.on_call = [](TcpPeer& from, const Bytes& call) {
      from.send(samples::rpc_reply(load_be<std::uint32_t>(call)));
    };
    auto c = warm_client();
    const Bytes head = samples::null_call(9);
    c->send(head + pattern(bytes - head.size()));
    const bool over = bytes > options.max_record_bytes;
    ASSERT_TRUE(loop.until([&] { return c->ended() || !c->inbox.empty(); }));
    EXPECT_EQ(c->ended(), over) << bytes;
  }
}

}  // namespace
}  // namespace iwarp::gateway::test
