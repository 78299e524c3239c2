// What headers of the draft of 2005 (draft-ietf-nfsv4-rpcrdma-01) have beyond version 1 of RFC 8166.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using Answer = ParseError::Answer;
using iwarp::test::Xdr;

constexpr std::uint32_t kXid = 0x01020304;
constexpr Dialect kDialect{.draft_2005 = true};
constexpr Limits kLimits{.dialect = kDialect};

Xdr fixed(std::uint32_t proc) {
  return Xdr().words({kXid, 1, 10, proc});
}

ParsedHeader good(const Bytes& message) {
  return parsed(message, kLimits);
}

Bytes as_in_2005(Header h) {
  h.draft_2005 = true;
  return encode(h);
}

// Every message of section 4, word by word.
TEST(TransportHeader2005, LayoutOfMessages) {
  COVERS("D2005-2-1");
  COVERS("D2005-3.4-11");
  COVERS("D2005-3.4-12");
  COVERS("D2005-3.4-14");
  COVERS("D2005-3.4-16");
  COVERS("D2005-3.4-17");
  COVERS("D2005-4.1-1");
  COVERS("D2005-4.1-3");
  COVERS("D2005-4.1-6");
  COVERS("D2005-4.1-7");
  COVERS("D2005-4.1-12");
  COVERS("D2005-4.1-13");
  COVERS("D2005-4.1-15");
  COVERS("D2005-4.2-1");
  COVERS("D2005-4.2-2");
  COVERS("D2005-4.2-3");
  COVERS("D2005-4.2-4");
  COVERS("D2005-4.2-5");
  COVERS("D2005-4.2-6");
  COVERS("D2005-4.2-9");
  COVERS("D2005-4.2-10");
  for (const std::uint32_t proc : {0u, 1u}) {
    const Bytes head = fixed(proc)
                           .words({1, 112, 0xFFFFFFFF, 5})
                           .d(0xFEDCBA9876543210)  // two Read segments of one Position
                           .words({1, 112, 8, 6})
                           .d(9)
                           .words({0, 1, 2, 0x70, 100})
                           .d(1)  // a Write chunk of two segments
                           .words({0x71, 200})
                           .d(2)
                           .words({0, 1, 1, 0x72, 300})
                           .d(3)  // a Reply chunk of one
                           .bytes();
    const auto [h, payload] = good(Xdr(head).words({kXid, 0}).bytes());
    EXPECT_EQ(h.xid, kXid);
    EXPECT_EQ(h.version, kVersion1);
    EXPECT_EQ(h.credits, 10u);
    EXPECT_EQ(h.proc, proc == 0 ? Proc::kMsg : Proc::kNomsg);
    EXPECT_EQ(h.read_list, (ReadList{{112, {Stag{0xFFFFFFFF}, 5, 0xFEDCBA9876543210}}, {112, {Stag{8}, 6, 9}}}));
    ASSERT_EQ(h.write_list.size(), 1u);
    EXPECT_EQ(h.write_list[0].segments, (SmallVector<Segment, 4>{{Stag{0x70}, 100, 1}, {Stag{0x71}, 200, 2}}));
    EXPECT_EQ(h.reply_chunk, (WriteChunk{{{Stag{0x72}, 300, 3}}}));
    EXPECT_EQ(as_in_2005(h), head);
    EXPECT_EQ(payload, head.size());
  }
  // Lists that are not there: one zero word each, and the whole message behind.
  const Bytes plain = fixed(0).words({0, 0, 0, kXid, 0}).bytes();
  const auto [h, payload] = good(plain);
  EXPECT_FALSE(h.has_chunks());
  EXPECT_EQ(payload, kMinHeaderBytes);
  EXPECT_TRUE(xid_matches(h, ConstBytes(plain).subspan(payload)));
  EXPECT_FALSE(xid_matches(h, ConstBytes(plain).subspan(payload + 4)));
}

TEST(TransportHeader2005, OtherVersionsAndKindsAreAnswered) {
  COVERS("D2005-4.1-10");
  COVERS("D2005-4.1-11");
  COVERS("D2005-4.2-7");
  COVERS("D2005-4.2-8");
  COVERS("D2005-5.3-1");
  COVERS("D2005-5.3-2");
  COVERS("D2005-5.3-3");
  COVERS("D2005-5.3-4");
  COVERS("D2005-5.3-5");
  const auto bad = [](const Bytes& message) { return std::get<ParseError>(Header::parse(message, kLimits)); };
  // The first four words are the same in all versions.
  const ParseError version = bad(Xdr().words({kXid, 9, 10, 0, 0, 0, 0}).bytes());
  EXPECT_EQ(version, (ParseError{Answer::kErrVers, kXid, 9, ""}));
  EXPECT_EQ(as_in_2005(make_answer(version, 10, kDialect).value()), Xdr().words({kXid, 9, 10, 4, 1, 1, 1}).bytes());
  // Of any version it can be read.
  EXPECT_EQ(good(Xdr().words({kXid, 7, 10, 4, 1, 2, 3}).bytes()).header.error, (ErrorBody{HeaderError::kVers, 2, 3}));
  // No such kind; a list that ends too early.
  EXPECT_EQ(bad(fixed(6).words({0, 0, 0}).bytes()), (ParseError{Answer::kErrChunk, kXid, 1, ""}));
  EXPECT_EQ(bad(fixed(0).words({1, 0, 0}).bytes()), (ParseError{Answer::kErrChunk, kXid, 1, ""}));
}

TEST(TransportHeader2005, PaddedMessagesSayHow) {
  COVERS("D2005-4.1-8");
  COVERS("D2005-4.1-14");
  COVERS("D2005-4.2-11");
  COVERS("D2005-3.5-3");
  const Bytes head = fixed(2).words({512, 100}).words({1, 0x70, 7, 5, 0, 9, 0}).words({0, 0}).bytes();
  const auto [h, payload] = good(Xdr(head).words({kXid, 0}).bytes());
  EXPECT_EQ(h.proc, Proc::kMsgp);
  EXPECT_EQ(h.padding, (Padding{512, 100}));
  EXPECT_EQ(h.read_list.size(), 1u);
  EXPECT_EQ(payload, head.size());
  EXPECT_EQ(as_in_2005(h), head);
  EXPECT_EQ(check_call(h), std::nullopt);
  EXPECT_EQ(
      h.to_string(),
      "RDMA_MSGP(xid=0x1020304, vers=1, credits=10, align=512, thresh=100, reads=[112/0x7:5@0x9], writes=[], reply=-)");
}

TEST(TransportHeader2005, CutPaddedMessagesAreErrors) {
  const Bytes fine = fixed(2).words({512, 100, 0, 0, 0}).bytes();
  good(fine);
  for (std::size_t n = 0; n < fine.size(); ++n) {
    const ParseResult r = Header::parse(ConstBytes(fine).first(n), kLimits);
    ASSERT_TRUE(std::holds_alternative<ParseError>(r)) << n;
    EXPECT_EQ(std::get<ParseError>(r).answer, n < kMinHeaderBytes ? Answer::kDrop : Answer::kErrChunk) << n;
  }
}

TEST(TransportHeader2005, DoneIsAMessageOf16Octets) {
  COVERS("D2005-3.8-5");
  COVERS("D2005-4.1-9");
  COVERS("D2005-4.1-16");
  const Bytes message = fixed(3).bytes();
  const auto [h, payload] = good(message);
  EXPECT_EQ(h.proc, Proc::kDone);
  EXPECT_EQ(payload, message.size());
  EXPECT_EQ(as_in_2005(h), message);
  EXPECT_EQ(h.to_string(), "RDMA_DONE(xid=0x1020304, vers=1, credits=10)");
  EXPECT_EQ(check_call(h).value().answer, Answer::kDrop);
  EXPECT_EQ(check_reply(h, kDialect).value().answer, Answer::kDrop);
}

TEST(TransportHeader2005, ErrChunkHas32OctetsMore) {
  COVERS("D2005-4.2-12");
  COVERS("D2005-4.2-13");
  const auto answer = make_answer({Answer::kErrChunk, kXid, 1, ""}, 10, kDialect);
  ASSERT_TRUE(answer);
  const Bytes message = as_in_2005(*answer);
  EXPECT_EQ(message, fixed(4).w(2).raw(Bytes(32)).bytes());
  EXPECT_EQ(good(message).header.error.code, HeaderError::kChunk);
  const auto version = make_answer({Answer::kErrVers, kXid, 9, ""}, 10, kDialect);
  EXPECT_EQ(as_in_2005(version.value()).size(), kErrVersBytes);
}

TEST(TransportHeader2005, RepliesMayHaveReadChunks) {
  COVERS("D2005-5.1-3");
  COVERS("D2005-5.2-3");
  COVERS("D2005-3.4-6");
  Header h;
  h.read_list.push_back({4, {}});
  EXPECT_EQ(check_reply(h, kDialect), std::nullopt);
  EXPECT_EQ(check_reply(h).value().answer, Answer::kDrop);
  h.proc = Proc::kNomsg;
  EXPECT_EQ(check_reply(h, kDialect).value().answer, Answer::kDrop);  // no RPC message anywhere
  h.read_list.push_back({0, {Stag{1}, 100, 0}});
  EXPECT_EQ(check_reply(h, kDialect), std::nullopt);
  h.reply_chunk.emplace().segments.push_back({Stag{2}, 100, 0});
  EXPECT_EQ(check_reply(h, kDialect).value().answer, Answer::kDrop);  // in two places
  h.reply_chunk->segments[0].length = 0;
  EXPECT_EQ(check_reply(h, kDialect), std::nullopt);
  h.proc = Proc::kMsg;
  EXPECT_EQ(check_reply(h, kDialect).value().answer, Answer::kDrop);
  h.version = kVersion2;
  h.read_list = {{4, {}}};
  EXPECT_EQ(check_reply(h, {.version_2 = true, .draft_2005 = true}).value().answer, Answer::kDrop);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
