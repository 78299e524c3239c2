// CRC-32C, FPDUs and startup frames written and read.
#include <benchmark/benchmark.h>

#include <vector>

#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/startup_frame.h"

namespace iwarp::mpa {
namespace {

constexpr std::size_t kHeaderBytes = 14;  // of a tagged DDP segment

std::vector<std::byte> octets(std::size_t n) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i * 31);
  return out;
}

void count_bytes(benchmark::State& state, std::size_t each) {
  state.SetBytesProcessed(static_cast<std::int64_t>(each) * state.iterations());
}

template <std::uint32_t (*Crc)(ConstBytes)>
void crc(benchmark::State& state) {
  const auto bytes = octets(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(Crc(bytes));
  count_bytes(state, bytes.size());
}
BENCHMARK(crc<crc32c>)->Name("Crc")->Arg(64)->Arg(1448)->Arg(65536);
BENCHMARK(crc<crc32c_portable>)->Name("CrcPortable")->Arg(64)->Arg(1448)->Arg(65536);

// One FPDU as it is sent: length and header written, the payload left where it is, the trailer made.
void fpdu_encode(benchmark::State& state) {
  const auto payload = octets(static_cast<std::size_t>(state.range(0)));
  const bool crc_enabled = state.range(1) != 0;
  const std::vector<ConstBytes> pieces{payload};
  std::array<std::byte, kLengthBytes + kHeaderBytes> head{};
  for (auto _ : state) {
    write_length(std::span(head).first<kLengthBytes>(), kHeaderBytes + payload.size());
    benchmark::DoNotOptimize(make_trailer(head, pieces, crc_enabled));
  }
  count_bytes(state, payload.size());
}
BENCHMARK(fpdu_encode)->Name("FpduEncode")->ArgNames({"payload", "crc"})->ArgsProduct({{64, 1434, 32768}, {0, 1}});

void fpdu_decode(benchmark::State& state) {
  const std::size_t ulpdu = kHeaderBytes + static_cast<std::size_t>(state.range(0));
  const bool crc_enabled = state.range(1) != 0;
  auto fpdu = octets(kLengthBytes + ulpdu);
  write_length(std::span(fpdu).first<kLengthBytes>(), ulpdu);
  const FpduTrailer trailer = make_trailer(fpdu, {}, crc_enabled);
  fpdu.insert(fpdu.end(), trailer.view().begin(), trailer.view().end());
  FpduDecoder decoder(crc_enabled);
  for (auto _ : state) {
    const DecodeResult result = decoder.decode(fpdu);
    if (!std::holds_alternative<FpduFrame>(result)) return state.SkipWithError("the FPDU was not accepted");
  }
  count_bytes(state, ulpdu - kHeaderBytes);
}
BENCHMARK(fpdu_decode)->Name("FpduDecode")->ArgNames({"payload", "crc"})->ArgsProduct({{64, 1434, 32768}, {0, 1}});

// With the private data of an NFS/RDMA client (RFC 8797).
StartupFrame request(ConstBytes private_data) {
  StartupFrame f;
  f.crc = f.enhanced = true;
  f.enhanced_data = {.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 32, .ord = 32};
  f.private_data = private_data;
  return f;
}

void startup_frame_write(benchmark::State& state) {
  const auto private_data = octets(8);
  StartupFrame frame = request(private_data);
  std::vector<std::byte> out(frame.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(frame);
    frame.write_to(out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(startup_frame_write)->Name("StartupFrameWrite");

void startup_frame_parse(benchmark::State& state) {
  const auto private_data = octets(8);
  const StartupFrame frame = request(private_data);
  std::vector<std::byte> bytes(frame.size());
  frame.write_to(bytes);
  for (auto _ : state) {
    const StartupParse result = parse_request(bytes);
    if (!std::holds_alternative<StartupFrame::Parsed>(result)) return state.SkipWithError("the frame was not accepted");
  }
}
BENCHMARK(startup_frame_parse)->Name("StartupFrameParse");

}  // namespace
}  // namespace iwarp::mpa
