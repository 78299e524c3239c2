#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "iwarp/base/wire.h"
#include "tests/sctp_cm/net.h"
#include "tests/sctp_cm/raw_peer.h"
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

TEST_F(SctpTransport, SaysWhenNobodyIsThere) {
  start();
  listen();
  Hearer refused, silent;
  // Behind the UDP port nobody has that SCTP port.
  ASSERT_TRUE(stack->connect(listener->local(), 1, {}, refused));
  TransportOptions impatient;
  impatient.connect_timeout = 100ms;
  udp::socket nobody(io, udp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0));
  ASSERT_TRUE(stack->connect(nobody.local_endpoint(), kSctpPort, impatient, silent));
  ASSERT_TRUE(run([&] { return refused.end && silent.end; }));
  EXPECT_EQ(refused.end->code, Errc::kConnectionRefused);
  EXPECT_EQ(silent.end->code, Errc::kTimeout);
  EXPECT_THAT(std::string(silent.end->why), ::testing::HasSubstr("firewalls"));
}

// The address of a UDP port that was somebody's, and is nobody's.
udp::endpoint nobodys(boost::asio::io_context& io, const std::string& address) {
  return udp::socket(io, {boost::asio::ip::make_address(address), 0}).local_endpoint();
}

// ICMP tells, and what is under way at the same UDP port of this end does not suffer.
TEST_F(SctpTransport, IsRefusedWhereNobodyHasTheUdpPort) {
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  std::vector<std::unique_ptr<Hearer>> refused;
  for (const char* const address : {"127.0.0.1", "::1"}) {
    for (int i = 0; i < 64; ++i) {
      refused.push_back(std::make_unique<Hearer>());
      ASSERT_TRUE(stack->connect(nobodys(io, address), kSctpPort, {}, *refused.back()));
      EXPECT_TRUE(*a->send(StreamId{2}, Ppid::kDdpSegment, true, octets("a message")));
      if (i % 8 == 0) run_for(1ms);
    }
  }
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(run([&] { return std::ranges::all_of(refused, [](const auto& r) { return r->end.has_value(); }); }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, TransportOptions{}.connect_timeout);
  for (const auto& r : refused) EXPECT_EQ(r->end->code, Errc::kConnectionRefused) << r->end->why;
  ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == refused.size(); }));
  EXPECT_FALSE(here.end);
  EXPECT_TRUE(run([&] { return stack->associations() == 2; }));
}

// ICMP that quotes other than the INIT which waits tells nothing.
TEST_F(SctpTransport, IsNotRefusedWhereSomebodyHasAnswered) {
  start();
  Hearer here;
  TransportOptions impatient;
  impatient.connect_timeout = 300ms;
  {
    udp::socket there(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
    there.non_blocking(true);
    ASSERT_TRUE(stack->connect(there.local_endpoint(), kSctpPort, impatient, here));
    Octets init(2048);
    udp::endpoint from;
    ASSERT_TRUE(run([&] {
      boost::system::error_code error;
      return there.receive_from(boost::asio::buffer(init), from, 0, error) > 20;
    }));
    const auto port_at = [&](std::size_t i) { return load_be<std::uint16_t>(ConstBytes(init).subspan(i, 2)); };
    const auto tag = load_be<std::uint32_t>(ConstBytes(init).subspan(16, 4));
    Octets value;
    put32(value, RawPeer::kTag);
    put32(value, 100000);  // window
    put16(value, 10);
    put16(value, 10);
    put32(value, 1);           // first TSN
    put32(value, 0x00070008);  // a cookie of four octets, where the INIT has its tag
    put32(value, tag);
    there.send_to(boost::asio::buffer(packet_of(port_at(2), port_at(0), tag, chunk_of(2, 0, value))), from);
  }
  // The COOKIE ECHO finds the port closed.
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kTimeout) << here.end->why;
}

// "Port unreachable" (RFC 792) of a UDP datagram with that payload. False: this process may not forge any.
bool forge_unreachable(const udp::endpoint& from, const udp::endpoint& to, const Octets& payload) {
  Octets icmp{std::byte{3}, std::byte{3}, {}, {}, {}, {}, {}, {}};
  put16(icmp, 0x4500);  // the IP header, as far as it is looked at
  put16(icmp, 28 + payload.size());
  put32(icmp, 0);
  put16(icmp, 0x4011);
  put16(icmp, 0);
  put32(icmp, from.address().to_v4().to_uint());
  put32(icmp, to.address().to_v4().to_uint());
  put16(icmp, from.port());
  put16(icmp, to.port());
  put16(icmp, 8 + payload.size());
  put16(icmp, 0);
  icmp.insert(icmp.end(), payload.begin(), payload.end());
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < icmp.size(); i += 2) sum += load_be<std::uint16_t>(ConstBytes(icmp).subspan(i, 2));
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  store_be(MutBytes(icmp).subspan(2, 2), static_cast<std::uint16_t>(~sum));
  const int fd = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
  if (fd < 0) return false;
  const auto n = ::sendto(fd, icmp.data(), icmp.size(), 0, from.data(), static_cast<socklen_t>(from.size()));
  ::close(fd);
  return n == static_cast<ssize_t>(icmp.size());
}

// Who has not seen the INIT cannot know its tag.
TEST_F(SctpTransport, IsRefusedByWhoHasSeenTheInitAlone) {
  start();
  Hearer here;
  udp::socket there(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  there.non_blocking(true);
  ASSERT_TRUE(stack->connect(there.local_endpoint(), kSctpPort, {}, here));
  Octets init(2048);
  udp::endpoint from;
  ASSERT_TRUE(run([&] {
    boost::system::error_code error;
    const std::size_t n = there.receive_from(boost::asio::buffer(init), from, 0, error);
    if (n > 20) init.resize(n & ~std::size_t{1});
    return n > 20;
  }));
  Octets other = init;
  other[19] ^= std::byte{1};  // of the Initiate Tag
  if (!forge_unreachable(from, there.local_endpoint(), other)) GTEST_SKIP() << "no raw sockets here";
  run_for(100ms);
  EXPECT_FALSE(here.end);
  ASSERT_TRUE(forge_unreachable(from, there.local_endpoint(), init));
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kConnectionRefused);
}

TEST_F(SctpTransport, SaysWhatTheSystemSays) {
  start();
  Hearer here;
  // The limited broadcast, which a socket has to be allowed to use.
  ASSERT_TRUE(stack->connect({boost::asio::ip::make_address("255.255.255.255"), 9899}, kSctpPort, {}, here));
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kSystem);
  EXPECT_THAT(std::string(here.end->why),  // the latter where there is no route at all
              ::testing::AnyOf(::testing::HasSubstr("Permission denied"), ::testing::HasSubstr("unreachable")));
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
