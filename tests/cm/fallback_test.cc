// A peer that knows only MPA revision 1 ends TCP when it sees a revision 2 Request, and one that insists on the
// peer-to-peer model when A=0: then something else, once each, on a new TCP connection, and the same at once next time.
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

enum class How { kFin, kReset };

class Fallback : public ::testing::TestWithParam<How> {
 protected:
  // Reads the Request, which must have that revision, and ends TCP. Gives its flag A.
  bool refuse(std::uint8_t revision) {
    RawTcp peer = peer_.accept();
    const FrameRead request = read_frame(peer, false);
    EXPECT_TRUE(request.complete);
    EXPECT_EQ(request.frame.revision, revision);
    if (GetParam() == How::kReset) {
      peer.reset();
    } else {
      peer.close();
    }
    return request.frame.enhanced && request.frame.enhanced_data.peer_to_peer;
  }

  RawListener peer_;
  Engine engine_;
  Node client_{engine_};
};

TEST_P(Fallback, ConnectsWithRevision1AndKeepsWhatWasPosted) {
  client_.recv(1);
  client_.recv(2, 100);
  client_.send(3, 16);
  ConnectOptions o = to_port(peer_.port());
  o.private_data = pattern(7);
  auto connecting = start_connect(client_, o);
  (void)refuse(2);

  RawTcp peer = peer_.accept();
  const FrameRead request = read_frame(peer, false);
  ASSERT_TRUE(request.complete);
  EXPECT_EQ(request.frame.revision, 1);
  EXPECT_FALSE(request.frame.enhanced);
  EXPECT_EQ(Bytes(request.frame.private_data.begin(), request.frame.private_data.end()), pattern(7));
  mpa::StartupFrame reply;
  reply.is_reply = reply.crc = true;
  reply.revision = 1;
  ASSERT_TRUE(peer.send(octets(reply)));
  const Outcome c = get_outcome(std::move(connecting));
  ASSERT_EQ(c.error.code, Errc::kOk) << c.error.why;
  EXPECT_EQ(c.connection->negotiated().revision, 1);

  client_.expect(verbs::WcOp::kSend, 3);
  const Bytes expected = fpdu(send_segment(Bytes(client_.out.begin(), client_.out.begin() + 16)), true);
  EXPECT_EQ(to_hex(peer.read(expected.size())), to_hex(expected))
      << "the first FPDU is the Send: revision 1 has no RTR";
  ASSERT_TRUE(peer.send(fpdu(send_segment(pattern(5)), true)));
  client_.expect(verbs::WcOp::kRecv, 1);
  EXPECT_EQ(Bytes(client_.in.begin(), client_.in.begin() + 5), pattern(5));
}

TEST_P(Fallback, TriesRevision1OnlyOnce) {
  client_.recv(1);
  auto connecting = start_connect(client_, to_port(peer_.port()));
  (void)refuse(2);
  (void)refuse(1);
  const Outcome c = get_outcome(std::move(connecting));
  EXPECT_NE(c.error.code, Errc::kOk);
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_FALSE(peer_.anybody(100));
}

TEST_P(Fallback, AsksForPeerToPeerBeforeRevision1) {
  client_.recv(1);
  mpa::Policy policy;
  policy.peer_to_peer = false;
  auto connecting = start_connect(client_, to_port(peer_.port(), policy));
  EXPECT_FALSE(refuse(2));
  EXPECT_TRUE(refuse(2));
  EXPECT_FALSE(refuse(1));
  EXPECT_NE(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_FALSE(peer_.anybody(100)) << "each once";
}

TEST_P(Fallback, BeginsWithWhatWorkedAndForgetsWhatDoesNotAnyMore) {
  mpa::Policy policy;
  policy.peer_to_peer = false;
  const auto accept = [&] {  // A=1 only
    RawTcp peer = peer_.accept();
    EXPECT_TRUE(read_frame(peer, false).frame.enhanced_data.peer_to_peer);
    EXPECT_TRUE(peer.send(octets(good_reply())));
    return peer;
  };
  auto connecting = start_connect(client_, to_port(peer_.port(), policy));
  EXPECT_FALSE(refuse(2));
  RawTcp first = accept();
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);

  Node again(engine_);
  connecting = start_connect(again, to_port(peer_.port(), policy));
  RawTcp second = accept();
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);

  Node refused(engine_);
  connecting = start_connect(refused, to_port(peer_.port(), policy));
  EXPECT_TRUE(refuse(2));
  EXPECT_FALSE(refuse(1));
  EXPECT_NE(get_outcome(std::move(connecting)).error.code, Errc::kOk);

  Node afresh(engine_);
  connecting = start_connect(afresh, to_port(peer_.port(), policy));
  EXPECT_FALSE(refuse(2));
  EXPECT_TRUE(refuse(2));
  EXPECT_FALSE(refuse(1));
  EXPECT_NE(get_outcome(std::move(connecting)).error.code, Errc::kOk);
}

// Neither says that the peer has changed.
TEST_P(Fallback, RemembersThoughThePeerRejectsOrTheApplicationGivesUp) {
  mpa::Policy policy;
  policy.peer_to_peer = false;
  auto connecting = start_connect(client_, to_port(peer_.port(), policy));
  EXPECT_FALSE(refuse(2));
  const auto next = [&](mpa::StartupFrame reply) {
    RawTcp peer = peer_.accept();
    EXPECT_TRUE(read_frame(peer, false).frame.enhanced_data.peer_to_peer);
    EXPECT_TRUE(peer.send(octets(reply)));
    return peer;
  };
  const RawTcp first = next(good_reply());
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);

  Node rejected(engine_);
  connecting = start_connect(rejected, to_port(peer_.port(), policy));
  mpa::StartupFrame no = good_reply();
  no.reject = true;
  const RawTcp second = next(no);
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kPeerRejected);

  Node given_up(engine_);
  connecting = start_connect(given_up, to_port(peer_.port(), policy));
  RawTcp third = peer_.accept();
  EXPECT_TRUE(read_frame(third, false).frame.enhanced_data.peer_to_peer);
  given_up.qp->abort();
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kAborted);

  Node last(engine_);
  connecting = start_connect(last, to_port(peer_.port(), policy));
  const RawTcp fourth = next(good_reply());
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
}

TEST_P(Fallback, NotWithoutPermission) {
  mpa::Policy policy;
  policy.allow_revision_1_fallback = false;
  auto connecting = start_connect(client_, to_port(peer_.port(), policy));
  (void)refuse(2);
  EXPECT_NE(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_FALSE(peer_.anybody(100));
}

TEST_P(Fallback, NotAfterTheReplyHasBegun) {
  auto connecting = start_connect(client_, to_port(peer_.port()));
  RawTcp peer = peer_.accept();
  ASSERT_TRUE(read_frame(peer, false).complete);
  const Bytes reply = octets(good_reply());
  ASSERT_TRUE(peer.send(ConstBytes{reply}.first(1)));
  peer.close();
  EXPECT_NE(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_FALSE(peer_.anybody(100));
}

TEST_P(Fallback, SecondConnectionMayBeRefused) {
  client_.recv(1);
  auto short_lived = std::make_unique<RawListener>();
  auto connecting = start_connect(client_, to_port(short_lived->port()));
  RawTcp peer = short_lived->accept();
  ASSERT_TRUE(read_frame(peer, false).complete);
  short_lived.reset();  // before the connection ends, so that nobody takes the second one
  if (GetParam() == How::kReset) {
    peer.reset();
  } else {
    peer.close();
  }
  const Outcome c = get_outcome(std::move(connecting));
  EXPECT_EQ(c.error.code, Errc::kConnectionRefused) << c.error.why;
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
}

// Nobody takes the second one, nor refuses it.
TEST_P(Fallback, SecondConnectionHasATimeLimitToo) {
  RawListener full(0);
  ConnectOptions o = to_port(full.port());
  o.connect_timeout = 1s;
  auto connecting = start_connect(client_, o);
  RawTcp peer = full.accept();
  ASSERT_TRUE(read_frame(peer, false).complete);
  std::vector<std::unique_ptr<Node>> others;
  std::vector<Connecting> in_the_queue;
  while (others.size() < 8) {
    others.push_back(std::make_unique<Node>(engine_));
    ConnectOptions patient = to_port(full.port());
    patient.connect_timeout = patient.policy.startup_timeout = 10min;
    in_the_queue.push_back(start_connect(*others.back(), patient));
  }
  ASSERT_TRUE(eventually([&] { return full.anybody(0); }));
  std::this_thread::sleep_for(
      100ms);  // mostly the queue is full by then, and what is refused later has no limit either
  if (GetParam() == How::kReset) {
    peer.reset();
  } else {
    peer.close();
  }
  const Outcome c = get_outcome(std::move(connecting));
  EXPECT_EQ(c.connection, nullptr);
  EXPECT_TRUE(std::string(c.error.why).starts_with("Connection timed out")) << c.error.why;
  for (auto& other : others) other->qp->abort();
  for (auto& waiting : in_the_queue) (void)get_outcome(std::move(waiting));
}

INSTANTIATE_TEST_SUITE_P(Ends, Fallback, ::testing::Values(How::kFin, How::kReset), [](const auto& p) {
  return p.param == How::kFin ? std::string("Fin") : std::string("Reset");
});

}  // namespace
}  // namespace iwarp::cm
