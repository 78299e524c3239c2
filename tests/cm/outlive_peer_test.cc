// endpoint::Options::outlive_peer over TCP: nobody hears of a peer that has gone before sending to it.
#include <thread>

#include "iwarp/cm/link.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

stream::Options outliving(std::chrono::milliseconds receive_wait = 0ms) {
  stream::Options o;
  o.outlive_peer = true;
  o.receive_wait = receive_wait;
  o.close_timeout = 50ms;
  return o;
}

class OutlivePeerOverTcp : public ::testing::Test {
 protected:
  void begin(const stream::Options& of_server) {
    server = std::make_unique<Node>(engine, of_server);
    ends = join(client, *server, *listener);
    client.send(1, 64);  // an end that was never used is waited for
    client.expect(verbs::WcOp::kSend, 1);
  }
  void begin_and_receive(const stream::Options& of_server) {
    begin(of_server);
    server->recv(1);
    server->expect(verbs::WcOp::kRecv, 1);
  }
  // The peer goes, and the connection ends here without a word to the application.
  void lose_peer() {
    client.qp->leave();
    EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kPeerClosed);
    EXPECT_EQ(server->qp->state(), verbs::QueuePairState::kRts);
  }
  [[nodiscard]] bool is_silent() const { return !server->cq.wait_for(50ms); }

  Engine engine;
  std::unique_ptr<Listener> listener = listen(engine);
  Node client{engine};
  std::unique_ptr<Node> server;
  Ends ends;
};

TEST_F(OutlivePeerOverTcp, WhatIsSentLaterFailsWhenThePeerIsGivenUp) {
  begin_and_receive(outliving(1h));
  server->recv(2);
  lose_peer();
  server->send(3, 8);
  EXPECT_TRUE(is_silent());
  server->qp->give_up_peer();
  server->expect(verbs::WcOp::kSend, 3, Errc::kConnectionLost);
  server->expect(verbs::WcOp::kRecv, 2, Errc::kFlushed);
  EXPECT_EQ(server->qp->state(), verbs::QueuePairState::kError);
}

// Nobody drives it any more when its socket has gone: all the same what is flushed comes.
TEST_F(OutlivePeerOverTcp, EndsOfThisSideFlush) {
  enum class How { kDisconnect, kAbort, kLeave, kQueuePairAbort };
  for (const How how : {How::kDisconnect, How::kAbort, How::kLeave, How::kQueuePairAbort}) {
    Node other(engine), own(engine, outliving(1h));
    const Ends both = join(other, own, *listener);
    other.send(1, 8);
    own.recv(1);
    own.expect(verbs::WcOp::kRecv, 1);
    own.recv(2);
    other.qp->leave();
    (void)ending(*both.server.connection);
    EXPECT_FALSE(own.cq.wait_for(20ms));
    switch (how) {
      case How::kDisconnect:
        both.server.connection->disconnect();
        break;
      case How::kAbort:
        both.server.connection->abort();
        break;
      case How::kLeave:
        own.qp->leave(verbs::QueuePair::Unfinished::kFlushed);
        break;
      case How::kQueuePairAbort:
        own.qp->abort();
        break;
    }
    own.expect(verbs::WcOp::kRecv, 2, Errc::kFlushed);
  }
}

TEST_F(OutlivePeerOverTcp, APeerThatIsNeverReached) {
  Node own(engine, outliving());
  own.recv(1);
  own.send(2, 8);
  const std::uint16_t port = listener->local().port();
  listener.reset();
  EXPECT_EQ(get_outcome(start_connect(own, to_port(port))).error.code, Errc::kConnectionRefused);
  EXPECT_FALSE(own.cq.wait_for(50ms));
  own.qp->give_up_peer();
  own.expect(verbs::WcOp::kSend, 2, Errc::kConnectionLost);
  own.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
}

// The peer's FIN is found within a second, and close_timeout is far shorter than the wait here.
TEST_F(OutlivePeerOverTcp, AMessageBeforeThePeersEndMayWaitForItsReceive) {
  begin(outliving(1h));
  client.qp->leave();
  EXPECT_FALSE(server->cq.wait_for(1300ms));
  EXPECT_FALSE(ends.server.connection->disconnected());
  server->recv(1);
  server->expect(verbs::WcOp::kRecv, 1);
  server->recv(2);
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kPeerClosed);
  EXPECT_EQ(server->qp->state(), verbs::QueuePairState::kRts);
  EXPECT_TRUE(is_silent());
}

TEST_F(OutlivePeerOverTcp, AndIsForgottenWithoutAnErrorWhenItsWaitIsOver) {
  begin(outliving(1500ms));
  client.qp->leave();
  const auto how = ending(*ends.server.connection);
  EXPECT_EQ(how.reason.code, Errc::kPeerClosed);
  EXPECT_FALSE(how.sent);
  EXPECT_EQ(server->qp->state(), verbs::QueuePairState::kRts);
  server->recv(1);
  EXPECT_TRUE(is_silent());
  EXPECT_FALSE(engine.context()->poll_async_event()) << "no QP_FATAL";
}

}  // namespace
}  // namespace iwarp::cm
