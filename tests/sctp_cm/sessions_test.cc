#include <gmock/gmock.h>

#include <algorithm>

#include "tests/sctp_cm/sessions_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

TEST_F(SctpSessions, EstablishNegotiateAndCarrySegments) {
  COVERS("RFC5043-4-1");
  COVERS("RFC5043-10-1");
  COVERS("RFC5043-9-1");
  open();
  sctp::SessionOptions options;
  options.offer.depths = {8, 4};
  const auto stream = join(options);
  auto& here = at_a.of[raw(stream)];
  auto& there = at_b.of[raw(stream)];
  EXPECT_EQ(there.private_data, "hello");
  EXPECT_EQ(here.private_data, "welcome");
  EXPECT_TRUE(here.terms->enhanced);
  EXPECT_EQ(here.terms->settled.depths.ord, 4);
  EXPECT_EQ(here.terms->settled.depths.ird, 8);
  EXPECT_GT(a->max_segment_bytes(), 1300u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(send(*a, stream, "to b " + std::to_string(i)));
    EXPECT_TRUE(send(*b, stream, "to a " + std::to_string(i)));
  }
  ASSERT_TRUE(run([&] { return here.segments.size() == 100 && there.segments.size() == 100; }));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(there.segments[static_cast<std::size_t>(i)], "to b " + std::to_string(i));
    EXPECT_EQ(here.segments[static_cast<std::size_t>(i)], "to a " + std::to_string(i));
  }
}

TEST_F(SctpSessions, RefuseWhatIsTooLong) {
  COVERS("RFC5043-9-7");
  open();
  const auto stream = join();
  EXPECT_TRUE(send(*a, stream, std::string(a->max_segment_bytes(), 'x')));
  auto longer = message(std::string(a->max_segment_bytes() + 1, 'x'));
  EXPECT_EQ(a->send_segment(stream, longer).error().code, Errc::kInvalidArgument);
  auto empty = message("");
  EXPECT_EQ(a->send_segment(stream, empty).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(a->send_segment(sctp::StreamId{20}, longer).error().code, Errc::kNotConnected);
  ASSERT_TRUE(run([&] { return at_b.of[raw(stream)].segments.size() == 1; }));
}

// The largest segment leaves in one DATA chunk, of a packet that IP does not fragment.
TEST_F(SctpSessions, TheLargestSegmentIsNotFragmented) {
  COVERS("RFC5043-9-4");
  struct Seen {
    std::size_t data = 0, fragments = 0, longest = 0;
  };
  const auto seen = std::make_shared<Seen>();  // packets leave until the fixture is gone
  StackOptions options;
  options.fate = [seen](ConstBytes packet) {
    seen->longest = std::max(seen->longest, packet.size());
    for (std::size_t i = 12; i + 4 <= packet.size();) {
      if (packet[i] == std::byte{0}) {
        ++seen->data;
        if ((packet[i + 1] & std::byte{3}) != std::byte{3}) ++seen->fragments;  // B and E
      }
      const auto length =
          std::to_integer<std::size_t>(packet[i + 2]) << 8 | std::to_integer<std::size_t>(packet[i + 3]);
      i += (std::max<std::size_t>(length, 4) + 3) / 4 * 4;
    }
    return Fate::kPass;
  };
  open(options);
  const auto stream = join();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(send(*a, stream, std::string(a->max_segment_bytes(), 'x')));
    EXPECT_TRUE(send(*b, stream, std::string(b->max_segment_bytes(), 'x')));
  }
  ASSERT_TRUE(
      run([&] { return at_b.of[raw(stream)].segments.size() == 20 && at_a.of[raw(stream)].segments.size() == 20; }));
  EXPECT_GE(seen->data, 42u);  // with Initiate and Accept
  EXPECT_EQ(seen->fragments, 0u);
  EXPECT_LE(seen->longest, TransportOptions{}.packet_bytes);
}

// A word of each side, and no session yet: nothing may be sent in it.
TEST_F(SctpSessions, AreRejectedByTheApplication) {
  COVERS("RFC5043-6.3-2");
  open();
  at_b.when_requested = [this](sctp::StreamId s) {
    EXPECT_EQ(at_b.of[raw(s)].private_data, "please");
    EXPECT_FALSE(a->may_send(s) || b->may_send(s));
    EXPECT_TRUE(b->reject(s, octets("no room")));
  };
  const auto stream = a->open({}, octets("please"));
  ASSERT_TRUE(stream);
  ASSERT_TRUE(run([&] { return at_a.of[raw(*stream)].rejected; }));
  EXPECT_EQ(at_a.of[raw(*stream)].private_data, "no room");
  EXPECT_FALSE(at_a.of[raw(*stream)].established || at_b.of[raw(*stream)].established);
  EXPECT_EQ(at_b.of[raw(*stream)].private_data, "please");
  at_b.when_requested = [this](sctp::StreamId s) { EXPECT_TRUE(b->accept(s, {1, 1}, {})); };
  join();  // the association is none the worse for it
}

TEST_F(SctpSessions, OnesThatKnowNothingOfRfc6581AreAskedPlainly) {
  sctp::AssociationOptions old;
  old.session.enhanced = false;
  open({}, {}, old);
  const auto stream = a->open({}, {});
  ASSERT_TRUE(stream);
  ASSERT_TRUE(run([&] { return at_a.of[raw(*stream)].ended.has_value(); }));
  EXPECT_EQ(at_a.of[raw(*stream)].ended->code, Errc::kPeerRejected);
  EXPECT_TRUE(at_a.of[raw(*stream)].try_plain);
  sctp::SessionOptions plain;
  plain.enhanced = false;
  EXPECT_FALSE(at_a.of[raw(join(plain))].terms->enhanced);
}

TEST_F(SctpSessions, EndOneByOne) {
  COVERS("RFC5043-11.3-5");
  open();
  std::vector<sctp::StreamId> streams;
  for (int i = 0; i < 8; ++i) streams.push_back(join());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    for (std::size_t k = i; k < streams.size(); ++k) EXPECT_TRUE(send(*a, streams[k], "round " + std::to_string(i)));
    (i % 2 == 0 ? a : b)->terminate(streams[i]);
    ASSERT_TRUE(run([&] { return at_a.of[raw(streams[i])].ended && at_b.of[raw(streams[i])].ended; }));
    EXPECT_EQ(at_b.of[raw(streams[i])].segments.size(), i + 1);  // a Terminate stands behind what was sent
    for (std::size_t k = i + 1; k < streams.size(); ++k) EXPECT_FALSE(at_a.of[raw(streams[k])].ended);
  }
  ASSERT_TRUE(run([&] { return a->association().idle() && b->association().idle(); }));
  EXPECT_FALSE(at_a.end);
  join();  // a stream serves again
}

TEST_F(SctpSessions, CloseInOrder) {
  open();
  const auto one = join(), two = join();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(send(*a, i % 2 == 0 ? one : two, "last words"));
  a->close();
  EXPECT_EQ(a->open({}, {}).error().code, Errc::kNotConnected);
  ASSERT_TRUE(run([&] { return at_a.end && at_b.end; }));
  EXPECT_EQ(at_b.of[raw(one)].segments.size(), 25u);
  EXPECT_EQ(at_b.of[raw(two)].segments.size(), 25u);
  EXPECT_EQ(at_b.of[raw(one)].ended->code, Errc::kPeerClosed);
  EXPECT_EQ(at_a.end->code, Errc::kAborted);
  EXPECT_EQ(at_b.end->code, Errc::kPeerClosed);
}

TEST_F(SctpSessions, AllHearOfALostAssociation) {
  open();
  const auto one = join(), two = join();
  b->abort();
  ASSERT_TRUE(run([&] { return at_a.end && at_b.end; }));
  for (const auto stream : {one, two}) {
    EXPECT_EQ(at_a.of[raw(stream)].ended->code, Errc::kConnectionLost);
    EXPECT_TRUE(at_b.of[raw(stream)].ended.has_value());
  }
  EXPECT_FALSE(send(*a, one, "nobody hears"));
}

// The adaptation indication decides. req. of the table of RFC 5043 s11.1
TEST_F(SctpSessions, WithoutTheIndicationThereIsNoDdp) {
  COVERS("RFC5043-7.1-2");
  COVERS("RFC5043-11.1-3");
  COVERS("RFC5043-11.1-5");
  TransportOptions none, other;
  none.indication.reset();
  other.indication = 2;
  for (const auto& options : {none, other}) {
    open({}, options);
    ASSERT_TRUE(at_a.end);
    EXPECT_FALSE(at_a.ready);
    EXPECT_FALSE(at_b.ready);
    EXPECT_TRUE(at_a.end->code == Errc::kAdaptation || at_a.end->code == Errc::kConnectionLost);
    ASSERT_TRUE(run([&] { return stack->associations() == 0; }));
    TearDown();
    at_a = at_b = {};
  }
}

class BadSessions : public SctpSessions, public ::testing::WithParamInterface<unsigned> {};

// Several sessions, both directions, loss, delay and doubles: all arrives, once, in order, with its data.
TEST_P(BadSessions, KeepTheirOrder) {
  COVERS("RFC5043-5.2.1-3");
  StackOptions network;
  network.fate = bad_network(GetParam(), 2, 5, 2);
  TransportOptions fast;
  fast.rto_min = 20ms;
  fast.rto_max = 200ms;
  fast.buffer_bytes = 128 << 10;
  open(network, fast);
  constexpr std::size_t kSessions = 4, kSegments = 300;
  std::vector<sctp::StreamId> streams;
  for (std::size_t i = 0; i < kSessions; ++i) streams.push_back(join());
  std::map<std::pair<Sessions*, std::uint16_t>, std::size_t> sent;
  const auto text = [](std::size_t i) {
    std::string t = std::to_string(i) + ":";
    t.resize(20 + i * 7 % 1300, static_cast<char>('a' + i % 26));
    return t;
  };
  const auto pump = [&](Sessions& from) {
    for (const auto stream : streams) {
      std::size_t& n = sent[{&from, raw(stream)}];
      while (n < kSegments && send(from, stream, text(n))) ++n;
    }
  };
  at_a.when_room = [&] { pump(*a); };
  at_b.when_room = [&] { pump(*b); };
  pump(*a);
  pump(*b);
  ASSERT_TRUE(run(
      [&] {
        return std::all_of(streams.begin(), streams.end(), [&](auto s) {
          return at_a.of[raw(s)].segments.size() == kSegments && at_b.of[raw(s)].segments.size() == kSegments;
        });
      },
      60s));
  for (const auto stream : streams) {
    for (std::size_t i = 0; i < kSegments; ++i) {
      ASSERT_EQ(at_a.of[raw(stream)].segments[i], text(i));
      ASSERT_EQ(at_b.of[raw(stream)].segments[i], text(i));
    }
  }
  a->close();
  ASSERT_TRUE(run([&] { return at_a.end && at_b.end; }));
  EXPECT_EQ(at_b.end->code, Errc::kPeerClosed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadSessions, ::testing::Values(11u, 12u, 13u));

}  // namespace
}  // namespace iwarp::sctp_cm
