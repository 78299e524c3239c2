// Owners of queue pairs: when a Link has gone, so may everything that its connection used.
#include "iwarp/cm/link.h"

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

verbs::QueuePair::Options both(verbs::CompletionQueue& cq) {
  return {.send_cq = &cq, .recv_cq = &cq, .stream = {}};
}

struct LinkTest : public ::testing::Test {
  // Connects `link` with `peer`; the connection of `link`.
  std::shared_ptr<Connection> connect(Link& link) {
    auto connecting = link.async_connect(engine, to(*listener), cm::as_error(boost::asio::use_future));
    const auto request = next_request(*listener);
    Link accepting(peer.qp);
    auto accepted = accepting.async_accept(*request, {}, cm::as_error(boost::asio::use_future));
    Outcome ours = get_outcome(std::move(connecting)), theirs = get_outcome(std::move(accepted));
    EXPECT_EQ(ours.error.code, Errc::kOk) << ours.error.why;
    EXPECT_EQ(theirs.error.code, Errc::kOk) << theirs.error.why;
    peer_link = std::move(accepting);
    peer_connection = theirs.connection;
    return ours.connection;
  }

  Engine engine;
  Node peer{engine};
  std::unique_ptr<Listener> listener = listen(engine);
  Link peer_link;
  std::shared_ptr<Connection> peer_connection;
  verbs::ProtectionDomain pd{engine.context()};
};

// Everything that the connection used goes at once, while the peer goes on writing into it.
TEST_F(LinkTest, AfterItNothingIsTouched) {
  std::shared_ptr<Connection> connection;
  {
    auto memory = std::make_unique<Bytes>(std::size_t{1} << 20);
    auto cq = std::make_unique<verbs::CompletionQueue>(64, &engine);
    auto mr = verbs::MemoryRegion::register_memory(pd, *memory, {}).value();
    Link link = Link::make(pd, both(*cq)).value();
    connection = connect(link);
    for (std::uint64_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(link->post_recv({.wr_id = i, .sges = verbs::Sge{memory->data(), 1 << 20, mr.stag()}}).ok());
      peer.send(i, peer.out.size());
    }
    link.reset();
    std::size_t completed = 0;
    for (verbs::Completion c; cq->poll({&c, 1}) == 1;) ++completed;
    EXPECT_EQ(completed, 16U) << "all that was posted, and at once";
    EXPECT_FALSE(link);
    link.reset();
  }
  EXPECT_EQ(ending(*connection).reason.code, Errc::kAborted);
  EXPECT_NE(ending(*peer_connection).reason.code, Errc::kOk);
}

// The last message of a conversation, whose sender goes as soon as it has completed: a reset would take it from the
// peer, which has not read it.
TEST_F(LinkTest, WhoLeavesTakesNothingFromThePeer) {
  constexpr std::uint32_t kLong = 256 * 1024;
  for (std::uint64_t i = 0; i < 50; ++i) {
    Node memory(engine, {}, kLong), reader(engine, {}, kLong);
    Link link = Link::make(memory.pd, both(memory.cq)).value(), reading(reader.qp);
    auto connecting = link.async_connect(engine, to(*listener), cm::as_error(boost::asio::use_future));
    const auto request = next_request(*listener);
    auto accepted = reading.async_accept(*request, {}, cm::as_error(boost::asio::use_future));
    const auto connection = get_outcome(std::move(connecting)).connection;
    ASSERT_NE(connection, nullptr);
    ASSERT_EQ(get_outcome(std::move(accepted)).error.code, Errc::kOk);
    reader.recv(1);
    reader.recv(2);
    reader.write(9, memory, 100'000);  // a socket that is closed with unread octets resets its connection
    const verbs::Sge in{memory.in.data(), 8, memory.in_mr.stag()}, out{memory.out.data(), kLong, memory.out_mr.stag()};
    ASSERT_TRUE(link->post_recv({.wr_id = 3, .sges = in}).ok());
    ASSERT_TRUE(link->post_send(verbs::SendWr{.wr_id = 1, .sges = out}).ok());
    memory.expect(verbs::WcOp::kSend, 1);
    link.leave();
    EXPECT_FALSE(link);
    EXPECT_TRUE(memory.cq.empty()) << "what was posted completes nowhere";
    verbs::Completion c = reader.next();
    while (c.op != verbs::WcOp::kRecv) c = reader.next();
    ASSERT_EQ(c.status, Errc::kOk) << i;
    EXPECT_EQ(reader.in, memory.out);
    EXPECT_EQ(ending(*connection).reason.code, Errc::kAborted);
    EXPECT_EQ(connection->disconnected()->sent, std::nullopt);
  }
}

TEST_F(LinkTest, MovesWithoutEndingWhatItOwnsAndEndsWhatItOwned) {
  verbs::CompletionQueue cq(64, &engine);
  Link first = Link::make(pd, both(cq)).value();
  const auto connection = connect(first);
  Link second = std::move(first);
  EXPECT_EQ(connection->disconnected(), std::nullopt);
  EXPECT_EQ(second.qp(), connection->qp());
  second = Link::make(pd, both(cq)).value();
  EXPECT_EQ(ending(*connection).reason.code, Errc::kAborted);
}

TEST_F(LinkTest, EndsAnAttemptToConnect) {
  verbs::CompletionQueue cq(64, &engine);
  Link link = Link::make(pd, both(cq)).value();
  auto connecting = link.async_connect(engine, to(*listener), cm::as_error(boost::asio::use_future));
  const auto request = next_request(*listener);  // and nobody answers it
  link.reset();
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kAborted);
}

TEST_F(LinkTest, IsNotMadeOfQueuePairsThatCannotWork) {
  EXPECT_EQ(Link::make(pd, {}).error().code, Errc::kInvalidArgument);
  verbs::CompletionQueue cq(4, &engine);
  auto options = both(cq);
  options.stream.close_timeout = -1ms;
  EXPECT_EQ(Link::make(pd, options).error().code, Errc::kInvalidArgument);
}

// What became a use after free: the engine shares the queue pair, and writes completions into a queue that is gone.
TEST_F(LinkTest, WithoutOneTheQueueMayStillGoFirst) {
  auto cq = std::make_unique<verbs::CompletionQueue>(64, &engine);
  auto qp = std::make_shared<verbs::QueuePair>(pd, both(*cq));
  ASSERT_TRUE(qp->post_recv(verbs::RecvWr{}).ok());
  auto connecting = async_connect(engine, qp, to(*listener), cm::as_error(boost::asio::use_future));
  const auto request = next_request(*listener);
  auto accepted = request->async_accept(peer.qp, {}, cm::as_error(boost::asio::use_future));
  const Outcome ours = get_outcome(std::move(connecting)), theirs = get_outcome(std::move(accepted));
  ASSERT_EQ(ours.error.code, Errc::kOk);
  qp.reset();
  cq.reset();
  theirs.connection->disconnect();
  EXPECT_EQ(ending(*ours.connection).reason.code, Errc::kPeerClosed);
}

}  // namespace
}  // namespace iwarp::cm
