// RPC-over-RDMA version 1 headers: a small Call, and an NFS READ that offers a Write chunk and a Reply chunk.
#include <benchmark/benchmark.h>

#include <array>

#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {
namespace {

Header made(bool chunks) {
  Header h;
  h.xid = 0x1234;
  h.credits = 128;
  if (!chunks) return h;
  WriteChunk data;
  for (std::uint32_t i = 0; i < 4; ++i) (void)data.segments.push_back({Stag{i + 1}, 262144, i * std::uint64_t{262144}});
  (void)h.write_list.push_back(data);
  h.reply_chunk.emplace();
  (void)h.reply_chunk->segments.push_back({Stag{9}, 4240, 0});
  return h;
}

void header_write(benchmark::State& state) {
  const Header h = made(state.range(0) != 0);
  std::array<std::byte, 1024> out{};
  for (auto _ : state) benchmark::DoNotOptimize(h.write_to(out));
}
BENCHMARK(header_write)->Name("RpcRdmaHeaderWrite")->ArgName("chunks")->Arg(0)->Arg(1);

void header_parse(benchmark::State& state) {
  std::array<std::byte, 1024> out{};
  const ConstBytes message = ConstBytes(out).first(made(state.range(0) != 0).write_to(out));
  for (auto _ : state) {
    const auto result = Header::parse(message);
    if (!std::holds_alternative<ParsedHeader>(result)) return state.SkipWithError("the header was not accepted");
  }
}
BENCHMARK(header_parse)->Name("RpcRdmaHeaderParse")->ArgName("chunks")->Arg(0)->Arg(1);

}  // namespace
}  // namespace iwarp::rpcrdma
