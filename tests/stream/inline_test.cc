// Inline requests: the octets are copied when they are posted, from memory that nobody registered.
#include <gtest/gtest.h>

#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;

// Of memory that is not registered.
rdmap::Sge plain(Bytes& of, std::size_t offset, std::size_t length) {
  return {of.data() + offset, static_cast<std::uint32_t>(length), Stag{0xBAD}};
}
rdmap::SendWr inlined(rdmap::SendWr wr) {
  wr.inline_data = true;
  return wr;
}

TEST(Inline, TheMemoryMayChangeAtOnce) {
  for (const bool crc : {true, false}) {
    for (const auto markers : {mpa::Policy::Markers::kServe, mpa::Policy::Markers::kAsk}) {
      PairOptions o;
      o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
      o.initiator_policy.markers = o.responder_policy.markers = markers;
      o.initiator.max_inline = 5000;
      o.initiator.rfc7306 = o.responder.rfc7306 = true;
      Pair p(o);
      p.to_responder.max_write_bytes = 700;  // FPDUs leave in parts
      auto& inbox = p.responder.region(20000, test::kRemoteAll);
      constexpr std::size_t kSizes[] = {1, 256, 257, 5000};
      std::uint64_t id = 0;
      for (const std::size_t size : kSizes) p.responder.post(rdmap::RecvWr{++id, inbox.sge(1000 * id, size)});
      p.responder.post(rdmap::RecvWr{++id});
      // Before the connection is there: nothing can have been sent.
      id = 0;
      for (const std::size_t size : kSizes) {
        Bytes octets = pattern(size, static_cast<unsigned>(size));
        p.initiator.post(inlined(test::send_wr(++id, test::list({plain(octets, 0, size / 2), plain(octets, 0, 0),
                                                                 plain(octets, size / 2, size - size / 2)}))));
        std::fill(octets.begin(), octets.end(), std::byte{0xEE});
      }
      {
        Bytes octets = pattern(3000, 77);
        rdmap::SendWr write = inlined(test::write_wr(++id, plain(octets, 0, 3000), inbox, 17000));
        p.initiator.post(write);
        octets = pattern(10, 99);
        write = inlined(test::write_wr(++id, plain(octets, 0, 10), inbox));
        write.op = rdmap::SendOp::kWriteImmediate;
        p.initiator.post(write);
      }
      p.establish();
      p.settle();
      ASSERT_EQ(p.responder.recvs.size(), 5U) << p.log();
      ASSERT_EQ(p.initiator.sends.size(), 6U);
      for (const auto& c : p.initiator.sends) EXPECT_EQ(c.status, Errc::kOk);
      id = 0;
      for (const std::size_t size : kSizes) {
        ++id;
        EXPECT_EQ(p.responder.recvs[id - 1].byte_len, size);
        EXPECT_TRUE(std::equal(inbox.bytes().begin() + static_cast<std::ptrdiff_t>(1000 * id),
                               inbox.bytes().begin() + static_cast<std::ptrdiff_t>(1000 * id + size),
                               pattern(size, static_cast<unsigned>(size)).begin()))
            << size;
      }
      EXPECT_TRUE(std::equal(inbox.bytes().begin() + 17000, inbox.bytes().end(), pattern(3000, 77).begin()));
      EXPECT_TRUE(std::equal(inbox.bytes().begin(), inbox.bytes().begin() + 10, pattern(10, 99).begin()));
    }
  }
}

TEST(Inline, IsRefusedBeyondItsLimitAndForOtherOperations) {
  RawPeerOptions o;
  o.we_initiate = true;
  o.stream.max_inline = 100;
  RawPeer p(o);
  Bytes octets(200);
  const auto refused = [&](const rdmap::SendWr& wr) {
    const auto ok = p.end.conn().post_send(wr);
    return !ok && ok.error().code == Errc::kInvalidArgument;
  };
  const auto& remote = p.end.region(10);
  EXPECT_TRUE(refused(inlined(test::send_wr(1, test::list({plain(octets, 0, 100), plain(octets, 100, 1)})))));
  EXPECT_FALSE(refused(inlined(test::send_wr(1, plain(octets, 0, 100)))));
  EXPECT_TRUE(refused(inlined(test::read_wr(1, plain(octets, 0, 1), remote))));
  rdmap::SendWr wr = inlined({.op = rdmap::SendOp::kLocalInvalidate, .local_stag = remote.stag()});
  EXPECT_TRUE(refused(wr));
  RawPeer off;
  EXPECT_FALSE(off.end.conn().post_send(inlined(test::send_wr(1, plain(octets, 0, 1))))) << "off unless asked for";
  EXPECT_TRUE(off.end.conn().post_send(inlined(test::send_wr(1, plain(octets, 0, 0)))));
}

// What is left of a message is copied aside before the work is flushed and its copy is given back.
TEST(Inline, TheRestOfAnFpduOutlivesItsRequest) {
  RawPeerOptions o;
  o.we_initiate = true;
  o.stream.max_inline = 1000;
  RawPeer p(o);
  Bytes octets = pattern(1000, 5);
  p.end.post(inlined(test::send_wr(1, plain(octets, 0, 1000))));
  octets.assign(1000, std::byte{});
  EXPECT_EQ(p.drain(500), 500U);
  p.feed_ulpdu(test::write_segment(Stag{0xBAD}, 0, pattern(8)));
  ASSERT_EQ(p.end.sends.size(), 1U);
  EXPECT_EQ(p.end.sends[0].status, Errc::kFlushed);
  const auto ulpdus = p.ulpdus();
  ASSERT_EQ(ulpdus.size(), 2U) << "the Send, which cannot be taken back, and the Terminate";
  EXPECT_EQ(ulpdus[0], test::send_segment(pattern(1000, 5)));
}

}  // namespace
}  // namespace iwarp::stream
