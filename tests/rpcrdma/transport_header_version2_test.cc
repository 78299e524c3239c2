// Headers of version 2 (draft-cel-nfsv4-rpcrdma-version-two-00 section 4).
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using Answer = ParseError::Answer;
using iwarp::test::pattern;
using iwarp::test::Xdr;

constexpr std::uint32_t kXid = 0x01020304;
constexpr Limits kLimits{.dialect = {.version_2 = true}};

Xdr fixed(std::uint32_t proc, std::uint32_t version = 2) {
  return Xdr().words({kXid, version, 10, proc});
}

ParsedHeader good(const Bytes& message) {
  return parsed(message, kLimits);
}

ParseError bad(const Bytes& message) {
  const ParseResult r = Header::parse(message, kLimits);
  const auto* error = std::get_if<ParseError>(&r);
  EXPECT_NE(error, nullptr) << "parsed";
  return error != nullptr ? *error : ParseError{};
}

TEST(TransportHeaderVersion2, BothVersionsAreRead) {
  COVERS("V2-1-1");
  COVERS("V2-4.2-13");
  COVERS("V2-4.2-14");
  COVERS("V2-4.2-16");
  for (const std::uint32_t version : {1u, 2u}) {
    const Bytes message = fixed(0, version).words({0, 0, 0, kXid, 0}).bytes();
    const auto [h, payload] = good(message);
    EXPECT_EQ(h.version, version);
    EXPECT_EQ(payload, kMinHeaderBytes);
    Bytes again = encode(h);
    EXPECT_EQ(again, Bytes(message.begin(), message.begin() + kMinHeaderBytes));
  }
}

TEST(TransportHeaderVersion2, OptionsAreReadWithWhatFollowsThem) {
  COVERS("V2-3.1-4");
  COVERS("V2-4.2-10");
  COVERS("V2-4.2-15");
  for (std::size_t n = 0; n < 9; ++n) {
    const Bytes head = fixed(5).w(77).opaque(n).bytes();
    const auto [h, payload] = good(Xdr(head).words({1, 2, 3}).bytes());
    EXPECT_EQ(h.proc, Proc::kOptional);
    EXPECT_EQ(h.option.type, 77u);
    EXPECT_EQ(h.option.info, pattern(n, 1));
    EXPECT_EQ(payload, head.size());
    EXPECT_EQ(encode(h), head);
    EXPECT_EQ(good(head).payload_offset, head.size());
  }
}

TEST(TransportHeaderVersion2, MalformedOptionsAreBadHeaders) {
  const Bytes fine = fixed(5).w(77).opaque(5).bytes();
  for (std::size_t n = 16; n < fine.size(); ++n) {
    EXPECT_EQ(bad(Bytes(fine.begin(), fine.begin() + static_cast<std::ptrdiff_t>(n))).answer, Answer::kErrChunk) << n;
  }
  EXPECT_EQ(bad(fixed(5).words({77, 0xFFFFFFFF, 0}).bytes()).answer, Answer::kErrChunk);
  EXPECT_EQ(bad(fixed(5).words({77, 0xFFFFFFFC, 0}).bytes()).answer, Answer::kErrChunk);
}

TEST(TransportHeaderVersion2, OptionsAreOfVersion2Only) {
  EXPECT_EQ(bad(fixed(5, 1).words({77, 0, 0, 0}).bytes()).answer, Answer::kErrChunk);
  Header h;
  h.proc = Proc::kOptional;
  Bytes out(100);
  EXPECT_EQ(h.write_to(out), 0u);
  EXPECT_EQ(out, Bytes(100));
}

TEST(TransportHeaderVersion2, ErrorsHaveTheirCodes) {
  COVERS("V2-4.2-7");
  COVERS("V2-4.2-8");
  COVERS("V2-4.2-9");
  COVERS("V2-3.1-5");
  const auto option = make_inval_option(kXid, 10);
  EXPECT_EQ(encode(option), fixed(4).w(3).bytes());
  EXPECT_EQ(good(encode(option)).header, option);
  EXPECT_EQ(option.to_string(), "RDMA_ERROR(xid=0x1020304, vers=2, credits=10, INVAL_OPTION)");
  const auto header = make_err_chunk(kXid, 2, 10);
  EXPECT_EQ(encode(header), fixed(4).w(2).bytes());
  EXPECT_EQ(good(encode(header)).header, header);
  EXPECT_EQ(header.to_string(), "RDMA_ERROR(xid=0x1020304, vers=2, credits=10, BAD_HEADER)");
  const auto version = good(fixed(4).words({1, 1, 3}).bytes()).header;
  EXPECT_EQ(version.error, (ErrorBody{HeaderError::kVers, 1, 3}));
}

TEST(TransportHeaderVersion2, UnknownErrorsAreDropped) {
  EXPECT_EQ(bad(fixed(4).w(4).bytes()).answer, Answer::kDrop);
  EXPECT_EQ(bad(fixed(4).w(0).bytes()).answer, Answer::kDrop);
  EXPECT_EQ(bad(fixed(4, 1).w(3).bytes()).answer, Answer::kDrop);  // of version 2 only
  EXPECT_EQ(bad(fixed(4, 3).w(2).bytes()).answer, Answer::kDrop);
}

TEST(TransportHeaderVersion2, OtherVersionsGetTheRange) {
  COVERS("V2-3-1");
  COVERS("V2-5.2-1");
  for (const std::uint32_t version : {0u, 3u, 0xFFFFFFFFu}) {
    const auto answer = make_answer(bad(fixed(0, version).words({0, 0, 0}).bytes()), 10, kLimits.dialect);
    ASSERT_TRUE(answer);
    EXPECT_EQ(encode(*answer), Xdr().words({kXid, version, 10, 4, 1, 1, 2}).bytes());
  }
}

TEST(TransportHeaderVersion2, ReservedProceduresStayReserved) {
  COVERS("V2-4.2-11");
  EXPECT_EQ(bad(fixed(2).words({0, 0, 0, 0, 0}).bytes()), (ParseError{Answer::kErrChunk, kXid, 2, ""}));
  const ParseError done = bad(fixed(3).bytes());
  EXPECT_EQ(done.answer, Answer::kDrop);
  EXPECT_TRUE(done.done);
  const Limits with_2005{.dialect = {.version_2 = true, .draft_2005 = true}};
  const Bytes padded = fixed(2).words({0, 0, 0, 0, 0}).bytes();
  EXPECT_TRUE(std::holds_alternative<ParseError>(Header::parse(padded, with_2005)));
}

TEST(TransportHeaderVersion2, OptionsAreNeitherCallNorReply) {
  const auto h = good(fixed(5).w(77).opaque(0).bytes()).header;
  EXPECT_EQ(check_call(h).value().answer, Answer::kDrop);
  EXPECT_EQ(check_reply(h).value().answer, Answer::kDrop);
  EXPECT_EQ(h.to_string(), "RDMA_OPTIONAL(xid=0x1020304, vers=2, credits=10, type=77, info=0 octets)");
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
