// Our codecs against XDR code that rpcgen makes from the specifications' own text.
#include <gtest/gtest.h>

#include <random>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/reply_bounds.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/oracle_values.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using test::Bytes;
using test::generate;
using test::octets;
using test::recode;
using test::Xdr;

// Whether it parses; then it is encoded as it was. Beyond XDR are two rules only.
bool codes_as_rpcgen(const Bytes& message, const Limits& limits) {
  const ParseResult result = Header::parse(message, limits);
  if (const auto* error = std::get_if<ParseError>(&result)) {
    const std::string why = error->why;
    EXPECT_TRUE(why.find("multiple of 4") != why.npos || why.find("without any chunk") != why.npos) << why;
    return false;
  }
  const auto& [header, offset] = std::get<ParsedHeader>(result);
  EXPECT_EQ(offset, message.size());
  Bytes out(header.encoded_size());
  EXPECT_EQ(header.write_to(out), out.size());
  EXPECT_EQ(out, message);
  return true;
}

TEST(XdrDifferential, HeadersThatRpcgenMakesAreParsedAndEncodedAlike) {
  int parsed = 0;
  for (std::uint32_t seed = 0; seed < 20000; ++seed) {
    const Bytes message = generate(ORACLE_HEADER, seed, {seed, 1, 128, seed % 2});
    if (message.size() < kMinHeaderBytes) continue;
    if (codes_as_rpcgen(message, {1000, 1000, 1000})) ++parsed;
  }
  EXPECT_GT(parsed, 1000);
}

TEST(XdrDifferential, HeadersOfVersion2AreParsedAndEncodedAlike) {
  COVERS("V2-4.2-1");
  COVERS("V2-4.2-2");
  COVERS("V2-4.2-3");
  COVERS("V2-4.2-4");
  COVERS("V2-4.2-5");
  COVERS("V2-4.2-6");
  COVERS("V2-4.2-7");
  COVERS("V2-4.2-8");
  COVERS("V2-4.2-9");
  COVERS("V2-4.2-10");
  COVERS("V2-4.2-12");
  COVERS("V2-4.2-13");
  int parsed[4] = {};
  for (std::uint32_t seed = 0; seed < 40000; ++seed) {
    constexpr std::uint32_t kProcs[] = {0, 1, 5, 4};
    const std::uint32_t proc = kProcs[seed % 4];
    std::vector<std::uint32_t> forced{seed, 2, 128, proc};
    if (proc == 4) forced.push_back(1 + seed / 4 % 3);  // rdma_err: others are not of this version
    const Bytes message = generate(ORACLE_HEADER2, seed, forced);
    if (message.empty()) continue;
    if (codes_as_rpcgen(message, {1000, 1000, 1000, {.version_2 = true}})) ++parsed[seed % 4];
  }
  for (const int n : parsed) EXPECT_GT(n, 1000);
}

TEST(XdrDifferential, RandomWordsAreJudgedAlike) {
  std::mt19937 random(6);
  constexpr std::uint32_t kWords[] = {0, 0, 0, 1, 1, 1, 2, 3, 4, 8, 0xffffffff};
  int both[2] = {};
  for (int round = 0; round < 200000; ++round) {
    const std::uint32_t version = 1 + round % 2;
    Xdr x;
    const std::uint32_t proc = std::uint32_t(random() % (version == 1 ? 5 : 6));
    x.words({7, version, 3, proc});
    // rpcgen allocates what the length of an option says, before it looks whether so much is there.
    const std::size_t words = std::size(kWords) - (proc == 5 ? 1 : 0);
    for (auto n = 3 + random() % 24; n > 0; --n) x.w(kWords[random() % words]);
    const Bytes& message = x.bytes();
    std::size_t used = 0;
    const Bytes theirs = recode(version == 1 ? ORACLE_HEADER : ORACLE_HEADER2, message, used);
    const ParseResult result = Header::parse(message, Limits{.dialect = {.version_2 = true}});
    if (const auto* ours = std::get_if<ParsedHeader>(&result)) {
      Bytes out(ours->header.encoded_size());
      EXPECT_EQ(ours->header.write_to(out), out.size());
      EXPECT_EQ(out, theirs);
      ++both[round % 2];
      continue;
    }
    // rpcgen also reads other words than 1 as "present"; our sender never needs that leniency. The rest are rules
    // beyond XDR.
    const std::string why = std::get<ParseError>(result).why;
    const bool beyond = why.find("multiple of 4") != why.npos || why.find("without any chunk") != why.npos ||
                        why.find("discriminant") != why.npos || why.find("RDMA_DONE") != why.npos ||
                        why.find("RDMA_MSGP") != why.npos;
    if (!beyond) {
      EXPECT_TRUE(theirs.empty()) << why << ' ' << test::to_hex(message);
    }
  }
  for (const int n : both) EXPECT_GT(n, 1000);
}

constexpr std::uint32_t kCreate = 6;
constexpr std::uint32_t kRead = 25;
constexpr std::uint32_t kReadlink = 27;
constexpr std::uint32_t kWrite = 38;
constexpr std::uint32_t kCreateSession = 43;
constexpr std::uint32_t kLastOp = 71;
constexpr int kValuesPerOp = 200;

// Runs `check` on values of one operation until enough were valid.
template <class Check>
void for_values(oracle_type type, const std::vector<std::uint32_t>& forced, Check check) {
  int valid = 0;
  for (std::uint32_t seed = 0; seed < 60 * kValuesPerOp && valid < kValuesPerOp; ++seed) {
    const Bytes value = generate(type, seed, forced);
    if (value.empty()) continue;
    ++valid;
    check(value);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "value " << test::to_hex(value);
      return;
    }
  }
  EXPECT_GE(valid, 20) << "the generator found too few valid values";
}

TEST(XdrDifferential, ArgumentsOfEveryOperationAreSteppedOver) {
  for (std::uint32_t op = 3; op <= kLastOp; ++op) {
    SCOPED_TRACE(op);
    for_values(ORACLE_ARGOP, {op}, [op](const Bytes& value) {
      // The operation, then a WRITE and a READ that must be found where they are.
      Xdr call = test::compound_call(3, 2).raw(value);
      call.w(kWrite).fill(16).d(5).w(2).opaque(3);
      const std::size_t data_end = call.size();
      call.w(kRead).fill(16).d(5).w(777);

      const bool own_item = op == kWrite || (op == kCreate && value[7] == std::byte{5});
      ArgumentWalker walker(call.bytes());
      std::optional<DdpItem> item = walker.next();
      if (own_item) item = walker.next();
      ASSERT_TRUE(item);
      EXPECT_EQ(item->offset + 4, data_end);
      EXPECT_EQ(item->length, 3u);
      EXPECT_EQ(walker.next(), std::nullopt);

      const auto binding = ResultBinding::for_call(call.bytes());
      const std::size_t own_result = op == kRead || op == kReadlink ? 1 : 0;
      ASSERT_EQ(binding.max_items(), 1 + own_result);
      EXPECT_EQ(binding.expectation(own_result).max_bytes, 777u);
    });
  }
}

TEST(XdrDifferential, ResultsOfEveryOperationAreSteppedOver) {
  const auto binding = ResultBinding::for_call(test::compound_call(2).w(kReadlink).w(kReadlink).bytes());
  ASSERT_EQ(binding.max_items(), 2u);
  for (std::uint32_t op = 3; op <= kLastOp; ++op) {
    SCOPED_TRACE(op);
    for_values(ORACLE_RESOP, {op, 0}, [op, &binding](const Bytes& value) {
      const Bytes reply = test::compound_reply(2).raw(value).words({kRead, 0, 1}).opaque(5).bytes();
      const DdpItems items = binding.items(reply);
      const std::size_t own = op == kRead || op == kReadlink ? 1 : 0;
      ASSERT_EQ(items.size(), 1 + own);
      EXPECT_EQ(items[own].offset + 8, reply.size());
      EXPECT_EQ(items[own].length, 5u);
    });
  }
}

// Whatever rpcgen's types allow as result of an operation, of NFS4_OK and of the statuses with a body of their own.
TEST(XdrDifferential, ResultsStayWithinTheirBounds) {
  constexpr std::uint32_t kDenied = 10010, kInUse = 10017, kNoRequirements = 10090;
  int bounded = 0;
  for (std::uint32_t op = 3; op <= kLastOp; ++op) {
    SCOPED_TRACE(op);
    std::optional<std::size_t> bound;
    for_values(ORACLE_ARGOP, {op}, [&](const Bytes& value) {
      // Attributes apart, no argument matters: the lowest bound counts.
      const auto one = reply_bound(test::compound_call(1, 2).raw(value).bytes());
      if (one) bound = std::min(bound.value_or(SIZE_MAX), *one);
    });
    if (!bound || op == kRead) continue;
    ++bounded;
    for (const std::uint32_t status : {0u, kDenied, kInUse, kNoRequirements, 5u}) {
      for (std::uint32_t seed = 0; seed < 2000; ++seed) {
        const Bytes value = generate(ORACLE_RESOP, seed, {op, status});
        EXPECT_LE(test::compound_reply(1).size() + value.size(), *bound) << status;
      }
    }
  }
  EXPECT_GE(bounded, 46);
}

TEST(XdrDifferential, BackChannelIsClampedInEveryCreateSession) {
  const auto clamped = [](std::uint32_t v) { return std::min(v, 2u); };
  for_values(ORACLE_ARGOP, {kCreateSession}, [&](const Bytes& value) {
    std::uint32_t before[3], after[3];
    ASSERT_TRUE(oracle_back_channel(octets(value), value.size(), before));
    const Xdr head = test::compound_call(1);
    Bytes call = Xdr(head).raw(value).bytes();
    ASSERT_TRUE(clamp_back_channel(call, 2));
    const Bytes edited(call.begin() + static_cast<std::ptrdiff_t>(head.size()), call.end());
    ASSERT_TRUE(oracle_back_channel(octets(edited), edited.size(), after));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(after[i], clamped(before[i]));
  });
}

TEST(XdrDifferential, Version3ItemsEndTheirMessages) {
  const auto read = ResultBinding::for_call(test::nfs_call(3, 6).opaque(20).d(0).w(100).bytes());
  const auto readlink = ResultBinding::for_call(test::nfs_call(3, 5).opaque(20).bytes());
  const auto expect_at_end = [](const DdpItem& item, std::size_t size) {
    EXPECT_TRUE(item.in_message);
    EXPECT_EQ(item.offset + item.padded_length(), size);
  };
  for_values(ORACLE_V3_READ_RESULT, {0}, [&](const Bytes& value) {
    const Bytes reply = test::nfs_reply().raw(value).bytes();
    ASSERT_EQ(read.items(reply).size(), 1u);
    expect_at_end(read.items(reply)[0], reply.size());
  });
  for_values(ORACLE_V3_READLINK_RESULT, {0}, [&](const Bytes& value) {
    const Bytes reply = test::nfs_reply().raw(value).bytes();
    ASSERT_EQ(readlink.items(reply).size(), 1u);
    expect_at_end(readlink.items(reply)[0], reply.size());
  });
  for (const auto& [type, procedure] : {std::pair{ORACLE_V3_WRITE_ARGS, 7u}, std::pair{ORACLE_V3_SYMLINK_ARGS, 10u}}) {
    for_values(type, {}, [&, p = procedure](const Bytes& value) {
      const Bytes call = test::nfs_call(3, p).raw(value).bytes();
      const auto item = ArgumentWalker(call).next();
      ASSERT_TRUE(item);
      expect_at_end(*item, call.size());
    });
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma
