// A Half by itself: events of a session go in by hand, in virtual time.
#include "iwarp/session/half.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <random>

#include "iwarp/enhanced/settlement.h"
#include "tests/support/covers.h"
#include "tests/support/end_memory.h"

namespace iwarp::session {
namespace {

using namespace std::chrono_literals;
using endpoint::Phase;
using sctp::Role;
using Event = sctp::Session::Event;
using test::Bytes;

constexpr std::size_t kMulpdu = 600;

// One end with its memory, and the messages that have left it.
struct End : test::EndMemory {
  explicit End(unsigned number, const endpoint::Options& options = {}, const Options& half_options = {})
      : EndMemory({PdId{number}, ddp::StreamId{100 + number}}), core(stags, key, options), half(core, half_options) {}

  void establish(Role role, const enhanced::Settled& settled = {.depths = {8, 8}}) {
    sctp::Session::Established e;
    e.settled = settled;
    half.on_event(Event{e}, role, now);
  }
  void open(Role role) {
    half.start(now);
    establish(role);
  }
  // All that wants to leave, as segments.
  std::vector<Bytes> send() {
    std::vector<Bytes> out;
    for (auto m = half.next(kMulpdu, now); !m.empty(); m = half.next(kMulpdu, now)) {
      EXPECT_LE(m.size(), sctp::kSsnBytes + kMulpdu);
      out.emplace_back(m.begin() + sctp::kSsnBytes, m.end());
      half.taken(now);
    }
    return out;
  }
  void receive(const Bytes& segment) { half.on_event(Event{sctp::Session::Delivered{segment}}, Role::kPassive, now); }
  void receive(const std::vector<Bytes>& segments) {
    for (const Bytes& s : segments) receive(s);
  }
  void peer_ends() {
    half.on_event(Event{sctp::Session::Ended{make_error(Errc::kPeerClosed), false}}, Role::kPassive, now);
  }
  std::optional<endpoint::Ended> ended() {
    while (const auto event = core.poll_event()) {
      if (const auto* e = std::get_if<endpoint::Ended>(&*event)) return *e;
    }
    return std::nullopt;
  }

  endpoint::Endpoint core;
  Half half;
  TimePoint now{1000s};
};

class SessionHalf : public ::testing::Test {
 protected:
  void open() {
    a.open(Role::kActive);
    b.open(Role::kPassive);
  }
  End a{1}, b{2};
};

TEST_F(SessionHalf, CarriesAMessageOfSeveralSegments) {
  COVERS("RFC5043-2-4");
  open();
  auto& source = a.region(2000);
  auto& sink = b.region(2000);
  std::generate(source.bytes().begin(), source.bytes().end(), [i = 0]() mutable { return std::byte(i++ % 251); });
  ASSERT_TRUE(b.core.post_recv({.wr_id = 1, .sges = test::list({sink.all()})}));
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  const auto segments = a.send();
  EXPECT_EQ(segments.size(), 4u);
  b.receive(segments);
  const auto done = b.core.poll_recv();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->wr_id, 1u);
  EXPECT_EQ(done->byte_len, 2000u);
  EXPECT_EQ(sink.bytes(), source.bytes());
  ASSERT_TRUE(a.core.poll_send());
}

TEST_F(SessionHalf, AMessageThatSctpDoesNotTakeIsGivenAgain) {
  open();
  auto& source = a.region(100);
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  const auto first = a.half.next(kMulpdu, a.now);
  const Bytes octets(first.begin(), first.end());
  const auto again = a.half.next(kMulpdu, a.now);
  EXPECT_EQ(octets, Bytes(again.begin(), again.end()));
  EXPECT_FALSE(a.core.poll_send());  // it has not left
  a.half.taken(a.now);
  EXPECT_TRUE(a.core.poll_send());
  EXPECT_TRUE(a.half.next(kMulpdu, a.now).empty());
}

TEST_F(SessionHalf, TheSessionEndsBehindWhatWasPosted) {
  open();
  auto& source = a.region(100);
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  a.half.disconnect(a.now);
  EXPECT_FALSE(a.half.must_terminate());
  EXPECT_EQ(a.send().size(), 1u);
  EXPECT_TRUE(a.half.must_terminate());
  EXPECT_FALSE(a.half.must_terminate());  // once
  EXPECT_EQ(a.core.phase(), Phase::kEndWait);
  a.peer_ends();
  EXPECT_EQ(a.ended()->reason.code, Errc::kAborted);
}

TEST_F(SessionHalf, ThePeersTerminateIsItsEnd) {
  open();
  a.peer_ends();
  EXPECT_EQ(a.ended()->reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(a.half.must_terminate());
}

// A Terminate of RDMAP is a segment, and the session's follows it.
TEST_F(SessionHalf, AViolationSendsAnRdmapTerminateFirst) {
  COVERS("RFC5043-6.2-6");
  COVERS("RFC5043-11.3-4");
  open();
  auto& source = a.region(100);
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  b.receive(a.send());  // no Receive is posted
  EXPECT_FALSE(b.half.must_terminate());
  const auto terminate = b.send();
  ASSERT_EQ(terminate.size(), 1u);
  EXPECT_TRUE(b.half.must_terminate());
  a.receive(terminate);
  a.peer_ends();
  EXPECT_TRUE(a.half.must_terminate());
  const auto ended = a.ended();
  EXPECT_EQ(ended->reason.code, Errc::kRemoteTerminate);
  EXPECT_TRUE(ended->received);
}

TEST_F(SessionHalf, AnAcceptThatDoesNotSuitIsAnsweredWithATerminate) {
  COVERS("RFC5043-6.2-6");
  a.half.start(a.now);
  a.half.on_event(Event{sctp::Session::Ended{make_error(Errc::kInsufficientIrd), false}}, Role::kActive, a.now);
  EXPECT_EQ(a.send().size(), 1u);
  EXPECT_FALSE(a.ended());
  EXPECT_TRUE(a.half.must_terminate());
  const auto ended = a.ended();  // at once: the session tells no other end
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->reason.code, Errc::kInsufficientIrd);
  EXPECT_FALSE(a.half.must_terminate());
}

TEST_F(SessionHalf, ARejectEndsTheStartup) {
  a.half.start(a.now);
  const Bytes why(3);
  sctp::Session::Rejected rejected;
  rejected.private_data = why;
  a.half.on_event(Event{rejected}, Role::kActive, a.now);
  const auto ended = a.ended();
  EXPECT_EQ(ended->reason.code, Errc::kPeerRejected);
  EXPECT_FALSE(ended->was_established);
  EXPECT_EQ(a.half.private_data().size(), 3u);
  EXPECT_FALSE(a.half.must_terminate());
}

// What has not left is lost, and the session ends as ever.
TEST_F(SessionHalf, AnAbortTerminatesTheSession) {
  open();
  auto& source = a.region(100);
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  ASSERT_FALSE(a.half.next(kMulpdu, a.now).empty());  // and SCTP has no room
  a.half.abort_sparing(make_error(Errc::kAborted), a.now);
  EXPECT_EQ(a.core.phase(), Phase::kClosed);
  EXPECT_TRUE(a.send().empty());
  EXPECT_TRUE(a.half.must_terminate());
  EXPECT_FALSE(a.half.must_terminate());
  EXPECT_EQ(a.ended()->reason.code, Errc::kAborted);
  EXPECT_EQ(a.core.poll_send()->status, Errc::kFlushed);
  a.half.abort_sparing(make_error(Errc::kAborted), a.now);  // nothing more
  EXPECT_FALSE(a.ended());
}

// The peer keeps what it has, and its end is waited for.
TEST_F(SessionHalf, WhoLeavesEndsTheSessionInOrder) {
  open();
  auto& source = a.region(100);
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  a.half.leave(make_error(Errc::kAborted), a.now);
  EXPECT_EQ(a.core.poll_send()->status, Errc::kFlushed);
  EXPECT_EQ(a.core.phase(), Phase::kEndWait);
  EXPECT_TRUE(a.send().empty());
  EXPECT_TRUE(a.half.must_terminate());
  a.peer_ends();
  EXPECT_TRUE(a.ended());
}

TEST_F(SessionHalf, ALostAssociationIsAReset) {
  COVERS("RFC5043-11.3-2");
  open();
  auto& source = a.region(100);
  ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
  a.half.on_event(Event{sctp::Session::Ended{make_error(Errc::kConnectionLost), false}}, Role::kActive, a.now);
  EXPECT_TRUE(a.half.next(kMulpdu, a.now).empty());
  EXPECT_EQ(a.ended()->reason.code, Errc::kConnectionLost);
  EXPECT_EQ(a.core.poll_send()->status, Errc::kFlushed);
}

TEST_F(SessionHalf, TheActiveSideOpensWithTheRtrThatWasSettled) {
  COVERS("RFC6581-7-25");
  for (const enhanced::Rtr rtr : {enhanced::Rtr::kSend, enhanced::Rtr::kWrite, enhanced::Rtr::kRead}) {
    End active(1), passive(2);
    active.half.start(active.now);
    passive.half.start(passive.now);
    const enhanced::Settled settled{.peer_to_peer = true, .rtr = rtr, .depths = {8, 8}};
    active.establish(Role::kActive, settled);
    passive.establish(Role::kPassive, settled);
    const auto opening = active.send();
    ASSERT_EQ(opening.size(), 1u) << enhanced::name(rtr);
    passive.receive(opening);
    active.receive(passive.send());
    EXPECT_EQ(passive.core.phase(), Phase::kFull) << enhanced::name(rtr);  // no Receive was needed
    EXPECT_EQ(active.core.phase(), Phase::kFull) << enhanced::name(rtr);
  }
}

class HeldHalf : public ::testing::Test {
 protected:
  HeldHalf() {
    a.open(Role::kActive);
    b.open(Role::kPassive);
    for (int i = 0; i < 3; ++i) {
      auto& source = a.region(100);
      std::fill(source.bytes().begin(), source.bytes().end(), std::byte(i + 1));
      EXPECT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
    }
    b.receive(a.send());
  }
  static endpoint::Options patient() {
    endpoint::Options o;
    o.receive_wait = 5s;
    return o;
  }
  End a{1}, b{2, patient()};
};

TEST_F(HeldHalf, ASendWaitsForItsReceiveAndTheRestBehindIt) {
  EXPECT_GT(b.half.held_bytes(), 300u);
  EXPECT_EQ(b.core.phase(), Phase::kFull);
  auto& sink = b.region(300);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(b.core.poll_recv());
    ASSERT_TRUE(b.core.post_recv({.wr_id = i, .sges = test::list({sink.sge(100 * i, 100)})}));
    b.half.resume(b.now);
    ASSERT_TRUE(b.core.poll_recv());
    EXPECT_EQ(sink.bytes()[100 * i], std::byte(i + 1));
  }
  EXPECT_EQ(b.half.held_bytes(), 0u);
}

TEST_F(HeldHalf, ThePeersEndWaitsToo) {
  b.peer_ends();
  EXPECT_FALSE(b.ended());
  auto& sink = b.region(300);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(b.core.post_recv({.wr_id = i, .sges = test::list({sink.sge(100 * i, 100)})}));
  b.half.resume(b.now);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(b.core.poll_recv()->status, Errc::kOk);
  EXPECT_EQ(b.ended()->reason.code, Errc::kPeerClosed);
}

TEST_F(HeldHalf, NothingLeavesBehindThePeersEnd) {
  auto& source = b.region(100);
  ASSERT_TRUE(b.core.post_send(test::send_wr(1, test::list({source.all()}))));
  ASSERT_FALSE(b.half.next(kMulpdu, b.now).empty());  // and SCTP has no room
  b.peer_ends();
  EXPECT_TRUE(b.send().empty());
  ASSERT_TRUE(b.core.post_send(test::send_wr(2, test::list({source.all()}))));
  EXPECT_TRUE(b.send().empty());
  b.now = *b.half.deadline();
  b.half.on_deadline(b.now);
  EXPECT_TRUE(b.send().empty());  // no Terminate either
  EXPECT_EQ(b.core.phase(), Phase::kClosed);
  EXPECT_TRUE(b.ended());
  EXPECT_EQ(b.core.poll_send()->status, Errc::kFlushed);
}

TEST_F(HeldHalf, WhoLeavesWaitsForNoEndThatHasCome) {
  b.peer_ends();
  b.half.leave(make_error(Errc::kAborted), b.now);
  EXPECT_EQ(b.core.phase(), Phase::kClosed);
  EXPECT_EQ(b.half.held_bytes(), 0u);
}

TEST_F(HeldHalf, TheWaitHasAnEnd) {
  ASSERT_TRUE(b.half.deadline());
  b.now = *b.half.deadline();
  b.half.on_deadline(b.now);
  EXPECT_EQ(b.send().size(), 1u);  // the Terminate
  EXPECT_TRUE(b.half.must_terminate());
  EXPECT_EQ(b.half.held_bytes(), 0u);
}

TEST_F(HeldHalf, MoreThanTheBudgetEndsTheSession) {
  for (int i = 0; i < 5000 && b.core.phase() == Phase::kFull; ++i) {
    auto& source = *a.regions[0];
    ASSERT_TRUE(a.core.post_send(test::send_wr(2, test::list({source.all()}))));
    b.receive(a.send());
    ASSERT_LE(b.half.held_bytes(), Options{}.max_held_bytes);
    while (a.core.poll_send()) {
    }
  }
  EXPECT_EQ(b.core.phase(), Phase::kTerminating);
  EXPECT_EQ(b.half.held_bytes(), 0u);
}

}  // namespace
}  // namespace iwarp::session
