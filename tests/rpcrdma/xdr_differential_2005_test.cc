// Our codecs of the draft of 2005 against XDR code that rpcgen makes from its text: the transport header with
// RDMA_MSGP, RDMA_DONE and Read chunks in Replies, and CONFIG_RDMA. Both ways: what rpcgen encodes is parsed and
// encoded alike, and what we encode rpcgen decodes and encodes alike.
#include <gtest/gtest.h>

#include <random>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/oracle_values.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using test::Bytes;
using test::generate;
using test::octets;
using test::recode;

constexpr Dialect k2005{.draft_2005 = true};
constexpr Limits kAll{1000, 1000, 1000, k2005};
constexpr std::uint32_t kChunk = 2;  // rpc_rdma_errcode

Bytes encoded(Header header) {
  header.draft_2005 = true;
  Bytes out(header.encoded_size());
  EXPECT_EQ(header.write_to(out), out.size());
  return out;
}

// What the draft says of a Reply: nothing comes with a Position-Zero chunk but RDMA_NOMSG, and that either there or in
// the Reply chunk.
bool may_be_reply(const Header& h) {
  if (h.proc == Proc::kError) return true;
  if (h.proc == Proc::kDone) return false;
  bool whole_read = false;
  for (const ReadSegment& s : h.read_list) whole_read |= s.position == 0;
  const bool whole_written = h.reply_chunk && h.reply_chunk->length() > 0;
  return h.proc == Proc::kNomsg ? whole_read != whole_written : !whole_read;
}

TEST(XdrDifferential2005, HeadersThatRpcgenMakesAreParsedAndEncodedAlike) {
  COVERS("D2005-4.2-6");
  COVERS("D2005-4.2-7");
  COVERS("D2005-4.2-8");
  COVERS("D2005-4.2-9");
  COVERS("D2005-4.2-10");
  COVERS("D2005-4.2-11");
  COVERS("D2005-4.2-12");
  COVERS("D2005-4.2-13");
  int parsed[5] = {}, replies_to_read = 0;
  for (std::uint32_t seed = 0; seed < 40'000; ++seed) {
    const std::uint32_t proc = seed % 5;
    std::vector<std::uint32_t> forced{seed, 1, 128, proc};
    if (proc == 4) {
      forced.push_back(1 + seed / 5 % 2);
      if (forced.back() == kChunk)
        forced.insert(forced.end(), 8, 0);  // rdma_extra: we send zeros, and do not look at it
    }
    const Bytes message = generate(ORACLE_HEADER2005, seed, forced);
    if (message.empty()) continue;
    const ParseResult result = Header::parse(message, kAll);
    if (const auto* error = std::get_if<ParseError>(&result)) {  // of rules beyond XDR there are these
      const std::string why = error->why;
      EXPECT_TRUE(why.find("multiple of 4") != why.npos || why.find("without any chunk") != why.npos ||
                  message.size() < kMinHeaderBytes)
          << why;
      continue;
    }
    const auto& [header, offset] = std::get<ParsedHeader>(result);
    EXPECT_EQ(offset, message.size());
    EXPECT_EQ(encoded(header), message);
    EXPECT_EQ(!check_reply(header, k2005), may_be_reply(header));
    if (!header.read_list.empty() && may_be_reply(header)) {
      EXPECT_TRUE(check_reply(header)) << "none in RFC 8166";
      ++replies_to_read;
    }
    ++parsed[proc];
  }
  for (const int n : parsed) EXPECT_GT(n, 1000);
  EXPECT_GT(replies_to_read, 300);
}

// A header of ours with words of any value.
Header random_header(std::mt19937& random) {
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  const auto segment = [&] { return Segment{Stag{word()}, word(), std::uint64_t{word()} << 32 | word()}; };
  const auto chunk = [&] {
    WriteChunk out;
    for (auto n = random() % 4; n > 0; --n) out.segments.push_back(segment());
    return out;
  };
  Header h;
  h.xid = word();
  h.credits = word();
  h.draft_2005 = true;
  h.proc = static_cast<Proc>(random() % 5);
  if (h.proc == Proc::kError) {
    h.error = {random() % 2 == 0 ? HeaderError::kVers : HeaderError::kChunk};
    if (h.error.code == HeaderError::kVers) h.error = {HeaderError::kVers, word(), word()};
  }
  if (h.proc == Proc::kError || h.proc == Proc::kDone) return h;
  if (h.proc == Proc::kMsgp) h.padding = {word(), word()};
  for (auto n = random() % 4 + (h.proc == Proc::kNomsg ? 1 : 0); n > 0; --n)
    h.read_list.push_back({word() & ~3u, segment()});
  for (auto n = random() % 3; n > 0; --n) h.write_list.push_back(chunk());
  if (random() % 2 == 0) h.reply_chunk = chunk();
  return h;
}

TEST(XdrDifferential2005, HeadersThatWeMakeAreDecodedAndEncodedAlike) {
  std::mt19937 random(2005);
  for (int round = 0; round < 20'000; ++round) {
    Header h = random_header(random);
    const Bytes message = encoded(h);
    std::size_t used = 0;
    ASSERT_EQ(recode(ORACLE_HEADER2005, message, used), message) << h.to_string();
    EXPECT_EQ(used, message.size());
    const ParseResult back = Header::parse(message, kAll);
    h.draft_2005 = false;  // is of what is sent
    ASSERT_TRUE(std::holds_alternative<ParsedHeader>(back)) << std::get<ParseError>(back).why << ' ' << h.to_string();
    EXPECT_EQ(std::get<ParsedHeader>(back).header, h);
  }
}

TEST(XdrDifferential2005, RandomWordsAreJudgedAlike) {
  std::mt19937 random(1);
  constexpr std::uint32_t kWords[] = {0, 0, 0, 0, 1, 1, 1, 2, 4, 8, 0xffffffff};
  int both = 0;
  for (int round = 0; round < 100'000; ++round) {
    Bytes message(16 + 4 * (3 + random() % 24));
    const auto put = [&](std::size_t at, std::uint32_t v) {
      store_be<std::uint32_t>(MutBytes(message).subspan(at), v);
    };
    put(0, 7);
    put(4, 1);
    put(8, 3);
    put(12, static_cast<std::uint32_t>(random() % 5));
    for (std::size_t at = 16; at < message.size(); at += 4) put(at, kWords[random() % std::size(kWords)]);
    std::size_t used = 0;
    const Bytes theirs = recode(ORACLE_HEADER2005, message, used);
    const ParseResult result = Header::parse(message, Limits{.dialect = k2005});
    if (const auto* ours = std::get_if<ParsedHeader>(&result)) {
      const Bytes mine = encoded(ours->header);
      if (ours->header.proc == Proc::kError) {  // whose rdma_extra may be anything, or missing
        EXPECT_TRUE(theirs.empty() || std::equal(mine.begin(), mine.begin() + kErrChunkBytes, theirs.begin()));
      } else {
        EXPECT_EQ(mine, theirs);
      }
      ++both;
      continue;
    }
    const std::string why = std::get<ParseError>(result).why;
    const bool beyond = why.find("multiple of 4") != why.npos || why.find("without any chunk") != why.npos ||
                        why.find("discriminant") != why.npos;
    EXPECT_TRUE(beyond || theirs.empty()) << why << ' ' << test::to_hex(message);
  }
  EXPECT_GT(both, 5000);
}

TEST(XdrDifferential2005, ConfigurationsAreCodedAlike) {
  COVERS("D2005-6.2-10");
  COVERS("D2005-6.2-11");
  std::mt19937 random(6);
  for (int round = 0; round < 5000; ++round) {
    Bytes message(12);
    for (std::byte& b : message) b = static_cast<std::byte>(random());
    std::size_t used = 0;
    const auto request = ConfigRequest::parse(message);
    ASSERT_TRUE(request);
    EXPECT_EQ(recode(ORACLE_CONFIG_REQUEST, message, used), message);
    EXPECT_EQ(used, message.size());
    const auto ours = request->encode();
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), message.begin(), message.end()));
    const auto answer = ConfigReply::parse(message);
    ASSERT_TRUE(answer);
    EXPECT_EQ(recode(ORACLE_CONFIG_REPLY, message, used), message);
    const auto ours_again = answer->encode();
    EXPECT_TRUE(std::equal(ours_again.begin(), ours_again.end(), message.begin(), message.end()));
    // Neither takes less.
    const std::size_t cut = random() % 12;
    const Bytes shorter(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(cut));
    EXPECT_TRUE(recode(ORACLE_CONFIG_REQUEST, shorter, used).empty());
    EXPECT_FALSE(ConfigRequest::parse(shorter));
    EXPECT_FALSE(ConfigReply::parse(shorter));
  }
}

// Whole messages: the Call of our client and the Reply of our server are what libtirpc makes, and each end takes the
// other's.
TEST(XdrDifferential2005, MessagesOfConfigRdmaAreThoseOfLibtirpc) {
  COVERS("D2005-6.2-1");
  COVERS("D2005-6.2-12");
  std::mt19937 random(12);
  const auto any = [&] { return kDefaultInlineBytes + static_cast<std::uint32_t>(random() % 1'000'000); };
  for (int round = 0; round < 2000; ++round) {
    const auto xid = static_cast<std::uint32_t>(random());
    const ConfigLimits client_limits{
        .call_bytes = any(), .reply_bytes = any(), .incoming_reads = static_cast<std::uint32_t>(random() % 300)};
    const ConfigLimits server_limits{.call_bytes = any(),
                                     .incoming_reads = static_cast<std::uint32_t>(random() % 300),
                                     .align = std::uint32_t{8} << random() % 14};
    ConfigClient client(client_limits);
    const ConfigMessage call = client.call(xid);
    Bytes theirs(200);
    const std::uint32_t request[] = {client_limits.call_bytes, client_limits.reply_bytes, client_limits.incoming_reads};
    theirs.resize(oracle_config_call(xid, request, octets(theirs), theirs.size()));
    ASSERT_EQ(Bytes(call.bytes().begin(), call.bytes().end()), theirs);

    ConfigServer server(server_limits);
    const auto reply = server.on_call(theirs);
    ASSERT_TRUE(reply);
    EXPECT_TRUE(server.configured());
    const std::uint32_t answer[] = {server_limits.call_bytes, server_limits.align, server_limits.incoming_reads};
    theirs.resize(200);
    theirs.resize(oracle_config_reply(xid, answer, octets(theirs), theirs.size()));
    ASSERT_EQ(Bytes(reply->bytes().begin(), reply->bytes().end()), theirs);
    ASSERT_TRUE(client.on_reply(theirs));
    EXPECT_EQ(client.state(), ConfigClient::State::kConfigured);
    EXPECT_EQ(client.answer(), (ConfigReply{answer[0], answer[1], answer[2]}));
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma
