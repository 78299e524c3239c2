// Segments of several messages in one stream, each within another: a peer may send them so, and iwarp never does.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using rdmap::Opcode;
using test::Bytes;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::tagged_segment;
using test::write_segment;

Bytes part(const Bytes& of, std::size_t first, std::size_t n) {
  const auto begin = of.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

class Interleaved : public ::testing::TestWithParam<bool> {};

TEST_P(Interleaved, UntaggedSegmentsWithinATaggedMessageAreAccepted) {
  COVERS("RFC5041-5.3-8");
  RawPeerOptions o;
  o.crc = GetParam();
  RawPeer p(o);
  auto& target = p.end.region(600, test::kRemoteAll);
  auto& receives = p.end.region(600);
  p.end.post(rdmap::RecvWr{1, receives.sge(0, 300)});
  p.end.post(rdmap::RecvWr{2, receives.sge(300, 300)});
  const Bytes written = pattern(300, 1), first = pattern(200, 2), second = pattern(50, 3);
  p.feed_ulpdu(write_segment(target.stag(), target.to(), part(written, 0, 100), false));
  p.feed_ulpdu(send_segment(part(first, 0, 120), {.msn = 1, .mo = 0, .last = false}));
  p.feed_ulpdu(write_segment(target.stag(), target.to(100), part(written, 100, 100), false));
  EXPECT_TRUE(p.end.recvs.empty()) << "its last segment has not come";
  p.feed_ulpdu(send_segment(part(first, 120, 80), {.msn = 1, .mo = 120}));
  p.feed_ulpdu(test::read_request_segment({Stag{5}, 0, 100, target.stag(), target.to()}));
  p.feed_ulpdu(send_segment(second, {.msn = 2}));
  p.feed_ulpdu(write_segment(target.stag(), target.to(200), part(written, 200, 100)));
  ASSERT_EQ(p.end.recvs.size(), 2U) << p.end.log();
  EXPECT_EQ(p.end.recvs[0].byte_len, 200U);
  EXPECT_EQ(p.end.recvs[1].byte_len, 50U);
  EXPECT_EQ(part(receives.bytes(), 0, 200), first);
  EXPECT_EQ(part(receives.bytes(), 300, 50), second);
  EXPECT_EQ(part(target.bytes(), 0, 300), written);
  EXPECT_EQ(p.end.conn().rx_counters().writes, 1U);
  const auto answers = p.ulpdus();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0], tagged_segment(Opcode::kReadResponse, Stag{5}, 0, part(written, 0, 100)));
  EXPECT_EQ(p.end.disconnected(), nullptr);
}

TEST_P(Interleaved, SegmentsOfASendWithinAReadResponseAreAccepted) {
  RawPeerOptions o;
  o.crc = GetParam();
  o.we_initiate = true;
  RawPeer p(o);
  auto& sink = p.end.region(200);
  auto& target = p.end.region(100, test::kRemoteAll);
  auto& receive = p.end.region(100);
  rdmap::SendWr read = test::send_wr(1, sink.all());
  read.op = rdmap::SendOp::kRead;
  read.remote_stag = Stag{0x700};
  p.end.post(read);
  p.end.post(rdmap::RecvWr{2, receive.all()});
  EXPECT_EQ(p.ulpdus().size(), 1U);
  const Bytes brought = pattern(200, 1), sent = pattern(100, 2), written = pattern(100, 3);
  p.feed_ulpdu(tagged_segment(Opcode::kReadResponse, sink.stag(), sink.to(), part(brought, 0, 90), false));
  p.feed_ulpdu(send_segment(part(sent, 0, 60), {.last = false}));
  p.feed_ulpdu(write_segment(target.stag(), target.to(), written));
  p.feed_ulpdu(tagged_segment(Opcode::kReadResponse, sink.stag(), sink.to(90), part(brought, 90, 110)));
  p.feed_ulpdu(send_segment(part(sent, 60, 40), {.mo = 60}));
  ASSERT_EQ(p.end.sends.size(), 1U) << p.end.log();
  EXPECT_EQ(p.end.sends[0].status, Errc::kOk);
  ASSERT_EQ(p.end.recvs.size(), 1U);
  EXPECT_EQ(sink.bytes(), brought);
  EXPECT_EQ(receive.bytes(), sent);
  EXPECT_EQ(target.bytes(), written);
}

// Whatever is posted or asked for while a message of many segments is on its way out, and however little TCP takes at a
// time.
TEST_P(Interleaved, IsNeverEmitted) {
  COVERS("RFC5041-5.3-2");
  RawPeerOptions o;
  o.crc = GetParam();
  o.we_initiate = true;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  auto& memory = p.end.region(20000, test::kRemoteAll);
  std::uint64_t id = 0;
  std::uint32_t requests = 0;
  const auto post_all = [&] {
    p.end.post(test::write_wr(++id, memory.all(), memory));
    p.end.post(test::send_wr(++id, memory.sge(0, 9000)));
    p.end.post({.wr_id = ++id, .op = rdmap::SendOp::kImmediate});
    p.end.post(test::read_wr(++id, memory.sge(0, 100), memory));
    p.feed_ulpdu(test::read_request_segment({Stag{5}, 0, 12000, memory.stag(), memory.to()}, ++requests));
  };
  post_all();
  for (int i = 0; i < 40; ++i) {
    p.drain(700);
    if (i % 10 == 5) post_all();
  }
  std::string messages;  // a letter for each, at its first segment
  bool inside = false;
  Bytes begun;
  for (const Bytes& u : p.ulpdus()) {
    const auto header = ddp::parse_segment_header(u);
    ASSERT_TRUE(header.ok());
    const auto* tagged = std::get_if<ddp::TaggedHeader>(&*header);
    const bool last = tagged != nullptr ? tagged->last : std::get<ddp::UntaggedHeader>(*header).last;
    if (inside) {
      ASSERT_EQ(u[1], begun[1]) << "within a message of another kind, behind " << messages;
    } else {
      messages += "WrRSIsiTdDaA"[std::to_integer<unsigned>(u[1]) & 0xF];
      begun = u;
    }
    inside = !last;
  }
  EXPECT_FALSE(inside);
  for (const char kind : {'W', 'S', 'd', 'r', 'R'})
    EXPECT_EQ(std::count(messages.begin(), messages.end(), kind), 5) << kind << " of " << messages;
}

INSTANTIATE_TEST_SUITE_P(Crc, Interleaved, ::testing::Bool(),
                         [](const auto& crc) { return std::string(crc.param ? "On" : "Off"); });

}  // namespace
}  // namespace iwarp::stream
