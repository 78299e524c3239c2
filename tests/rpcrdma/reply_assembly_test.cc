// join_reply(): a Reply and the data that came into Write chunks.
#include "iwarp/rpcrdma/reply_assembly.h"

#include "tests/rpcrdma/rpc_samples.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

// COMPOUND of READs, its Reply with so many octets for each, and what of it goes in line.
struct Reads {
  explicit Reads(const std::vector<std::uint32_t>& sizes, std::uint32_t room = 400) {
    auto c = iwarp::test::compound_call(static_cast<std::uint32_t>(sizes.size()));
    whole = words({iwarp::test::kTestXid, 1, 0, 0, 0, 0, 0, 0, static_cast<std::uint32_t>(sizes.size())});
    rest = whole;
    std::size_t at = 0;
    for (const std::uint32_t size : sizes) {
      c.words({25, 1, 2, 3, 4, 0, 0, room});
      const Bytes head = words({25, 0, 1, size});
      data.push_back(pattern(size, size));
      Bytes padded = data.back();
      padded.resize((size + 3) / 4 * 4);
      whole = whole + head + padded;
      rest = rest + head;
      at += kGap;
      chunks.push_back({{at, room}, size});
      at += room;
    }
    memory.resize(at + kGap, std::byte{0xEE});
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::copy(data[i].begin(), data[i].end(), memory.begin() + static_cast<std::ptrdiff_t>(chunks[i].room.offset));
    }
    binding = ResultBinding::for_call(c.bytes());
  }
  std::optional<Bytes> join() {
    const auto range = join_reply(memory, chunks, binding, rest);
    if (!range) return std::nullopt;
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(range->offset);
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(range->length));
  }

  static constexpr std::size_t kGap = 128;
  Bytes whole, rest, memory;
  std::vector<Bytes> data;
  std::vector<WrittenChunk> chunks;
  ResultBinding binding;
};

TEST(ReplyAssembly, DataStandWhereTheyBelong) {
  COVERS("RFC8166-3.4.6.1-1");
  COVERS("RFC8166-4.3.2.1-1");
  COVERS("RFC8166-4.3.2.1-4");
  for (const auto& sizes : {std::vector<std::uint32_t>{400},
                            {399},
                            {398},
                            {397},
                            {1},
                            {400, 400},
                            {1, 399},
                            {399, 1},
                            {7, 400, 13},
                            {400, 400, 400, 400}}) {
    Reads r(sizes);
    EXPECT_EQ(r.join(), r.whole) << sizes[0] << ' ' << sizes.size();
  }
}

TEST(ReplyAssembly, TheFirstItemIsNotMoved) {
  Reads r({400});
  const auto range = join_reply(r.memory, r.chunks, r.binding, r.rest);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->offset + r.rest.size(), r.chunks[0].room.offset);
}

TEST(ReplyAssembly, ChunksMayStayUnusedWhereThereAreNoData) {
  COVERS("RFC8166-4.3.2.2-5");
  Reads r({0, 0});
  EXPECT_EQ(r.join(), r.whole);
  // The n-th chunk for the n-th result, or, as Linux does it, for the n-th with data.
  Reads second({0, 100});
  EXPECT_EQ(second.join(), second.whole);
  Reads shifted({0, 100});
  std::copy_n(shifted.memory.begin() + static_cast<std::ptrdiff_t>(shifted.chunks[1].room.offset), 100,
              shifted.memory.begin() + static_cast<std::ptrdiff_t>(shifted.chunks[0].room.offset));
  shifted.chunks[0].written = 100;
  shifted.chunks[1].written = 0;
  EXPECT_EQ(shifted.join(), shifted.whole);
}

TEST(ReplyAssembly, APaddedItemIsTaken) {
  Reads r({101});
  r.chunks[0].written = 104;
  EXPECT_EQ(r.join(), r.whole);
}

TEST(ReplyAssembly, ChunksThatDoNotGoWithTheReplyAreRefused) {
  COVERS("RFC8166-6.1-11");
  for (const std::uint32_t written : {1u, 99u, 102u, 400u}) {
    Reads r({100});
    r.chunks[0].written = written;
    EXPECT_EQ(r.join(), std::nullopt) << written;
  }
  Reads in_line({100});  // though there was a chunk
  in_line.chunks[0].written = 0;
  in_line.rest = in_line.whole;
  EXPECT_EQ(in_line.join(), std::nullopt);
  Reads no_data({0});
  no_data.chunks[0].written = 4;
  EXPECT_EQ(no_data.join(), std::nullopt);
  Reads error({100});
  error.rest = words({iwarp::test::kTestXid, 1, 0, 0, 0, 0, 5, 0, 0});
  EXPECT_EQ(error.join(), std::nullopt);  // data that belong to nothing
  error.chunks[0].written = 0;
  EXPECT_EQ(error.join(), error.rest);
}

TEST(ReplyAssembly, GapsThatAreTooSmallAreNoticed) {
  Reads head({100});
  head.rest = words({iwarp::test::kTestXid, 1, 0, 0, 0, 0, 0}) + opaque(pattern(200)) + words({1, 25, 0, 1, 100});
  EXPECT_EQ(head.join(), std::nullopt);
  Reads tail({100});
  tail.rest = tail.rest + Bytes(600);
  EXPECT_EQ(tail.join(), std::nullopt);
  Reads between({400, 400});
  between.chunks[1].room.offset -= 127;
  EXPECT_EQ(between.join(), std::nullopt);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
