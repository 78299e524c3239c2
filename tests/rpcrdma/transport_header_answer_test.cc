// Which answer a header that cannot be used is owed.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using Answer = ParseError::Answer;
using test::Bytes;
using test::Xdr;

constexpr std::uint32_t kXid = 0x01020304;

ParseError bad(const Bytes& message) {
  const ParseResult r = Header::parse(message);
  const auto* error = std::get_if<ParseError>(&r);
  EXPECT_NE(error, nullptr) << "parsed";
  return error != nullptr ? *error : ParseError{};
}

bool parses(const Bytes& message) {
  return std::holds_alternative<ParsedHeader>(Header::parse(message));
}

Xdr fixed(std::uint32_t version, std::uint32_t proc) {
  return Xdr().words({kXid, version, 10, proc});
}

TEST(TransportHeaderAnswer, DropsWhatIsShorterThan28Octets) {
  COVERS("RFC8166-4.5-2");
  const Bytes message = fixed(1, 0).words({0, 0, 0}).bytes();
  ASSERT_EQ(message.size(), kMinHeaderBytes);
  EXPECT_TRUE(parses(message));
  for (std::size_t n = 0; n < kMinHeaderBytes; ++n) {
    EXPECT_EQ(bad(Bytes(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(n))).answer, Answer::kDrop) << n;
  }
  EXPECT_EQ(bad(fixed(9, 0).words({0, 0}).bytes()).answer, Answer::kDrop);  // even of another version
}

TEST(TransportHeaderAnswer, ErrChunkOf20OctetsIsNotTooShort) {
  COVERS("RFC8166-4.1.2-9");
  COVERS("RFC8166-4.5-8");
  COVERS("RFC8166-4.1.2-11");
  COVERS("RFC8166-4.2.4-10");
  const Bytes message = fixed(1, 4).w(2).bytes();
  ASSERT_EQ(message.size(), kErrChunkBytes);
  const auto parsed = std::get<ParsedHeader>(Header::parse(message));
  EXPECT_EQ(parsed.header.proc, Proc::kError);
  EXPECT_EQ(parsed.header.error.code, HeaderError::kChunk);
  EXPECT_EQ(parsed.header.xid, kXid);
  // RFC 5666 peers append 32 octets.
  const Bytes old = fixed(1, 4).w(2).fill(32).bytes();
  ASSERT_EQ(old.size(), 52u);
  EXPECT_EQ(std::get<ParsedHeader>(Header::parse(old)).header, parsed.header);
}

TEST(TransportHeaderAnswer, ReadsErrVersOfAnyVersion) {
  COVERS("RFC8166-4.1.2-10");
  COVERS("RFC8166-7-2");
  for (const std::uint32_t version : {1u, 2u, 77u}) {
    const auto parsed = std::get<ParsedHeader>(Header::parse(fixed(version, 4).words({1, 2, 3}).bytes()));
    EXPECT_EQ(parsed.header.version, version);
    EXPECT_EQ(parsed.header.error, (ErrorBody{HeaderError::kVers, 2, 3}));
  }
}

TEST(TransportHeaderAnswer, DropsUndecodableErrors) {
  COVERS("RFC8166-4.5-10");
  COVERS("RFC8166-4.2.4-12");
  EXPECT_EQ(bad(fixed(1, 4).bytes()).answer, Answer::kDrop);
  EXPECT_EQ(bad(fixed(1, 4).words({1, 1}).bytes()).answer, Answer::kDrop);
  EXPECT_EQ(bad(fixed(1, 4).words({3, 1, 1}).bytes()).answer, Answer::kDrop);
  EXPECT_EQ(bad(fixed(1, 4).words({0, 1, 1}).bytes()).answer, Answer::kDrop);
  EXPECT_EQ(bad(fixed(2, 4).words({2, 1, 1}).bytes()).answer,
            Answer::kDrop);  // ERR_CHUNK may mean something else there
}

TEST(TransportHeaderAnswer, OwesErrVersToOtherVersions) {
  COVERS("RFC8166-4.5.1-1");
  COVERS("RFC8166-4.5-5");
  COVERS("RFC8166-4.5-6");
  COVERS("RFC8166-4.5-7");
  COVERS("RFC8166-4.2.2-1");
  COVERS("RFC8166-4.2-2");
  COVERS("RFC8166-7-1");
  for (const std::uint32_t version : {0u, 2u, 0xffffffffu}) {
    for (const std::uint32_t proc : {0u, 1u, 2u, 3u, 9u}) {
      const ParseError e = bad(fixed(version, proc).words({0, 0, 0}).bytes());
      EXPECT_EQ(e, (ParseError{Answer::kErrVers, kXid, version, ""}));
      const auto answer = make_answer(e, 32);
      ASSERT_TRUE(answer);
      Bytes out(answer->encoded_size());
      EXPECT_EQ(answer->write_to(out), kErrVersBytes);
      EXPECT_EQ(out, Xdr().words({kXid, version, 32, 4, 1, 1, 1}).bytes());
    }
  }
}

TEST(TransportHeaderAnswer, OwesErrChunkToMalformedLists) {
  COVERS("RFC8166-4.5.2-1");
  COVERS("RFC8166-4.5.2-2");
  COVERS("RFC8166-4.5.2-4");
  COVERS("RFC8166-4.1.2-12");
  COVERS("RFC8166-4.2.4-8");
  COVERS("RFC8166-4.6.1-2");
  COVERS("RFC8166-3.4.5-4");
  COVERS("RFC8166-4.2.4-4");
  struct Row {
    const char* what;
    Bytes message;
  };
  const Row rows[] = {
      {"unknown proc", fixed(1, 5).words({0, 0, 0}).bytes()},
      {"unknown proc", fixed(1, 0xffffffff).words({0, 0, 0}).bytes()},
      {"RDMA_MSGP", fixed(1, 2).words({0, 0, 0, 0, 0}).bytes()},
      {"RDMA_NOMSG without chunks", fixed(1, 1).words({0, 0, 0}).bytes()},
      {"read list discriminant 2", fixed(1, 0).words({2, 0, 0, 0, 0, 0, 0, 0, 0}).bytes()},
      {"write list discriminant 2", fixed(1, 0).words({0, 2, 0}).bytes()},
      {"reply chunk discriminant 2", fixed(1, 0).words({0, 0, 2}).bytes()},
      {"unaligned Position", fixed(1, 0).words({1, 2, 7, 4, 0, 0, 0, 0, 0}).bytes()},
      {"read segment cut", fixed(1, 0).words({1, 4, 7, 4}).bytes()},
      {"read list without end", fixed(1, 0).words({1, 4, 7, 4, 0, 0}).bytes()},
      {"write chunk without count", fixed(1, 0).words({0, 0, 1}).bytes()},
      {"more segments than octets", fixed(1, 0).words({0, 1, 2, 7, 4, 0, 0, 0, 0}).bytes()},
      {"huge count", fixed(1, 0).words({0, 1, 0xffffffff, 7, 4, 0, 0, 0, 0}).bytes()},
      {"count that overflows 32 bits", fixed(1, 0).words({0, 1, 0x10000000, 7, 4, 0, 0, 0, 0}).bytes()},
      {"huge reply chunk", fixed(1, 1).words({0, 0, 1, 0xffffffff}).bytes()},
      {"no reply chunk word", fixed(1, 0).words({0, 1, 0, 0}).bytes()},
  };
  for (const Row& r : rows) {
    EXPECT_EQ(bad(r.message), (ParseError{Answer::kErrChunk, kXid, 1, ""})) << r.what;
  }
  const auto answer = make_answer(bad(rows[0].message), 32);
  Bytes out(answer->encoded_size());
  EXPECT_EQ(answer->write_to(out), kErrChunkBytes);
  EXPECT_EQ(out, Xdr().words({kXid, 1, 32, 4, 2}).bytes());
}

TEST(TransportHeaderAnswer, DropsRdmaDone) {
  COVERS("RFC8166-4.6.2-2");
  COVERS("RFC8166-4.1.2-13");
  COVERS("RFC8166-4.2.4-3");
  for (const std::size_t more : {0u, 8u, 12u, 32u}) {
    const ParseError error = bad(fixed(1, 3).fill(more).bytes());
    EXPECT_EQ(error.answer, Answer::kDrop) << more;
    EXPECT_TRUE(error.done) << more;
    EXPECT_STREQ(error.why, "RDMA_DONE") << more;
  }
  EXPECT_EQ(make_answer(bad(fixed(1, 3).bytes()), 1), std::nullopt);
}

TEST(TransportHeaderAnswer, NeverWritesReservedProcedures) {
  COVERS("RFC8166-4.6.1-1");
  COVERS("RFC8166-4.6.2-1");
  COVERS("RFC8166-4.1.2-8");
  for (const Proc proc : {Proc::kMsgp, Proc::kDone}) {
    Header h;
    h.proc = proc;
    Bytes out(100);
    EXPECT_EQ(h.write_to(out), 0u);
    EXPECT_EQ(out, Bytes(100));
  }
}

TEST(TransportHeaderAnswer, BoundsEndlessLists) {
  Xdr reads = fixed(1, 0);
  for (int i = 0; i < 5000; ++i) reads.words({1, 4, 7, 4, 0, 0});
  EXPECT_EQ(bad(reads.words({0, 0, 0}).bytes()).answer, Answer::kErrChunk);
  Xdr writes = fixed(1, 0).w(0);
  for (int i = 0; i < 5000; ++i) writes.words({1, 0});
  EXPECT_EQ(bad(writes.words({0, 0}).bytes()).answer, Answer::kErrChunk);
}

Header nomsg() {
  Header h;
  h.xid = kXid;
  h.proc = Proc::kNomsg;
  return h;
}

WriteChunk chunk(std::uint32_t length) {
  WriteChunk c;
  c.segments.push_back({Stag{1}, length, 0});
  return c;
}

TEST(TransportHeaderAnswer, CallsNeedTheirPayloadInOnePlace) {
  COVERS("RFC8166-4.2.4-9");
  COVERS("RFC8166-3.5.3-3");
  Header h = nomsg();
  h.write_list.push_back(chunk(100));
  h.reply_chunk = chunk(100);
  EXPECT_EQ(check_call(h), (ParseError{Answer::kErrChunk, kXid, 1, ""}));
  h.read_list.push_back({4, {}});
  EXPECT_EQ(check_call(h).value().answer, Answer::kErrChunk);
  h.read_list.push_back({0, {}});
  EXPECT_EQ(check_call(h), std::nullopt);
  h.proc = Proc::kMsg;
  EXPECT_EQ(check_call(h).value().answer, Answer::kErrChunk);
  EXPECT_EQ(check_call(Header{}), std::nullopt);
  EXPECT_EQ(check_call(make_err_chunk(1, 1, 1)).value().answer, Answer::kDrop);
}

// The last octet may have the last offset.
TEST(TransportHeaderAnswer, TaggedOffsetsThatWrapAreBadCalls) {
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  struct Case {
    Segment segment;
    bool wraps;
  };
  for (const Case& c : {Case{{Stag{1}, 100, kEnd - 98}, true}, Case{{Stag{1}, 100, kEnd - 99}, false},
                        Case{{Stag{1}, 2, kEnd}, true}, Case{{Stag{1}, 1, kEnd}, false},
                        Case{{Stag{1}, 0, kEnd}, false}, Case{{Stag{1}, 0xFFFFFFFF, kEnd - 5}, true}}) {
    Header reads, writes, reply;
    reads.read_list = {{4, c.segment}};
    writes.write_list = {WriteChunk{{{Stag{1}, 1, 0}, c.segment}}};
    reply.reply_chunk = WriteChunk{{c.segment}};
    for (const Header& h : {reads, writes, reply}) {
      const auto error = check_call(h);
      EXPECT_EQ(error.has_value(), c.wraps) << h.to_string();
      if (error) {
        EXPECT_EQ(error->answer, Answer::kErrChunk);
      }
    }
  }
}

TEST(TransportHeaderAnswer, BadRepliesAreDropped) {
  COVERS("RFC8166-4.5-4");
  COVERS("RFC8166-4.3.1-3");
  COVERS("RFC8166-3.1-1");
  Header h;
  EXPECT_EQ(check_reply(h), std::nullopt);
  EXPECT_EQ(check_reply(make_err_vers(1, 1, 1)), std::nullopt);
  h.read_list.push_back({4, {}});
  EXPECT_EQ(check_reply(h).value().answer, Answer::kDrop);
  h = nomsg();
  h.write_list.push_back(chunk(100));
  EXPECT_EQ(check_reply(h).value().answer, Answer::kDrop);
  h.reply_chunk = chunk(0);
  EXPECT_EQ(check_reply(h).value().answer, Answer::kDrop);
  h.reply_chunk = chunk(1);
  EXPECT_EQ(check_reply(h), std::nullopt);
}

TEST(TransportHeaderAnswer, XidMustBeThatOfThePayload) {
  COVERS("RFC8166-4.5.2-3");
  COVERS("RFC8166-4.2.1-1");
  Header h;
  h.xid = kXid;
  EXPECT_TRUE(xid_matches(h, Xdr().words({kXid, 0}).bytes()));
  EXPECT_FALSE(xid_matches(h, Xdr().words({kXid + 1, 0}).bytes()));
  EXPECT_FALSE(xid_matches(h, {}));
}

}  // namespace
}  // namespace iwarp::rpcrdma
