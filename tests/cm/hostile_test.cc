// Peers that connect and then do not behave. Only their own connection may suffer: in each test an honest client
// connects meanwhile.
#include <atomic>
#include <thread>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class Hostile : public ::testing::Test {
 protected:
  Hostile() {
    ListenOptions o;
    o.policy.startup_timeout = 400ms;
    listener_ = listen(engine_, o);
  }
  RawTcp attack() { return RawTcp::connect(listener_->local().port()); }
  void honest_client_connects() {
    Node server(engine_), client(client_engine_);
    const Ends ends = join(client, server, *listener_);
    ASSERT_EQ(ends.server.error.code, Errc::kOk);
    ping_pong(client, server);
  }
  void expect_failed_startups(std::uint64_t n) {
    EXPECT_TRUE(eventually([&] { return listener_->failed_startups() >= n; }));
    EXPECT_EQ(listener_->failed_startups(), n);
  }

  Engine engine_, client_engine_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(Hostile, SilentAfterConnecting) {
  COVERS("RFC5044-7.1.2-26");
  std::vector<RawTcp> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(attack());
  honest_client_connects();
  for (RawTcp& s : silent) EXPECT_NE(s.end(), RawTcp::End::kTimeout);
  expect_failed_startups(20);
}

// The startup timeout covers the whole frame: octets that trickle in do not restart it.
TEST_F(Hostile, OneOctetAtATime) {
  COVERS("RFC5044-7.1.2-31");
  RawTcp slow = attack();
  const Bytes request = octets(good_request(pattern(200)));
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> over{false};
  std::thread trickle([&] {
    for (const std::byte b : request) {
      if (over || !slow.send({&b, 1})) return;
      std::this_thread::sleep_for(20ms);
    }
    ADD_FAILURE() << "the whole Request was taken, after " << (std::chrono::steady_clock::now() - begin) / 1ms << " ms";
  });
  honest_client_connects();
  expect_failed_startups(1);
  over = true;
  trickle.join();
}

TEST_F(Hostile, EndsInsideTheRequest) {
  const Bytes request = octets(good_request(pattern(20)));
  std::uint64_t failed = 0;
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{19}, std::size_t{20}, std::size_t{30}}) {
    SCOPED_TRACE(n);
    RawTcp fin = attack();
    ASSERT_TRUE(fin.send(ConstBytes{request}.first(n)));
    fin.shutdown_write();
    EXPECT_EQ(fin.end(), RawTcp::End::kFin) << "no Reply";
    expect_failed_startups(++failed);

    RawTcp rst = attack();
    ASSERT_TRUE(rst.send(ConstBytes{request}.first(n)));
    rst.reset();
    expect_failed_startups(++failed);
  }
  honest_client_connects();
}

TEST_F(Hostile, SendsSomethingElse) {
  COVERS("RFC5044-7.1.1-4");
  COVERS("RFC5044-7.1.2-4");
  COVERS("RFC5044-8-10");
  COVERS("RFC5044-7.1-3");
  const Bytes http = hex("47455420 2f204854 54502f31 2e310d0a 0d0a");
  Bytes wrong_key = octets(good_request());
  wrong_key[15] ^= std::byte{1};
  Bytes too_long = octets(good_request());
  too_long[18] = std::byte{2};
  too_long[19] = std::byte{1};  // 513 octets of Private Data
  std::uint64_t failed = 0;
  for (const Bytes& bytes : {http, wrong_key, too_long, octets(good_reply()), Bytes(4096, std::byte{0xFF})}) {
    RawTcp peer = attack();
    ASSERT_TRUE(peer.send(bytes));
    EXPECT_EQ(peer.read(1).size(), 0U) << "closed without a word";
    expect_failed_startups(++failed);
  }
  honest_client_connects();
}

TEST_F(Hostile, SendsOctetsBehindTheRequest) {
  COVERS("RFC5044-7.1.1-31");
  RawTcp peer = attack();
  ASSERT_TRUE(peer.send(octets(good_request()) + hex("00")));
  EXPECT_EQ(peer.read(1).size(), 0U);
  expect_failed_startups(1);
  honest_client_connects();
}

TEST_F(Hostile, IsOfTheRdmaConsortium) {
  RawTcp peer = attack();
  ASSERT_TRUE(peer.send(octets(refused_request())));
  const FrameRead reply = read_frame(peer, true);
  ASSERT_TRUE(reply.complete);
  EXPECT_TRUE(reply.frame.reject);
  EXPECT_EQ(peer.end(), RawTcp::End::kFin);
  expect_failed_startups(1);
}

TEST_F(Hostile, RefusedPeersThatStayAreClosed) {
  RawTcp peer = attack();
  ASSERT_TRUE(peer.send(octets(refused_request())));
  ASSERT_TRUE(read_frame(peer, true).complete);
  const Bytes flood(4096);
  for (int i = 0; i < 1000; ++i) {
    if (!peer.send(flood)) return;
  }
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
}

TEST_F(Hostile, IsGoneWhenTheApplicationDecides) {
  for (const bool accept : {true, false}) {
    RawTcp peer = attack();
    ASSERT_TRUE(peer.send(octets(good_request())));
    const auto request = next_request(*listener_);
    peer.reset();
    Node server(engine_);
    if (accept) {
      EXPECT_NE(get_outcome(request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future))).error.code,
                Errc::kOk);
    } else {
      request->reject();
    }
  }
  honest_client_connects();
}

// A peer-to-peer connection is established by its first FPDU; who never sends one is not waited for without end.
TEST_F(Hostile, NeverSendsTheFirstFpdu) {
  COVERS("RFC5044-7.1.2-32");
  RawTcp peer = attack();
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener_);
  stream::Options o;
  o.first_fpdu_timeout = 200ms;
  Node server(engine_, o);
  server.recv(1);
  auto accepting = request->async_accept(server.qp, {.mpa = o}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(read_frame(peer, true).complete);
  EXPECT_EQ(get_outcome(std::move(accepting)).error.code, Errc::kStartupTimeout);
  server.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
}

TEST_F(Hostile, SendsGarbageForAnFpdu) {
  RawTcp peer = attack();
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener_);
  Node server(engine_);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(read_frame(peer, true).complete);
  ASSERT_TRUE(peer.send(fpdu(write_segment(Stag{0}, 0, {}), true)));
  const Outcome s = get_outcome(std::move(accepting));
  ASSERT_EQ(s.error.code, Errc::kOk);
  Bytes bad = fpdu(send_segment(pattern(8)), true);
  bad.back() ^= std::byte{1};
  ASSERT_TRUE(peer.send(bad));
  EXPECT_GT(peer.read(1).size(), 0U) << "a Terminate";
  EXPECT_EQ(peer.end(), RawTcp::End::kFin);
  peer.close();
  const stream::Disconnected how = ending(*s.connection);
  EXPECT_EQ(how.reason.code, Errc::kCrcMismatch);
  EXPECT_TRUE(how.sent.has_value());
  EXPECT_NE(describe_end(*s.connection, how).find("end=\"crc mismatch\""), std::string::npos);
  honest_client_connects();
}

// Receives nothing, while we send: its window fills and stays full.
TEST_F(Hostile, NeverReads) {
  RawTcp peer = attack();
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener_);
  stream::Options o;
  o.close_timeout = 300ms;
  Node server(engine_, o, std::size_t{4} << 20);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(read_frame(peer, true).complete);
  ASSERT_TRUE(peer.send(fpdu(write_segment(Stag{0}, 0, {}), true)));
  const Outcome s = get_outcome(std::move(accepting));
  ASSERT_EQ(s.error.code, Errc::kOk);
  for (std::uint64_t i = 0; i < 8; ++i) server.send(i, server.out.size());
  honest_client_connects();
  // An orderly close waits only so long.
  s.connection->disconnect();
  EXPECT_EQ(ending(*s.connection).reason.code, Errc::kTimeout);
}

}  // namespace
}  // namespace iwarp::cm
