#include "iwarp/rpcrdma/transport_header.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using test::Bytes;
using test::hex;
using test::Xdr;

Bytes encode(const Header& h) {
  Bytes out(h.encoded_size());
  EXPECT_EQ(h.write_to(out), out.size());
  return out;
}

ParsedHeader good(ConstBytes message) {
  ParseResult r = Header::parse(message);
  if (auto* e = std::get_if<ParseError>(&r)) {
    ADD_FAILURE() << e->why;
    return {};
  }
  return std::get<ParsedHeader>(std::move(r));
}

// Read segments at two Positions, an ordinary and an empty Write chunk, a Reply chunk.
Bytes full_message() {
  return hex(
      "00000012 00000001 00000020 00000000"                   // xid, vers, credit, RDMA_MSG
      "00000001 00000070 0000abcd 00000005 0000000100000002"  // P H L O
      "00000001 00000070 0000abce 00000003 0000000000000000"
      "00000001 00000100 0000abcf 00001000 ffffffffffffff00 00000000"
      "00000001 00000002 000000aa 00000010 0000000000001000 000000ab 00000000 0000000000002000"
      "00000001 00000000 00000000"
      "00000001 00000001 000000cc 00000400 0000000000003000");
}

TEST(TransportHeader, ReadsEveryField) {
  COVERS("RFC8166-4.1.2-1");
  COVERS("RFC8166-4.1.2-2");
  COVERS("RFC8166-4.1.2-3");
  COVERS("RFC8166-4.1.2-4");
  COVERS("RFC8166-4.1.2-5");
  COVERS("RFC8166-4.1.2-6");
  COVERS("RFC8166-4.1.2-14");
  COVERS("RFC8166-4.2-1");
  COVERS("RFC8166-4.3-1");
  COVERS("RFC8166-4.7-3");
  COVERS("RFC8166-4.7-4");
  COVERS("RFC8166-4.7-5");
  COVERS("RFC8166-4.7-6");
  COVERS("RFC8166-4.4.3-1");
  COVERS("RFC8166-2.3.2-1");
  COVERS("RFC8166-3.4.3-1");
  COVERS("RFC8166-4.7-1");
  COVERS("RFC8166-4.7-2");
  COVERS("RFC8166-3.4.6-1");
  COVERS("RFC8166-4.2-2");
  const Bytes message = full_message();
  const auto [h, payload] = good(message);
  EXPECT_EQ(h.xid, 0x12u);
  EXPECT_EQ(h.version, 1u);
  EXPECT_EQ(h.credits, 32u);
  EXPECT_EQ(h.proc, Proc::kMsg);
  ASSERT_EQ(h.read_list.size(), 3u);
  EXPECT_EQ(h.read_list[0], (ReadSegment{0x70, {Stag{0xabcd}, 5, 0x100000002}}));
  EXPECT_EQ(h.read_list[2], (ReadSegment{0x100, {Stag{0xabcf}, 0x1000, 0xffffffffffffff00}}));
  ASSERT_EQ(h.write_list.size(), 2u);
  EXPECT_EQ(h.write_list[0].segments, (SmallVector<Segment, 4>{{Stag{0xaa}, 16, 0x1000}, {Stag{0xab}, 0, 0x2000}}));
  EXPECT_TRUE(h.write_list[1].is_empty());
  ASSERT_TRUE(h.reply_chunk);
  EXPECT_EQ(h.reply_chunk->length(), 1024u);
  EXPECT_EQ(payload, message.size());
  EXPECT_EQ(encode(h), message);
}

TEST(TransportHeader, PayloadFollowsTheLists) {
  COVERS("RFC8166-4.2.4-1");
  COVERS("RFC8166-4.7-7");
  COVERS("RFC8166-3.2-1");
  const auto [h, payload] =
      good(hex("00000001 00000001 00000001 00000000 00000000 00000000 00000000 00000001 00000000"));
  EXPECT_EQ(payload, kMinHeaderBytes);
  EXPECT_FALSE(h.has_chunks());
  EXPECT_EQ(h.encoded_size(), kMinHeaderBytes);
}

TEST(TransportHeader, SumsChunkLengthsWithoutOverflow) {
  COVERS("RFC8166-3.4.4-2");
  COVERS("RFC8166-4.3.1-1");
  const auto [h, payload] = good(full_message());
  EXPECT_EQ(read_chunk_length(h.read_list, 0x70), 8u);  // segments of equal Position, odd lengths
  EXPECT_EQ(read_chunk_length(h.read_list, 0x100), 0x1000u);
  EXPECT_EQ(read_chunk_length(h.read_list, 4), 0u);
  WriteChunk huge;
  for (int i = 0; i < 3; ++i) huge.segments.push_back({Stag{1}, 0xffffffff, 0});
  EXPECT_EQ(huge.length(), 3 * std::uint64_t{0xffffffff});
}

TEST(TransportHeader, TellsEmptyChunksFromUnusedOnes) {
  COVERS("RFC8166-3.4.6-7");
  WriteChunk empty;
  WriteChunk unused;
  unused.segments.push_back({Stag{7}, 0, 64});
  EXPECT_TRUE(empty.is_empty());
  EXPECT_FALSE(unused.is_empty());
  EXPECT_EQ(empty.length(), unused.length());
  EXPECT_NE(empty, unused);
}

TEST(TransportHeader, RoundTripsHeadersOfEveryShape) {
  COVERS("RFC8166-4.2.4-5");
  COVERS("RFC8166-4.2.4-7");
  COVERS("RFC8166-4-1");
  COVERS("RFC8166-4.1.2-7");
  COVERS("RFC8166-4.3.2-1");
  std::mt19937_64 random(3);
  const auto segment = [&] {
    return Segment{Stag{static_cast<std::uint32_t>(random())}, static_cast<std::uint32_t>(random()), random()};
  };
  const auto chunk = [&] {
    WriteChunk c;
    for (auto n = random() % 9; n > 0; --n) c.segments.push_back(segment());
    return c;
  };
  for (int round = 0; round < 2000; ++round) {
    Header h;
    h.xid = static_cast<std::uint32_t>(random());
    h.credits = static_cast<std::uint32_t>(random());
    h.proc = random() % 2 == 0 ? Proc::kMsg : Proc::kNomsg;
    for (auto n = random() % 8; n > 0; --n)
      h.read_list.push_back({static_cast<std::uint32_t>(random() & ~3u), segment()});
    for (auto n = random() % 4; n > 0; --n) h.write_list.push_back(chunk());
    if (random() % 2 == 0) h.reply_chunk = chunk();
    if (!h.has_chunks()) h.proc = Proc::kMsg;
    const Bytes message = encode(h);
    EXPECT_EQ(good(message).header, h);
    Bytes small(message.size() - 1);
    EXPECT_EQ(h.write_to(small), 0u);
    for (std::size_t n = 0; n < message.size(); ++n) {
      EXPECT_TRUE(std::holds_alternative<ParseError>(Header::parse(ConstBytes(message).first(n)))) << n;
    }
  }
}

TEST(TransportHeader, HonoursLimitsBeforeStoring) {
  COVERS("RFC8267-6.4.2-6");
  const Bytes message = full_message();
  struct Row {
    Limits limits;
    bool fine;
  };
  for (const Row& r : {Row{{3, 2, 2}, true}, Row{{2, 2, 2}, false}, Row{{3, 1, 2}, false}, Row{{3, 2, 1}, false}}) {
    const ParseResult result = Header::parse(message, r.limits);
    EXPECT_EQ(std::holds_alternative<ParsedHeader>(result), r.fine);
    if (!r.fine) {
      EXPECT_EQ(std::get<ParseError>(result).answer, ParseError::Answer::kErrChunk);
    }
  }
}

TEST(TransportHeader, AcceptsWhatNfsServersMustAccept) {
  COVERS("RFC8267-6.4.2-2");
  COVERS("RFC8267-6.4.2-3");
  COVERS("RFC8267-6.4.2-4");
  COVERS("RFC8267-6.4.2-5");
  Header h;
  h.proc = Proc::kNomsg;
  for (std::uint32_t i = 0; i < 16; ++i) h.read_list.push_back({0, {Stag{i}, 100, 0}});
  for (std::uint32_t i = 0; i < 16; ++i) h.read_list.push_back({120, {Stag{i}, 100, 0}});
  WriteChunk chunk;
  for (std::uint32_t i = 0; i < 16; ++i) chunk.segments.push_back({Stag{i}, 4096, 0});
  h.write_list.push_back(chunk);
  h.reply_chunk = chunk;
  const Header parsed = good(encode(h)).header;
  EXPECT_EQ(parsed, h);
  EXPECT_FALSE(check_call(parsed));
}

TEST(TransportHeader, PrintsOneLine) {
  EXPECT_EQ(
      good(full_message()).header.to_string(),
      "RDMA_MSG(xid=0x12, vers=1, credits=32, reads=[112/0xabcd:5@0x100000002 112/0xabce:3@0x0 "
      "256/0xabcf:4096@0xffffffffffffff00], writes=[[0xaa:16@0x1000 0xab:0@0x2000] []], reply=[0xcc:1024@0x3000])");
  EXPECT_EQ(Header{}.to_string(), "RDMA_MSG(xid=0x0, vers=1, credits=0, reads=[], writes=[], reply=-)");
  EXPECT_EQ(make_err_vers(1, 7, 3).to_string(), "RDMA_ERROR(xid=0x1, vers=7, credits=3, ERR_VERS, low=1, high=1)");
  EXPECT_EQ(make_err_chunk(1, 1, 3).to_string(), "RDMA_ERROR(xid=0x1, vers=1, credits=3, ERR_CHUNK)");
}

TEST(TransportHeader, SurvivesMutationAndStaysStable) {
  std::mt19937 random(4);
  const Bytes message = full_message();
  int parsed = 0;
  for (int round = 0; round < 50000; ++round) {
    Bytes bad = message;
    for (auto n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % bad.size();
      bad[at] = random() % 2 == 0 ? static_cast<std::byte>(random()) : static_cast<std::byte>(random() % 3);
    }
    const ParseResult result = Header::parse(bad);
    if (const auto* ok = std::get_if<ParsedHeader>(&result)) {
      ++parsed;
      const Bytes again = encode(ok->header);
      EXPECT_EQ(good(again).header, ok->header);
    }
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace iwarp::rpcrdma
