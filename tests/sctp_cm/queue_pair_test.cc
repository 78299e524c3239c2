// Queue pairs of verbs over SCTP: posted to from any thread, with completion queues and registered memory.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "iwarp/sctp_cm/queue_pair_link.h"
#include "iwarp/verbs/memory_region.h"
#include "tests/sctp_cm/sessions_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

using verbs::Completion;
using verbs::QueuePair;

struct Linked {
  Linked(const verbs::ProtectionDomain& pd, const stream::Options& options)
      : cq(1000),
        qp(std::make_shared<QueuePair>(pd, QueuePair::Options{.send_cq = &cq, .recv_cq = &cq, .stream = options})) {}
  std::vector<Completion> take() {
    std::array<Completion, 64> some;
    const std::size_t n = cq.poll(some);
    return {some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  verbs::CompletionQueue cq;
  std::shared_ptr<QueuePair> qp;
  std::shared_ptr<QueuePairLink> link;
  bool established = false;
  std::optional<endpoint::Ended> ended;
};

struct QpRouter final : SessionsUser {
  std::map<std::uint16_t, Linked*> of;
  std::function<void(sctp::StreamId)> when_requested;
  bool ready = false;
  void on_ready() override { ready = true; }
  void on_event(sctp::StreamId stream, const sctp::Session::Event& event) override {
    if (std::holds_alternative<sctp::Session::Requested>(event)) return when_requested(stream);
    if (of.contains(raw(stream))) of[raw(stream)]->link->on_event(event);
  }
  std::size_t on_early(sctp::StreamId stream, const sctp::Session::Early& early) override {
    return of.contains(raw(stream)) ? of[raw(stream)]->link->on_early(early) : 0;
  }
  void on_room() override {
    for (auto& [stream, linked] : of) linked->link->on_room();
  }
  void on_end(const Error&) override {}
};

class QueuePairsOverSctp : public SctpTransport {
 protected:
  void open(const stream::Options& options = {}) {
    start();
    auto l = stack->listen(
        {boost::asio::ip::make_address("127.0.0.1"), 0}, kSctpPort, {}, [this](std::shared_ptr<Association> accepted) {
          b = std::make_unique<Sessions>(io, sctp::AssociationOptions{}, sctp::Association::Side::kAccepted, at_b);
          accepted->set_user(b.get());
          b->attach(std::move(accepted));
        });
    ASSERT_TRUE(l);
    listener = *std::move(l);
    a = std::make_unique<Sessions>(io, sctp::AssociationOptions{}, sctp::Association::Side::kConnected, at_a);
    auto association = stack->connect(listener->local(), kSctpPort, {}, *a);
    ASSERT_TRUE(association);
    a->attach(*association);
    at_b.when_requested = [this](sctp::StreamId stream) {
      link(*y, *b, at_b, sctp::Role::kPassive, stream);
      EXPECT_TRUE(b->accept(stream, {16, 16}, {}));
    };
    ASSERT_TRUE(run([&] { return at_a.ready && at_b.ready; }));
    join(options);
  }
  // A session with a queue pair at each end.
  void join(const stream::Options& options = {}) {
    x = std::make_unique<Linked>(pd, options);
    y = std::make_unique<Linked>(pd, options);
    const auto stream = a->open({}, {});
    ASSERT_TRUE(stream);
    link(*x, *a, at_a, sctp::Role::kActive, *stream);
    ASSERT_TRUE(run([&] { return x->established && y->established; }));
  }
  void link(Linked& of, Sessions& sessions, QpRouter& router, sctp::Role role, sctp::StreamId stream) {
    QueuePairLink::Handlers handlers;
    handlers.established = [&of] { of.established = true; };
    handlers.ended = [&of](const endpoint::Ended& how) { of.ended = how; };
    auto made = QueuePairLink::make(io, of.qp, role, std::move(handlers));
    ASSERT_TRUE(made);
    of.link = *made;
    router.of[raw(stream)] = &of;
    of.link->begin(sessions, stream);
  }
  verbs::MemoryRegion region(std::vector<std::byte>& memory, ddp::Access access) {
    return verbs::MemoryRegion::register_memory(pd, memory, {.access = access}).value();
  }
  static verbs::Sge sge(const verbs::MemoryRegion& r) {
    return {r.memory().data(), static_cast<std::uint32_t>(r.memory().size()), r.stag()};
  }
  void TearDown() override {
    if (x) x->link.reset();
    if (y) y->link.reset();
    a.reset();
    b.reset();
    SctpTransport::TearDown();
  }

  std::shared_ptr<verbs::Context> context = std::make_shared<verbs::Context>();
  verbs::ProtectionDomain pd{context};
  QpRouter at_a, at_b;
  std::unique_ptr<Sessions> a, b;
  std::unique_ptr<Linked> x, y;
};

constexpr auto kAll = ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite;

TEST_F(QueuePairsOverSctp, SendWriteAndRead) {
  open();
  EXPECT_EQ(x->qp->state(), verbs::QueuePairState::kRts);
  const auto attributes = x->qp->query().value();
  EXPECT_TRUE(attributes.established);
  EXPECT_EQ(attributes.ord, 32);  // the peer has raised its IRD
  EXPECT_EQ(attributes.mulpdu, a->max_segment_bytes());
  std::vector<std::byte> source(100000), target(100000), inbox(100000), back(100000);
  std::generate(source.begin(), source.end(), [i = 0U]() mutable { return static_cast<std::byte>(i++ % 251); });
  const auto rs = region(source, kAll), rt = region(target, kAll), ri = region(inbox, kAll), rb = region(back, kAll);
  const auto remote = reinterpret_cast<std::uint64_t>(target.data());
  ASSERT_TRUE(y->qp->post_recv({.wr_id = 1, .sges = {sge(ri)}}));
  ASSERT_TRUE(x->qp->post_send(
      {.wr_id = 2, .op = verbs::SendOp::kWrite, .sges = {sge(rs)}, .remote_stag = rt.stag(), .remote_to = remote}));
  ASSERT_TRUE(x->qp->post_send({.wr_id = 3, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}));
  ASSERT_TRUE(x->qp->post_send(
      {.wr_id = 4, .op = verbs::SendOp::kRead, .sges = {sge(rb)}, .remote_stag = rt.stag(), .remote_to = remote}));
  std::vector<Completion> at_x, at_y;
  ASSERT_TRUE(run([&] {
    for (const auto& c : x->take()) at_x.push_back(c);
    for (const auto& c : y->take()) at_y.push_back(c);
    return at_x.size() == 3 && at_y.size() == 1;
  }));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(at_x[i].wr_id, 2 + i);
  for (const auto& c : at_x) EXPECT_EQ(c.status, Errc::kOk);
  EXPECT_EQ(at_y[0].byte_len, 100000u);
  EXPECT_EQ(target, source);
  EXPECT_EQ(inbox, source);
  EXPECT_EQ(back, source);
}

TEST_F(QueuePairsOverSctp, ArePostedToFromOtherThreads) {
  stream::Options patient;  // the thread that posts Receives may come late
  patient.receive_wait = 10s;
  open(patient);
  constexpr std::uint64_t kMessages = 500;
  std::vector<std::byte> source(64), inbox(64);
  const auto rs = region(source, kAll), ri = region(inbox, kAll);
  std::atomic<bool> failed{false};
  std::thread receiver([&] {
    std::uint64_t posted = 0, came = 0;
    while (came < kMessages && !failed) {
      while (posted < kMessages && y->qp->post_recv({.wr_id = posted, .sges = {sge(ri)}})) ++posted;
      for (const auto& c : y->take()) {
        if (c.status != Errc::kOk) failed = true;
        ++came;
      }
      std::this_thread::sleep_for(100us);
    }
  });
  std::thread sender([&] {
    std::uint64_t posted = 0, done = 0;
    while (done < kMessages && !failed) {
      if (posted < kMessages && posted - done < 8 &&
          x->qp->post_send({.wr_id = posted, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}))
        ++posted;
      for (const auto& c : x->take()) {
        if (c.status != Errc::kOk) failed = true;
        ++done;
      }
      std::this_thread::sleep_for(100us);
    }
  });
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    receiver.join();
    sender.join();
    over = true;
  });
  EXPECT_TRUE(run([&] { return over.load(); }, 60s));
  if (!over) failed = true;
  waiter.join();
  EXPECT_FALSE(failed);
}

TEST_F(QueuePairsOverSctp, ASendWaitsForItsReceive) {
  stream::Options patient;
  patient.receive_wait = 10s;
  open(patient);
  std::vector<std::byte> source(64), inbox(64);
  const auto rs = region(source, kAll), ri = region(inbox, kAll);
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_TRUE(x->qp->post_send({.wr_id = i, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}));
  run_for(100ms);
  EXPECT_TRUE(y->take().empty());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(y->qp->post_recv({.wr_id = i, .sges = {sge(ri)}}));
  std::size_t came = 0;
  ASSERT_TRUE(run([&] { return (came += y->take().size()) == 5; }));
  EXPECT_FALSE(y->ended);
}

TEST_F(QueuePairsOverSctp, EndInOrder) {
  open();
  ASSERT_TRUE(x->qp->modify(verbs::QueuePairState::kSqDrain));
  ASSERT_TRUE(run([&] { return x->ended && y->ended; }));
  EXPECT_EQ(y->ended->reason.code, Errc::kPeerClosed);
  EXPECT_EQ(x->qp->state(), verbs::QueuePairState::kError);
}

TEST_F(QueuePairsOverSctp, AnAbortFlushesAtOnceAndThePeerHears) {
  open();
  std::vector<std::byte> inbox(64);
  const auto ri = region(inbox, kAll);
  ASSERT_TRUE(x->qp->post_recv({.wr_id = 1, .sges = {sge(ri)}}));
  x->qp->abort();
  const auto flushed = x->take();
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].status, Errc::kFlushed);
  ASSERT_TRUE(run([&] { return y->ended.has_value(); }));
  EXPECT_EQ(y->ended->reason.code, Errc::kPeerClosed);
  ASSERT_TRUE(run([&] { return x->ended.has_value(); }));
  EXPECT_EQ(x->ended->reason.code, Errc::kAborted);
  EXPECT_TRUE(x->link->over() && y->link->over());
}

TEST_F(QueuePairsOverSctp, LeavingLosesNothingOfWhatHasCompleted) {
  open();
  std::vector<std::byte> source(64), inbox(64);
  const auto rs = region(source, kAll), ri = region(inbox, kAll);
  ASSERT_TRUE(y->qp->post_recv({.wr_id = 1, .sges = {sge(ri)}}));
  ASSERT_TRUE(x->qp->post_send({.wr_id = 2, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}));
  ASSERT_TRUE(run([&] { return !x->take().empty(); }));
  x->qp->leave();
  ASSERT_TRUE(run([&] { return x->ended && y->ended; }));
  EXPECT_EQ(y->ended->reason.code, Errc::kPeerClosed);
  const auto came = y->take();
  ASSERT_FALSE(came.empty());
  EXPECT_EQ(came[0].status, Errc::kOk);
}

TEST_F(QueuePairsOverSctp, AnEndBeforeThereIsASessionIsToldToo) {
  open();
  Linked early(pd, {});
  QueuePairLink::Handlers handlers;
  handlers.ended = [&](const endpoint::Ended& how) { early.ended = how; };
  early.link = QueuePairLink::make(io, early.qp, sctp::Role::kActive, std::move(handlers)).value();
  EXPECT_EQ(early.qp->state(), verbs::QueuePairState::kRtr);
  const auto second = QueuePairLink::make(io, early.qp, sctp::Role::kActive, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kInvalidArgument);
  early.qp->abort();
  ASSERT_TRUE(run([&] { return early.ended.has_value(); }));
  EXPECT_EQ(early.ended->reason.code, Errc::kAborted);
  EXPECT_FALSE(early.ended->was_established);
}

// One that has not heard of the end of its session, while another one has the stream.
TEST_F(QueuePairsOverSctp, AnOldOneLeavesTheNextSessionOfItsStreamAlone) {
  COVERS("RFC5043-6-1");
  open();
  const std::unique_ptr<Linked> old = std::move(y), first = std::move(x);
  const sctp::StreamId stream{at_b.of.begin()->first};
  at_b.of.clear();
  first->link->disconnect();
  ASSERT_TRUE(run([&] { return first->ended && a->association().find(stream)->leaves_stream_free(); }));
  EXPECT_FALSE(old->ended);
  join();
  ASSERT_EQ(at_b.of.begin()->first, raw(stream));
  std::vector<std::byte> source(64), inbox(64);
  const auto rs = region(source, kAll), ri = region(inbox, kAll);
  ASSERT_TRUE(x->qp->post_recv({.wr_id = 1, .sges = {sge(ri)}}));
  ASSERT_TRUE(old->qp->post_send({.wr_id = 2, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}));
  run_for(20ms);
  old->qp->abort();
  ASSERT_TRUE(run([&] { return old->ended.has_value(); }));
  EXPECT_EQ(old->take().at(0).status, Errc::kFlushed);
  run_for(20ms);
  EXPECT_TRUE(x->take().empty());
  EXPECT_FALSE(x->ended || y->ended);
  ASSERT_TRUE(y->qp->post_send({.wr_id = 3, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}));
  ASSERT_TRUE(run([&] { return !x->take().empty(); }));
}

// The association goes while a message waits: what has come is still received.
TEST_F(QueuePairsOverSctp, AMessageThatWaitsOutlivesItsAssociation) {
  stream::Options patient;
  patient.receive_wait = 10s;
  open(patient);
  std::vector<std::byte> source(64), inbox(64);
  const auto rs = region(source, kAll), ri = region(inbox, kAll);
  ASSERT_TRUE(x->qp->post_send({.wr_id = 1, .op = verbs::SendOp::kSend, .sges = {sge(rs)}}));
  x->link->disconnect();
  ASSERT_TRUE(run([&] { return x->ended.has_value(); }));
  EXPECT_FALSE(y->ended);
  y->link->let_go();
  b.reset();
  ASSERT_TRUE(y->qp->post_recv({.wr_id = 2, .sges = {sge(ri)}}));
  ASSERT_TRUE(run([&] { return y->ended.has_value(); }));
  EXPECT_EQ(y->ended->reason.code, Errc::kPeerClosed);
  EXPECT_EQ(y->take().at(0).status, Errc::kOk);
}

}  // namespace
}  // namespace iwarp::sctp_cm
