// What strangers send to the UDP port of a listener: nothing of it costs more than its bound, and honest peers are
// served.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/sctp_cm/raw_peer.h"

namespace iwarp::sctp_cm {
namespace {

class SctpHostile : public SctpTransport {
 protected:
  void open(StackOptions options = {}) {
    start(options);
    TransportOptions small;
    small.buffer_bytes = 65536;
    listen("127.0.0.1", small);
  }
  Octets answer(RawPeer& peer) {
    Octets in;
    (void)run([&] { return !(in = peer.receive()).empty(); }, 10s);
    return in;
  }
  // Whether nothing that was counted since the start has expired yet: on a loaded machine it may have.
  bool in_time() const { return std::chrono::steady_clock::now() - set_up < Peers::kCookieLife; }
  // An honest peer gets its message across.
  void expect_service() {
    Hearer here;
    const auto a = join(here);
    ASSERT_TRUE(a);
    ASSERT_TRUE(*a->send(sctp::StreamId{1}, sctp::Ppid::kDdpSegment, true, octets("honest")));
    Hearer& there = *passive_users.back();
    ASSERT_TRUE(run([&] { return there.got.size() == 1; }));
    a->leave();
    ASSERT_TRUE(run([&] { return there.end.has_value(); }));
  }
  const std::chrono::steady_clock::time_point set_up = std::chrono::steady_clock::now();
};

TEST_F(SctpHostile, GarbageIsDropped) {
  open();
  RawPeer peer(io, listener->local());
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < 2000; ++i) {
    Octets garbage(random() % 200);
    std::generate(garbage.begin(), garbage.end(), [&] { return static_cast<std::byte>(random() >> 8); });
    peer.send(garbage);
    if (i % 100 == 0) io.poll();
  }
  ASSERT_TRUE(run([&] { return stack->counters().packets >= 1500; }));
  EXPECT_EQ(stack->counters().inits + stack->counters().blue, 0u);  // nothing came as far as SCTP
  EXPECT_EQ(stack->counters().malformed + stack->counters().bad_checksum, stack->counters().packets);
  expect_service();
}

TEST_F(SctpHostile, AFloodOfInitsCostsItsBoundAndHonestPeersAreServed) {
  StackOptions options;
  options.max_asking = 500;
  open(options);
  constexpr unsigned kAddresses = 20, kPorts = 100;
  for (unsigned i = 0; i < kAddresses; ++i) {
    RawPeer forged(io, listener->local(), ("127.1.2." + std::to_string(i + 1)).c_str());
    for (unsigned port = 1; port <= kPorts; ++port) forged.send(forged.init(static_cast<std::uint16_t>(port)));
    io.poll();
    io.restart();
  }
  ASSERT_TRUE(run([&] { return stack->counters().inits == kAddresses * kPorts; }));
  EXPECT_LE(stack->peers().asking(), 500u);
  if (in_time()) {
    EXPECT_EQ(stack->peers().asking(), 500u);
    EXPECT_EQ(stack->peers().displaced(), kAddresses * kPorts - 500);
  }
  EXPECT_EQ(stack->associations(), 0u);
  expect_service();
}

TEST_F(SctpHostile, ACookieServesTheAddressThatAskedForIt) {
  open();
  RawPeer one(io, listener->local());
  one.send(one.init());
  const Octets ack = answer(one);
  ASSERT_GE(ack.size(), 40u);
  // Without a question of its own, and with one: a cookie of another address makes no association.
  RawPeer other(io, listener->local(), "127.0.0.2");
  other.send(other.echo(ack));
  ASSERT_TRUE(run([&] { return stack->counters().no_such_peer == 1; }));
  other.send(other.init());
  const Octets second = answer(other);
  ASSERT_FALSE(second.empty());
  other.send(other.echo(ack));  // its tag is not that of the answer
  ASSERT_TRUE(run([&] { return stack->counters().no_such_peer == 2; }));
  EXPECT_EQ(stack->peers().in_use(), 1u);  // kOutOfTheBlue: SCTP knows of none of these
  Octets stolen = other.echo(ack);
  const Octets own = other.echo(second);
  std::copy_n(own.begin() + 4, 4, stolen.begin() + 4);
  write_checksum(stolen);
  other.send(stolen);
  ASSERT_TRUE(run([&] { return stack->counters().bad_cookies == 1; }));
  EXPECT_EQ(stack->associations(), 0u);
  // Nor does one that was changed.
  Octets changed = one.echo(ack);
  changed[60] ^= std::byte{1};
  write_checksum(changed);
  one.send(changed);
  ASSERT_TRUE(run([&] { return stack->counters().bad_cookies == 2; }));
  EXPECT_EQ(stack->associations(), 0u);
  one.send(one.echo(ack));
  ASSERT_TRUE(run([&] { return passive.size() == 1; }));
  expect_service();
}

// An INIT and a cookie out of nothing, from an address that sees no answers.
TEST_F(SctpHostile, ForgedCookiesLeaveNothingInSctp) {
  open();
  RawPeer forged(io, listener->local());
  for (std::uint16_t port = 1; port <= 200; ++port) {
    forged.send(forged.init(port));
    forged.send(packet_of(port, kSctpPort, 4711u + port, chunk_of(10, 0, Octets(300))));
    if (port % 20 == 0) io.poll(), io.restart();
  }
  ASSERT_TRUE(run([&] { return stack->counters().no_such_peer == 200; }));
  if (in_time()) {
    EXPECT_EQ(stack->peers().asking(), 200u);
  }
  EXPECT_EQ(stack->peers().in_use(), 1u);
  EXPECT_EQ(stack->counters().bad_cookies, 0u);
  expect_service();
}

// Cookies that are no good, of peers that get their answers: their handles serve others.
TEST_F(SctpHostile, AddressesThatSctpKnowsServeAgain) {
  StackOptions options;
  options.max_associations = 3;
  options.max_asking = 5;
  open(options);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (std::size_t i = 0; i < 20; ++i) {
    peers.push_back(std::make_unique<RawPeer>(io, listener->local()));
    RawPeer& peer = *peers.back();
    peer.send(peer.init());
    Octets cookie = peer.echo(answer(peer));
    ASSERT_GT(cookie.size(), 60u);
    cookie[60] ^= std::byte{1};
    write_checksum(cookie);
    peer.send(cookie);
    ASSERT_TRUE(run([&] { return stack->counters().bad_cookies == i + 1; }));
  }
  EXPECT_LE(stack->peers().in_use(), 8u);
  EXPECT_EQ(stack->associations(), 0u);
  expect_service();
}

// Associations that come and go: what SCTP keeps of them has a bound, and rests.
TEST_F(SctpHostile, AddressesThatSctpKnowsHaveALimit) {
  StackOptions options;
  options.max_associations = 3;
  options.max_asking = 5;
  open(options);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (std::size_t i = 0; i < 12; ++i) {
    peers.push_back(std::make_unique<RawPeer>(io, listener->local()));
    RawPeer& peer = *peers.back();
    peer.send(peer.init());
    peer.send(peer.echo(answer(peer)));
    ASSERT_TRUE(run([&] { return passive.size() + stack->counters().no_such_peer == i + 1; }));
    if (passive.size() == i + 1) passive.back()->leave();
    ASSERT_TRUE(run([&] { return stack->associations() == 0; }));
  }
  EXPECT_LE(stack->peers().in_use(), 8u);
  if (in_time()) {                  // within the rest of the first
    EXPECT_EQ(passive.size(), 7u);  // and kOutOfTheBlue
  }
}

// SCTP's listeners have no address of their own: the UDP port decides which of them is meant.
TEST_F(SctpHostile, AListenerAnswersAtItsOwnUdpPortOnly) {
  open();
  const auto other = stack->listen({boost::asio::ip::make_address("127.0.0.1"), 0}, 6000, {}, [](const auto&) {});
  ASSERT_TRUE(other);
  RawPeer right(io, listener->local()), wrong(io, (*other)->local());
  right.send(right.init());
  const Octets cookie = right.echo(answer(right));
  ASSERT_FALSE(cookie.empty());
  wrong.send(wrong.init());
  wrong.send(cookie);
  ASSERT_TRUE(run([&] { return stack->counters().elsewhere == 2; }));
  run_for(50ms);
  EXPECT_TRUE(wrong.receive().empty());
  EXPECT_EQ(stack->counters().blue, 0u);
  EXPECT_EQ(stack->associations(), 0u);
  right.send(cookie);
  ASSERT_TRUE(run([&] { return passive.size() == 1; }));
}

TEST_F(SctpHostile, AssociationsHaveALimit) {
  StackOptions options;
  options.max_associations = 5;
  open(options);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(std::make_unique<RawPeer>(io, listener->local()));
    peers.back()->send(peers.back()->init());
    const Octets ack = answer(*peers.back());
    ASSERT_FALSE(ack.empty());
    peers.back()->send(peers.back()->echo(ack));
  }
  ASSERT_TRUE(run([&] { return stack->counters().no_such_peer == 3; }));
  EXPECT_EQ(stack->associations(), 5u);
  Hearer user;
  EXPECT_EQ(stack->connect(listener->local(), kSctpPort, {}, user).error().code, Errc::kResource);
  passive[0]->leave();
  passive[1]->leave();  // the honest one has both its ends here
  ASSERT_TRUE(run([&] { return stack->associations() == 3; }));
  expect_service();
}

TEST_F(SctpHostile, StrangersAreAnsweredWithinALimit) {
  StackOptions options;
  options.out_of_the_blue = 10;
  open(options);
  RawPeer peer(io, listener->local());
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) peer.send(packet_of(9, kSctpPort, 77, chunk_of(0, 3, Octets(20))));
  ASSERT_TRUE(run([&] { return stack->counters().packets >= 200; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const auto& seen = stack->counters();
  EXPECT_LE(static_cast<double>(seen.blue), 10 * (1 + took.count()) + 1);
  EXPECT_EQ(seen.blue + seen.blue_dropped, seen.packets);
  const Octets abort = answer(peer);
  ASSERT_GE(abort.size(), kMinPacketBytes);
  EXPECT_EQ(abort[12], std::byte{6});
  EXPECT_TRUE(has_good_checksum(abort));
}

// A parameter of no length in an INIT for an association that is there: usrsctp 0.9.5 never comes back from that one.
TEST_F(SctpHostile, AnInitForAKnownPeerGoesNowhere) {
  open();
  RawPeer peer(io, listener->local());
  peer.send(peer.init());
  peer.send(peer.echo(answer(peer)));
  ASSERT_TRUE(run([&] { return passive.size() == 1; }));
  Octets endless(20);
  endless[3] = std::byte{9};   // tag
  endless[6] = std::byte{99};  // window
  endless[9] = std::byte{1};
  endless[11] = std::byte{1};
  endless[16] = std::byte{0xC0};
  const std::uint64_t before = stack->counters().not_plain;
  peer.send(packet_of(7, kSctpPort, 0, chunk_of(1, 0, endless)));
  peer.send(peer.init());  // even one that is right
  ASSERT_TRUE(run([&] { return stack->counters().not_plain == before + 2; }));
  EXPECT_FALSE(passive_users[0]->end);
  expect_service();
}

// A peer with an association sends whatever it likes: chunks of every type, with lengths and values at random.
TEST_F(SctpHostile, RandomChunksOfAPeerHarmNobodyElse) {
  open();
  Hearer honest;
  const auto a = join(honest);
  Hearer& there = *passive_users[0];
  std::minstd_rand random(7);
  std::size_t rounds = 0;
  std::vector<std::unique_ptr<RawPeer>> peers;  // all to the end: a UDP port that serves again is that of a known peer
  for (; rounds < 60; ++rounds) {
    peers.push_back(std::make_unique<RawPeer>(io, listener->local()));
    RawPeer& peer = *peers.back();
    peer.send(peer.init());
    const Octets ack = answer(peer);
    ASSERT_FALSE(ack.empty());
    peer.send(peer.echo(ack));
    for (std::size_t i = 0; i < 40; ++i) {
      Octets chunks;
      for (std::size_t n = 1 + random() % 3; n > 0; --n) {
        Octets value(random() % 64);
        std::generate(value.begin(), value.end(),
                      [&] { return random() % 3 == 0 ? static_cast<std::byte>(random() >> 8) : std::byte{0}; });
        const unsigned kind = static_cast<unsigned>(random() >> 4) % 20;
        const unsigned type = kind < 16 ? kind : kind == 16 ? 0xC0 : kind == 17 ? 0xC1 : kind == 18 ? 0x80 : 0x82;
        if (type == 6 || type == 14) continue;
        Octets chunk = chunk_of(type, static_cast<unsigned>(random() >> 8) & 0xFF, value);
        if (random() % 8 == 0) chunk[3] = static_cast<std::byte>(random() >> 8);  // a length that lies
        chunks.insert(chunks.end(), chunk.begin(), chunk.end());
      }
      if (!chunks.empty()) peer.send(packet_of(7, kSctpPort, peer.tag, chunks));
      io.poll();
      io.restart();
    }
  }
  ASSERT_TRUE(*a->send(sctp::StreamId{1}, sctp::Ppid::kDdpSegment, true, octets("still here")));
  ASSERT_TRUE(run([&] { return there.got.size() == 1; }));
  EXPECT_GT(stack->counters().accepted, 30u);
  EXPECT_GT(stack->counters().not_plain, 100u);
}

TEST_F(SctpHostile, AMessageTooLongEndsTheAssociation) {
  open();
  RawPeer peer(io, listener->local());
  peer.send(peer.init());
  peer.send(peer.echo(answer(peer)));
  ASSERT_TRUE(run([&] { return passive_users.size() == 1 && passive_users[0]->up; }));
  for (std::uint32_t i = 0; i < 80 && !passive_users[0]->end; ++i) {
    Octets value;
    put32(value, 1 + i);
    put16(value, 1);
    put16(value, 0);
    put32(value, 16);
    value.resize(12 + 1000);
    peer.send(packet_of(7, kSctpPort, peer.tag, chunk_of(0, i == 0 ? 6 : 4, value)));  // unordered, never the last
    run_for(2ms);
  }
  ASSERT_TRUE(run([&] { return passive_users[0]->end.has_value(); }));
  EXPECT_EQ(passive_users[0]->end->code, Errc::kSessionSequence);
  expect_service();
}

}  // namespace
}  // namespace iwarp::sctp_cm
