// DDP headers, and the look-up of an STag that every tagged segment needs.
#include <benchmark/benchmark.h>

#include <random>

#include "iwarp/ddp/segment_header.h"
#include "iwarp/ddp/stag_table.h"

namespace iwarp::ddp {
namespace {

template <class Header>
void header_write(benchmark::State& state) {
  Header header;
  std::array<std::byte, Header::kSize> out{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(header);
    header.write_to(out);
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(header_write<TaggedHeader>)->Name("TaggedHeaderWrite");
BENCHMARK(header_write<UntaggedHeader>)->Name("UntaggedHeaderWrite");

template <class Header>
void header_parse(benchmark::State& state) {
  std::array<std::byte, Header::kSize> bytes{};
  Header{}.write_to(bytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes);
    const auto header = parse_segment_header(bytes);
    if (!header.ok()) return state.SkipWithError("the header was not accepted");
  }
}
BENCHMARK(header_parse<TaggedHeader>)->Name("TaggedHeaderParse");
BENCHMARK(header_parse<UntaggedHeader>)->Name("UntaggedHeaderParse");

// Checks access and bounds and holds the memory, as for each segment placed; among so many registrations.
void stag_lookup(benchmark::State& state) {
  StagTable table;
  std::mt19937_64 random(5041);
  std::vector<std::byte> memory(4096);
  const StreamKey who{PdId{1}, StreamId{1}};
  std::vector<Stag> stags;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    const Registration r{memory, 0, who.pd, StreamId::kAny, Access::kLocalWrite | Access::kRemoteWrite};
    stags.push_back(table.register_memory(r, random()).value());
  }
  std::shuffle(stags.begin(), stags.end(), random);
  std::size_t next = 0;
  for (auto _ : state) {
    const auto result = table.pin(stags[next], who, Access::kRemoteWrite, 128, 1024);
    if (!result.ok) return state.SkipWithError("the STag was not found");
    if (++next == stags.size()) next = 0;
  }
  for (const Stag stag : stags) {
    table.invalidate(stag);
    table.release(stag);
  }
}
BENCHMARK(stag_lookup)->Name("StagLookup")->Arg(1)->Arg(1000)->Arg(100000);

}  // namespace
}  // namespace iwarp::ddp
