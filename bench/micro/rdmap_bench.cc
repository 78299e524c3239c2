// RDMAP headers beyond those of DDP: the Read Request and the Terminate.
#include <benchmark/benchmark.h>

#include <array>

#include "iwarp/rdmap/read_request.h"
#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::rdmap {
namespace {

constexpr ReadRequest kRequest{Stag{0x12345678}, 4096, 65536, Stag{0x9abcdef0}, 8192};

void read_request_write(benchmark::State& state) {
  ReadRequest request = kRequest;
  std::array<std::byte, ReadRequest::kSize> out{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(request);
    request.write_to(out);
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(read_request_write)->Name("ReadRequestWrite");

void read_request_parse(benchmark::State& state) {
  std::array<std::byte, ReadRequest::kSize> bytes{};
  kRequest.write_to(bytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes);
    const auto request = ReadRequest::parse(bytes);
    if (request != kRequest) return state.SkipWithError("the request was not read as it was written");
  }
}
BENCHMARK(read_request_parse)->Name("ReadRequestParse");

// Of a Read Request that names an unknown STag: the longest there is.
TerminateMessage longest() {
  TerminateMessage m;
  m.code = {0, 1, 0};
  m.segment_length = 18 + 28;
  m.ddp_header_bytes = 18;
  m.has_rdmap_header = true;
  return m;
}

void terminate_write(benchmark::State& state) {
  TerminateMessage message = longest();
  std::array<std::byte, TerminateMessage::kMaxSize> out{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(message);
    message.write_to(out);
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(terminate_write)->Name("TerminateWrite");

void terminate_parse(benchmark::State& state) {
  std::array<std::byte, TerminateMessage::kMaxSize> bytes{};
  longest().write_to(bytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes);
    const auto message = TerminateMessage::parse(bytes);
    if (!message || !message->has_rdmap_header)
      return state.SkipWithError("the Terminate was not read as it was written");
  }
}
BENCHMARK(terminate_parse)->Name("TerminateParse");

}  // namespace
}  // namespace iwarp::rdmap
