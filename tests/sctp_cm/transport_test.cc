#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "iwarp/base/wire.h"
#include "tests/sctp_cm/net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

using sctp::Ppid;
using sctp::StreamId;

TEST_F(SctpTransport, CarriesMessagesBothWaysWithStreamsAndBoundaries) {
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  Hearer& there = *passive_users[0];
  EXPECT_EQ(here.up->indication, 1u);
  EXPECT_EQ(there.up->indication, 1u);
  EXPECT_EQ(here.up->inbound, 64);
  EXPECT_EQ(there.up->outbound, 64);
  EXPECT_GT(here.up->fragmentation_point, 1400u);
  EXPECT_LT(here.up->fragmentation_point, 1452u);
  EXPECT_TRUE(*a->send(StreamId{5}, Ppid::kDdpSegment, true, octets("first")));
  EXPECT_TRUE(*a->send(StreamId{63}, Ppid::kSessionControl, true, octets("second")));
  EXPECT_TRUE(*a->send(StreamId{0}, Ppid::kSessionControl, false, octets("third")));
  EXPECT_TRUE(*passive[0]->send(StreamId{7}, Ppid::kDdpSegment, true, octets("back")));
  ASSERT_TRUE(run([&] { return there.got.size() == 3 && here.got.size() == 1; }));
  EXPECT_EQ(there.got[0].octets, "first");
  EXPECT_EQ(there.got[0].stream, 5);
  EXPECT_EQ(there.got[0].ppid, 16u);
  EXPECT_FALSE(there.got[0].ordered);
  EXPECT_EQ(there.got[1].octets, "second");
  EXPECT_EQ(there.got[1].ppid, 17u);
  EXPECT_TRUE(there.got[2].ordered);
  EXPECT_EQ(here.got[0].stream, 7);
  ASSERT_TRUE(run([&] { return here.all_arrived > 0; }));
}

TEST_F(SctpTransport, TheStreamsOfBothEndsAreSettled) {
  COVERS("RFC5043-8-4");
  COVERS("RFC5043-8-2");
  start();
  TransportOptions few;
  few.streams = 10;
  listen("127.0.0.1", few);
  Hearer here;
  join(here);
  EXPECT_EQ(here.up->inbound, 10);
  EXPECT_EQ(here.up->outbound, 10);
  EXPECT_EQ(passive_users[0]->up->inbound, 10);
  EXPECT_EQ(passive_users[0]->up->outbound, 10);
}

TEST_F(SctpTransport, TheIndicationIsThatOfTheApplication) {
  COVERS("RFC5043-7.1-1");
  COVERS("RFC5043-5.1-3");
  COVERS("RFC5043-11.1-1");
  start();
  listen();
  TransportOptions other, none;
  other.indication = 4711;
  none.indication.reset();
  Hearer ddp, foreign, silent;
  join(ddp);
  join(foreign, other);
  join(silent, none);
  EXPECT_EQ(ddp.up->indication, sctp::kDdpIndication);                // INIT ACK
  EXPECT_EQ(passive_users[0]->up->indication, sctp::kDdpIndication);  // INIT
  EXPECT_EQ(passive_users[1]->up->indication, 4711u);
  EXPECT_EQ(passive_users[2]->up->indication, std::nullopt);
}

// Not even while earlier ones are not acknowledged.
TEST_F(SctpTransport, SmallMessagesAreNotHeldBack) {
  COVERS("RFC5043-11.2-2");
  struct Seen {
    bool losing = false;
    int data = 0;
  };
  const auto seen = std::make_shared<Seen>();
  StackOptions options;
  options.fate = [seen](ConstBytes packet) {
    if (packet[12] == std::byte{0}) ++seen->data;
    return seen->losing && packet[12] == std::byte{3} ? Fate::kLose : Fate::kPass;  // SACKs
  };
  start(options);
  TransportOptions patient;
  patient.rto_min = 5s;
  patient.rto_max = 10s;
  listen("127.0.0.1", patient);
  Hearer here;
  const auto a = join(here, patient);
  seen->losing = true;
  for (std::size_t i = 1; i <= 4; ++i) {
    EXPECT_TRUE(*a->send(StreamId{1}, Ppid::kDdpSegment, true, octets("small")));
    ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == i; }, 3s));
  }
  EXPECT_GE(seen->data, 4);
}

TEST_F(SctpTransport, WorksOverIpv6) {
  start();
  listen("::1");
  Hearer here;
  const auto a = join(here);
  EXPECT_TRUE(*a->send(StreamId{1}, Ppid::kDdpSegment, true, octets("six")));
  ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == 1; }));
  EXPECT_TRUE(a->remote().address().is_v6());
}

TEST_F(SctpTransport, TakesFragmentedMessagesWhole) {
  COVERS("RFC5043-9-5");
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  const std::string big(kMaxMessageBytes, 'b');
  EXPECT_TRUE(*a->send(StreamId{1}, Ppid::kDdpSegment, true, octets(big)));
  ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == 1; }));
  EXPECT_EQ(passive_users[0]->got[0].octets, big);
  EXPECT_EQ(a->send(StreamId{1}, Ppid::kDdpSegment, true, octets(big + "x")).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(a->send(StreamId{1}, Ppid::kDdpSegment, true, {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(a->send(StreamId{64}, Ppid::kDdpSegment, true, octets("x")).error().code, Errc::kInvalidArgument);
}

// More than the buffers hold, over a network that loses, delays and doubles.
class BadNetwork : public SctpTransport, public ::testing::WithParamInterface<unsigned> {};

TEST_P(BadNetwork, LosesNothing) {
  StackOptions options;
  options.fate = bad_network(GetParam(), 2, 3, 1);
  start(options);
  TransportOptions fast;
  fast.rto_min = 20ms;
  fast.rto_max = 200ms;
  fast.buffer_bytes = 128 << 10;
  listen("127.0.0.1", fast);
  Hearer here;
  const auto a = join(here, fast);
  constexpr std::size_t kMessages = 1500;
  std::size_t sent = 0;
  const auto send = [&] {
    while (sent < kMessages) {
      std::string text = std::to_string(sent);
      text.resize(100 + sent % 1200, '.');
      const auto taken = a->send(StreamId{static_cast<std::uint16_t>(sent % 8)}, Ppid::kDdpSegment, true, octets(text));
      ASSERT_TRUE(taken) << taken.error().why;
      if (!*taken) return;
      ++sent;
    }
  };
  here.when_room = send;
  send();
  EXPECT_LT(sent, kMessages);  // there was back pressure
  Hearer& there = *passive_users[0];
  ASSERT_TRUE(run([&] { return there.got.size() == kMessages || here.end || there.end; }, 60s));
  ASSERT_TRUE(run([&] { return here.all_arrived > 0; }));
  std::vector<bool> seen(kMessages);
  for (const auto& got : there.got) {
    const std::size_t number = std::stoul(got.octets);
    ASSERT_LT(number, kMessages);
    EXPECT_EQ(got.octets.size(), std::max(std::to_string(number).size(), 100 + number % 1200));
    EXPECT_EQ(got.stream, number % 8);
    EXPECT_FALSE(seen[number]);
    seen[number] = true;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadNetwork, ::testing::Values(1u, 2u, 3u));

TEST_F(SctpTransport, ShutsDownInOrder) {
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(*a->send(StreamId{2}, Ppid::kDdpSegment, true, octets("last words")));
  a->shutdown();
  EXPECT_EQ(a->send(StreamId{2}, Ppid::kDdpSegment, true, octets("too late")).error().code, Errc::kNotConnected);
  Hearer& there = *passive_users[0];
  ASSERT_TRUE(run([&] { return here.end && there.end; }));
  EXPECT_EQ(there.got.size(), 50u);
  EXPECT_EQ(there.end->code, Errc::kPeerClosed);
  EXPECT_EQ(here.end->code, Errc::kAborted);
  ASSERT_TRUE(run([&] { return stack->associations() == 0; }));
  EXPECT_EQ(a->send(StreamId{2}, Ppid::kDdpSegment, true, octets("x")).error().code, Errc::kNotConnected);
}

TEST_F(SctpTransport, TellsThePeerOfAnAbort) {
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  passive[0]->abort("enough");
  Hearer& there = *passive_users[0];
  EXPECT_FALSE(there.end);  // never inside a call
  ASSERT_TRUE(run([&] { return here.end && there.end; }));
  EXPECT_EQ(here.end->code, Errc::kConnectionLost);
  EXPECT_EQ(there.end->code, Errc::kAborted);
}

TEST_F(SctpTransport, OneThatIsOverHasNothingToDoAnyMore) {
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  passive[0]->abort("enough");
  ASSERT_TRUE(run([&] { return here.end.has_value() && stack->associations() == 0; }));
  a->hold(true);
  a->hold(false);
  EXPECT_FALSE(a->marked);
  join(here);
  stack->mark(*a);  // as a late one would: it touches none but itself
  run_for(50ms);
  EXPECT_EQ(stack->associations(), 2u);
}

TEST_F(SctpTransport, GivesUpAPeerThatIsGone) {
  auto cut = std::make_shared<bool>(false);
  StackOptions options;
  options.fate = [cut](ConstBytes) { return *cut ? Fate::kLose : Fate::kPass; };
  start(options);
  TransportOptions fast;
  fast.rto_min = 20ms;
  fast.rto_max = 40ms;
  fast.max_retransmissions = 3;
  listen("127.0.0.1", fast);
  Hearer here;
  const auto a = join(here, fast);
  *cut = true;
  EXPECT_TRUE(*a->send(StreamId{2}, Ppid::kDdpSegment, true, octets("lost")));
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kConnectionLost);
}

TEST_F(SctpTransport, HoldsThePeerBack) {
  start();
  listen();
  TransportOptions small;
  small.buffer_bytes = 65536;
  Hearer here;
  const auto a = join(here, small);
  passive[0]->hold(true);
  const std::string text(1000, 'x');
  std::size_t sent = 0;
  const auto send = [&] {
    while (sent < 4000) {
      const auto taken = a->send(StreamId{1}, Ppid::kDdpSegment, true, octets(text));
      if (!taken || !*taken) return;
      ++sent;
    }
  };
  here.when_room = send;
  send();
  run_for(300ms);
  EXPECT_LT(sent, 2000u);
  EXPECT_EQ(passive_users[0]->got.size(), 0u);
  passive[0]->hold(false);
  ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == 4000; }));
}

// What its listener has accepted goes on; the UDP port is closed with the last of it.
TEST_F(SctpTransport, AListenerThatGoesLeavesItsAddress) {
  start();
  listen();
  const udp::endpoint at = listener->local();
  Hearer first, second;
  const auto a = join(first);
  listener.reset();
  auto again = stack->listen(at, kSctpPort, {}, [this](std::shared_ptr<Association> accepted) {
    passive_users.push_back(std::make_unique<Hearer>());
    accepted->set_user(passive_users.back().get());
    passive.push_back(std::move(accepted));
  });
  ASSERT_TRUE(again) << again.error().why;
  listener = *std::move(again);
  EXPECT_EQ(listener->local(), at);
  const auto b = join(second);
  listener.reset();
  run_for(50ms);  // ticks
  ASSERT_TRUE(*a->send(StreamId{1}, Ppid::kDdpSegment, true, octets("still")));
  ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == 1; }));
  udp::socket other(io, at.protocol());
  boost::system::error_code taken;
  other.bind(at, taken);
  EXPECT_TRUE(taken);
  a->shutdown();
  b->shutdown();
  ASSERT_TRUE(run([&] { return stack->associations() == 0; }));
  const auto free = [&] {
    other.bind(at, taken);
    return !taken;
  };
  ASSERT_TRUE(run(free, 5s));
}

TEST_F(SctpTransport, HasManyAssociationsAtATime) {
  start();
  listen();
  constexpr std::size_t kMany = 200;
  std::vector<std::unique_ptr<Hearer>> users;
  std::vector<std::shared_ptr<Association>> all;
  for (std::size_t i = 0; i < kMany; ++i) {
    users.push_back(std::make_unique<Hearer>());
    all.push_back(connect(*users.back()));
  }
  ASSERT_TRUE(run([&] {
    return passive.size() == kMany &&
           std::all_of(users.begin(), users.end(), [](auto& u) { return u->up.has_value(); });
  }));
  for (std::size_t i = 0; i < kMany; ++i)
    EXPECT_TRUE(*all[i]->send(StreamId{1}, Ppid::kDdpSegment, true, octets(std::to_string(i))));
  ASSERT_TRUE(run([&] {
    return std::all_of(passive_users.begin(), passive_users.end(), [](auto& u) { return u->got.size() == 1; });
  }));
  for (auto& a : all) a->shutdown();
  ASSERT_TRUE(run([&] { return stack->associations() == 0; }));
  EXPECT_EQ(stack->counters().accepted, kMany);
}

TEST_F(SctpTransport, AProcessHasOneStack) {
  start();
  EXPECT_EQ(Stack::make(io, {}).error().code, Errc::kResource);
  stack.reset();
  start();
  listen();
  Hearer here;
  join(here);  // as good as the first
}

TEST_F(SctpTransport, RefusesImpossibleOptions) {
  start();
  listen();
  Hearer user;
  TransportOptions o;
  o.streams = 0;
  EXPECT_EQ(stack->connect(listener->local(), 1, o, user).error().code, Errc::kInvalidArgument);
  o = {};
  o.packet_bytes = 100;
  EXPECT_EQ(validate(o).error().code, Errc::kInvalidArgument);
  o = {};
  o.rto_max = 1ms;
  EXPECT_EQ(validate(o).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(stack->connect(listener->local(), 0, {}, user).error().code, Errc::kInvalidArgument);
  // The same UDP port, and the same SCTP port.
  EXPECT_EQ(stack->listen(listener->local(), 1, {}, {}).error().code, Errc::kSystem);
  EXPECT_EQ(stack->listen({udp::v4(), 0}, kSctpPort, {}, {}).error().code, Errc::kSystem);
}

TEST_F(SctpTransport, UsersMayGoAtAnyTime) {
  start();
  listen();
  auto user = std::make_unique<Hearer>();
  const auto a = join(*user);
  EXPECT_TRUE(*a->send(StreamId{1}, Ppid::kDdpSegment, true, octets("x")));
  a->leave();
  user.reset();
  ASSERT_TRUE(run([&] { return passive_users[0]->end && stack->associations() == 0; }));
  auto second = std::make_unique<Hearer>();
  join(*second);
  listener.reset();
  stack.reset();  // with associations that are up
  EXPECT_FALSE(second->end);
}

}  // namespace
}  // namespace iwarp::sctp_cm
