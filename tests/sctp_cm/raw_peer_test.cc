// What is in the packets of an association, seen by a peer that writes and reads them by hand.
#include <gmock/gmock.h>

#include <algorithm>

#include "iwarp/sctp_cm/sessions.h"
#include "tests/sctp_cm/raw_peer.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

using ::testing::SizeIs;

class SctpByHand : public SctpTransport {
 protected:
  void SetUp() override {
    start();
    listen();
    peer = std::make_unique<RawPeer>(io, listener->local());
    peer->send(peer->init());
    ASSERT_TRUE(run([&] { return !(init_ack = peer->receive()).empty(); }));
    peer->send(peer->echo(init_ack));
    ASSERT_TRUE(run([&] { return passive_users.size() == 1 && passive_users[0]->up; }));
  }
  // The next chunk of that type that comes.
  Octets await(unsigned type) {
    Octets chunk;
    EXPECT_TRUE(run([&] { return !(chunk = find_chunk(peer->receive(), type)).empty(); }, 10s));
    return chunk;
  }
  Octets init_ack;
  std::unique_ptr<RawPeer> peer;
};

TEST_F(SctpByHand, TheIndicationIsAParameterOfEightOctets) {
  COVERS("RFC5043-5.1-4");
  EXPECT_EQ(passive_users[0]->up->indication, 1u);  // RawPeer::init() has it so
  Octets parameter;
  put32(parameter, 0xC0060008);
  put32(parameter, 1);
  EXPECT_FALSE(std::ranges::search(init_ack, parameter).empty());
}

TEST_F(SctpByHand, APacketCarriesDataOfSeveralStreams) {
  COVERS("RFC5043-11.2-1");
  Octets chunks = RawPeer::data(1, 3, "one");
  const Octets second = RawPeer::data(2, 5, "two");
  chunks.insert(chunks.end(), second.begin(), second.end());
  peer->send_chunks(chunks);
  const auto& got = passive_users[0]->got;
  ASSERT_TRUE(run([&] { return got.size() == 2; }));
  EXPECT_EQ(got[0].stream, 3);
  EXPECT_EQ(got[0].octets, "one");
  EXPECT_EQ(got[1].stream, 5);
  EXPECT_EQ(got[1].octets, "two");
}

// That a part of a message of the peer's is missing says nothing of what was sent.
TEST_F(SctpByHand, AllHasArrivedWhateverThePeerHasBegun) {
  peer->send_chunks(RawPeer::data(2, 3, "the second half", false, true));
  await(3);
  ASSERT_TRUE(*passive[0]->send(sctp::StreamId{1}, sctp::Ppid::kDdpSegment, true, octets("away")));
  const Octets data = await(0);
  ASSERT_THAT(data, SizeIs(16 + 4));
  std::uint32_t tsn = 0;
  for (std::size_t i = 4; i < 8; ++i) tsn = tsn << 8 | std::to_integer<std::uint32_t>(data[i]);
  peer->send_chunks(RawPeer::sack(tsn));
  EXPECT_TRUE(run([&] { return passive_users[0]->all_arrived > 0; }, 10s));
}

}  // namespace
}  // namespace iwarp::sctp_cm
