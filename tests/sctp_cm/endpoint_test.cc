// Endpoints over sessions over SCTP over real UDP sockets: what RDMA promises, promised over SCTP.
#include <gmock/gmock.h>

#include <algorithm>

#include "iwarp/sctp_cm/session_driver.h"
#include "tests/sctp_cm/sessions_net.h"
#include "tests/support/covers.h"
#include "tests/support/end_memory.h"

namespace iwarp::sctp_cm {
namespace {

// An end of a session: endpoint, memory, driver.
struct End : test::EndMemory {
  End(boost::asio::io_context& io, Sessions& sessions, sctp::Role role, unsigned number,
      const endpoint::Options& options)
      : EndMemory({PdId{number}, ddp::StreamId{number}}),
        core(stags, key, options),
        driver(io, sessions, core, role, [this] { collect(); }) {}

  void post(const rdmap::SendWr& wr) {
    const auto ok = core.post_send(wr);
    EXPECT_TRUE(ok) << ok.error().why;
    driver.posted();
  }
  void post(const rdmap::RecvWr& wr) {
    EXPECT_TRUE(core.post_recv(wr));
    driver.posted(true);
  }
  void collect() {
    while (const auto event = core.poll_event()) {
      if (const auto* e = std::get_if<endpoint::Ended>(&*event))
        ended = *e;
      else
        established = true;
    }
    while (const auto c = core.poll_send()) sends.push_back(*c);
    while (const auto c = core.poll_recv()) recvs.push_back(*c);
    when_collected();
  }

  endpoint::Endpoint core;
  SessionDriver driver;
  bool established = false;
  std::optional<endpoint::Ended> ended;
  std::vector<rdmap::Completion> sends, recvs;
  std::function<void()> when_collected = [] {};
};

// Gives the events of sessions to the ends that they are of.
struct Router final : SessionsUser {
  std::map<std::uint16_t, std::unique_ptr<End>> ends;
  std::function<void(sctp::StreamId)> when_requested = [](sctp::StreamId) {};
  bool ready = false;
  std::optional<Error> end;

  void on_ready() override { ready = true; }
  void on_event(sctp::StreamId stream, const sctp::Session::Event& event) override {
    if (std::holds_alternative<sctp::Session::Requested>(event)) return when_requested(stream);
    if (const auto it = ends.find(raw(stream)); it != ends.end()) it->second->driver.on_event(event);
  }
  std::size_t on_early(sctp::StreamId stream, const sctp::Session::Early& early) override {
    const auto it = ends.find(raw(stream));
    return it == ends.end() ? 0 : it->second->driver.on_early(early);
  }
  void on_room() override {
    for (auto& [stream, end_of] : ends) end_of->driver.on_room();
  }
  void on_end(const Error& why) override { end = why; }
};

class SctpEndpoints : public SctpTransport {
 protected:
  void open(StackOptions network = {}, const TransportOptions& transport = {}) {
    start(network);
    auto l = stack->listen({boost::asio::ip::make_address("127.0.0.1"), 0}, kSctpPort, transport,
                           [this](std::shared_ptr<Association> accepted) {
                             b = std::make_unique<Sessions>(io, accepting, sctp::Association::Side::kAccepted, at_b);
                             accepted->set_user(b.get());
                             b->attach(std::move(accepted));
                           });
    ASSERT_TRUE(l);
    listener = *std::move(l);
    a = std::make_unique<Sessions>(io, sctp::AssociationOptions{}, sctp::Association::Side::kConnected, at_a);
    auto association = stack->connect(listener->local(), kSctpPort, transport, *a);
    ASSERT_TRUE(association);
    a->attach(*association);
    at_b.when_requested = [this](sctp::StreamId stream) {
      auto end = std::make_unique<End>(io, *b, sctp::Role::kPassive, 200u + raw(stream), options);
      end->driver.begin(stream);
      at_b.ends[raw(stream)] = std::move(end);
      EXPECT_TRUE(b->accept(stream, accepts, {}));
    };
    ASSERT_TRUE(run([&] { return at_a.ready && at_b.ready; }));
  }
  // A session with an endpoint at each end.
  std::pair<End*, End*> join(const sctp::SessionOptions& session = {}) {
    const auto stream = a->open(session, {});
    EXPECT_TRUE(stream);
    auto end = std::make_unique<End>(io, *a, sctp::Role::kActive, 100u + raw(*stream), options);
    end->driver.begin(*stream);
    End* here = (at_a.ends[raw(*stream)] = std::move(end)).get();
    EXPECT_TRUE(run(
        [&] { return here->established && at_b.ends.contains(raw(*stream)) && at_b.ends[raw(*stream)]->established; }));
    return {here, at_b.ends[raw(*stream)].get()};
  }
  void TearDown() override {
    at_a.ends.clear();
    at_b.ends.clear();
    a.reset();
    b.reset();
    SctpTransport::TearDown();
  }

  endpoint::Options options;
  sctp::AssociationOptions accepting;
  enhanced::Depths accepts{16, 16};
  Router at_a, at_b;
  std::unique_ptr<Sessions> a, b;
};

// Send, Write and Read, each way, with data verified.
void transfer(const std::function<bool(const std::function<bool()>&)>& run, End& x, End& y) {
  constexpr std::size_t kBytes = 100000;
  auto& source = x.region(kBytes);
  auto& target = y.region(kBytes, test::kRemoteAll);
  auto& inbox = y.region(kBytes);
  auto& back = x.region(kBytes, test::kRemoteAll);
  std::minstd_rand random(9);
  std::generate(source.bytes().begin(), source.bytes().end(), [&] { return static_cast<std::byte>(random() >> 8); });
  const std::size_t sends = x.sends.size(), recvs = y.recvs.size();
  y.post(rdmap::RecvWr{.wr_id = 1, .sges = test::list({inbox.all()})});
  x.post(test::write_wr(2, test::list({source.all()}), target));
  x.post(test::send_wr(3, test::list({source.all()})));
  x.post(test::read_wr(4, test::list({back.all()}), target));
  ASSERT_TRUE(run([&] { return x.sends.size() == sends + 3 && y.recvs.size() == recvs + 1; }));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(x.sends[sends + i].wr_id, 2 + i);
    EXPECT_EQ(x.sends[sends + i].status, Errc::kOk);
  }
  EXPECT_EQ(y.recvs[recvs].byte_len, kBytes);
  EXPECT_EQ(target.bytes(), source.bytes());
  EXPECT_EQ(inbox.bytes(), source.bytes());
  EXPECT_EQ(back.bytes(), source.bytes());
}

TEST_F(SctpEndpoints, SendWriteAndReadBothWays) {
  COVERS("RFC5043-2-4");
  open();
  const auto [x, y] = join();
  transfer([&](auto done) { return run(done); }, *x, *y);
  transfer([&](auto done) { return run(done); }, *y, *x);
}

// A pump that posts the next where it sees the last one done.
TEST_F(SctpEndpoints, PostsWhereItPollsWithoutRecursion) {
  open();
  const auto [x, y] = join();
  auto& source = x->region(1000);
  auto& target = y->region(1000, test::kRemoteAll);
  constexpr std::size_t kWrites = 5000;
  std::size_t posted = 0;
  int depth = 0, deepest = 0;
  End& from = *x;
  from.when_collected = [&] {
    deepest = std::max(deepest, ++depth);
    if (posted < kWrites && from.sends.size() == posted)
      from.post(test::write_wr(++posted, test::list({source.all()}), target));
    --depth;
  };
  from.driver.posted();
  ASSERT_TRUE(run([&] { return from.sends.size() == kWrites; }));
  EXPECT_EQ(deepest, 1);
  from.when_collected = [] {};
}

class BadEndpoints : public SctpEndpoints, public ::testing::WithParamInterface<unsigned> {};

TEST_P(BadEndpoints, SendWriteAndReadOverABadNetwork) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-3-7");
  StackOptions network;
  network.fate = bad_network(GetParam(), 2, 4, 1);
  TransportOptions fast;
  fast.rto_min = 20ms;
  fast.rto_max = 200ms;
  open(network, fast);
  const auto [x, y] = join();
  const auto [v, w] = join();
  for (int i = 0; i < 3; ++i) {
    transfer([&](auto done) { return run(done); }, *x, *y);
    transfer([&](auto done) { return run(done); }, *w, *v);
  }
  for (const End* end : {x, y, v, w}) EXPECT_GT(end->core.rx_counters().early, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadEndpoints, ::testing::Values(21u, 22u));

TEST_F(SctpEndpoints, AProtectionErrorEndsItsOwnSessionOnly) {
  COVERS("RFC5043-11.3-4");
  COVERS("RFC5043-11.3-5");
  open();
  const auto [x, y] = join();
  const auto [v, w] = join();
  auto& source = x->region(100);
  auto& local = y->region(100);  // no peer may write there
  x->post(test::write_wr(1, test::list({source.all()}), local));
  ASSERT_TRUE(run([&] { return x->ended && y->ended; }));
  EXPECT_TRUE(y->ended->sent);
  EXPECT_TRUE(x->ended->received);
  EXPECT_EQ(x->ended->reason.code, Errc::kRemoteTerminate);
  EXPECT_FALSE(v->ended);
  transfer([&](auto done) { return run(done); }, *v, *w);
  const auto over = [](const Sessions& end, sctp::StreamId stream) { return end.association().find(stream)->done(); };
  const sctp::StreamId one = x->driver.stream(), other = v->driver.stream();
  ASSERT_TRUE(run([&] { return over(*a, one) && over(*b, one); }));
  EXPECT_FALSE(over(*a, other) || over(*b, other));
}

TEST_F(SctpEndpoints, AHoldStopsItsOwnSessionOnly) {
  options.receive_wait = 10s;
  open();
  const auto [x, y] = join();
  const auto [v, w] = join();
  auto& source = x->region(100);
  for (int i = 0; i < 20; ++i) x->post(test::send_wr(1, test::list({source.all()})));
  ASSERT_TRUE(run([&] { return y->driver.half().held_bytes() >= 2000; }));
  transfer([&](auto done) { return run(done); }, *v, *w);
  EXPECT_EQ(y->recvs.size(), 0u);
  auto& sink = y->region(100);
  for (int i = 0; i < 20; ++i) y->post(rdmap::RecvWr{.wr_id = 7, .sges = test::list({sink.all()})});
  ASSERT_TRUE(run([&] { return y->recvs.size() == 20; }));
}

// The peer's Terminate comes while a Send of it waits: the end lives on, its session does not.
TEST_F(SctpEndpoints, AnEndWhoseSessionIsOverLeavesTheNextOneAlone) {
  COVERS("RFC5043-6-1");
  options.receive_wait = 10s;
  open();
  const auto [x, y] = join();
  const sctp::StreamId stream = y->driver.stream();
  x->post(test::send_wr(1, test::list({x->region(100).all()})));
  x->driver.disconnect();
  ASSERT_TRUE(run([&] { return x->ended && a->association().find(stream)->leaves_stream_free(); }));
  ASSERT_GT(y->driver.half().held_bytes(), 0u);
  const std::unique_ptr<End> old = std::move(at_b.ends[raw(stream)]);
  at_b.ends.erase(raw(stream));
  const auto [v, w] = join();
  ASSERT_EQ(w->driver.stream(), stream);
  old->post(test::send_wr(2, test::list({old->region(100).all()})));
  EXPECT_EQ(old->sends.size(), 0u);  // it can leave no more
  transfer([&](auto done) { return run(done); }, *v, *w);
  EXPECT_FALSE(old->ended);
  old->post(rdmap::RecvWr{.wr_id = 3, .sges = test::list({old->region(100).all()})});
  ASSERT_TRUE(old->ended);
  EXPECT_EQ(old->ended->reason.code, Errc::kPeerClosed);
  EXPECT_EQ(old->recvs.at(0).status, Errc::kOk);
  EXPECT_EQ(old->sends.at(0).status, Errc::kFlushed);
  transfer([&](auto done) { return run(done); }, *w, *v);
  EXPECT_FALSE(v->ended || w->ended);
}

// Neither does one that has not heard of the end.
TEST_F(SctpEndpoints, AnEndWhoseStreamServesAnotherSessionLeavesThatAlone) {
  COVERS("RFC5043-6-1");
  open();
  const auto [x, y] = join();
  const sctp::StreamId stream = y->driver.stream();
  const std::unique_ptr<End> old = std::move(at_b.ends[raw(stream)]);
  at_b.ends.erase(raw(stream));
  x->driver.disconnect();
  ASSERT_TRUE(run([&] { return x->ended && a->association().find(stream)->leaves_stream_free(); }));
  EXPECT_FALSE(old->ended);
  const auto [v, w] = join();
  ASSERT_EQ(w->driver.stream(), stream);
  v->post(rdmap::RecvWr{.wr_id = 1, .sges = test::list({v->region(100).all()})});
  old->post(test::send_wr(2, test::list({old->region(100).all()})));
  old->driver.abort();
  EXPECT_TRUE(old->ended);
  EXPECT_EQ(old->sends.at(0).status, Errc::kFlushed);
  run_for(20ms);
  EXPECT_TRUE(v->recvs.empty());
  EXPECT_FALSE(v->ended || w->ended);
  w->post(test::send_wr(3, test::list({w->region(50).all()})));
  ASSERT_TRUE(run([&] { return v->recvs.size() == 1; }));
  EXPECT_EQ(v->recvs[0].byte_len, 50u);
}

TEST_F(SctpEndpoints, CloseInOrderBehindWhatWasPosted) {
  open();
  const auto [x, y] = join();
  auto& source = x->region(100000);
  auto& sink = y->region(100000);
  y->post(rdmap::RecvWr{.wr_id = 1, .sges = test::list({sink.all()})});
  x->post(test::send_wr(2, test::list({source.all()})));
  x->driver.disconnect();
  ASSERT_TRUE(run([&] { return x->ended && y->ended; }));
  EXPECT_EQ(x->sends.at(0).status, Errc::kOk);
  EXPECT_EQ(y->recvs.at(0).status, Errc::kOk);
  EXPECT_EQ(x->ended->reason.code, Errc::kAborted);
  EXPECT_EQ(y->ended->reason.code, Errc::kPeerClosed);
  ASSERT_TRUE(run([&] { return a->association().idle() && b->association().idle(); }));
  join();
}

TEST_F(SctpEndpoints, TheNegotiatedDepthsHold) {
  accepts = {1, 16};
  accepting.session.offer.max_ird = 1;
  open();
  sctp::SessionOptions session;
  session.offer.depths = {2, 8};
  session.offer.max_ird = 2;
  const auto [x, y] = join(session);
  auto& target = y->region(50000, test::kRemoteAll);
  auto& sink = x->region(50000);
  const sctp::Session* one = a->association().find(x->driver.stream());
  const sctp::DdpSsn before = one->next_ssn();
  for (std::size_t i = 0; i < 20; ++i) x->post(test::read_wr(i, test::list({sink.sge(0, 2500)}), target, 2500 * i));
  EXPECT_EQ(one->next_ssn().distance_from(before), 1);  // the peer's IRD
  ASSERT_TRUE(run([&] { return x->sends.size() == 20; }));
  for (const auto& c : x->sends) EXPECT_EQ(c.status, Errc::kOk);
}

// SCTP can end an association abruptly, not a session: the peer hears an end in order.
TEST_F(SctpEndpoints, AnAbortEndsItsOwnSessionOnly) {
  open();
  const auto [x, y] = join();
  const auto [v, w] = join();
  const sctp::StreamId stream = x->driver.stream();
  x->driver.abort();
  EXPECT_EQ(x->ended->reason.code, Errc::kAborted);
  ASSERT_TRUE(run([&] { return y->ended && a->association().find(stream)->leaves_stream_free(); }));
  EXPECT_EQ(y->ended->reason.code, Errc::kPeerClosed);
  transfer([&](auto done) { return run(done); }, *v, *w);
  EXPECT_EQ(join().first->driver.stream(), stream);
}

TEST_F(SctpEndpoints, PeerToPeerBeginsWithTheRtr) {
  COVERS("RFC6581-7-25");
  open();
  sctp::SessionOptions session;
  session.offer.peer_to_peer = true;
  const auto [x, y] = join(session);
  transfer([&](auto done) { return run(done); }, *y, *x);  // the passive side first
  transfer([&](auto done) { return run(done); }, *x, *y);
}

TEST_F(SctpEndpoints, ManySessionsOfOneAssociationComeAndGo) {
  open();
  for (int i = 0; i < 100; ++i) {
    const auto [x, y] = join();
    auto& source = x->region(1000);
    auto& sink = y->region(1000);
    y->post(rdmap::RecvWr{.wr_id = 1, .sges = test::list({sink.all()})});
    x->post(test::send_wr(2, test::list({source.all()})));
    ASSERT_TRUE(run([&] { return !y->recvs.empty(); }));
    (i % 2 == 0 ? x : y)->driver.disconnect();
    ASSERT_TRUE(run([&] { return x->ended && y->ended; }));
  }
  EXPECT_FALSE(at_a.end);
  EXPECT_EQ(stack->associations(), 2u);
}

}  // namespace
}  // namespace iwarp::sctp_cm
