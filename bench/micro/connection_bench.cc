// From post to completion: two connections joined by memcpy instead of by TCP. What is left is our own code.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "iwarp/ddp/stag_table.h"
#include "iwarp/stream/connection.h"

namespace iwarp::stream {
namespace {

constexpr std::size_t kEmss = 1448, kScratchBytes = std::size_t{256} << 10;

Options made_options(mpa::FpduPolicy fpdu) {
  Options o;
  o.fpdu = fpdu;
  return o;
}

mpa::Policy made_policy(bool crc, bool markers) {
  mpa::Policy p;
  p.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kOff;
  if (markers) p.markers = mpa::Policy::Markers::kAsk;
  return p;
}

// One end with its memory.
struct End {
  End(unsigned number, std::size_t bytes, mpa::FpduPolicy fpdu)
      : key{PdId{number}, ddp::StreamId{number}},
        memory(bytes),
        stag(stags
                 .register_memory({memory, 0, key.pd, ddp::StreamId::kAny,
                                   ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite},
                                  number)
                 .value()),
        endpoint(stags, key, made_options(fpdu)),
        connection(endpoint, made_options(fpdu)) {
    connection.set_emss(kEmss);
  }
  ~End() {
    connection.abort(make_error(Errc::kAborted, "the benchmark ends"));
    stags.invalidate(stag);
    stags.release(stag);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  [[nodiscard]] rdmap::Sge all() { return {memory.data(), static_cast<std::uint32_t>(memory.size()), stag}; }

  ddp::StagTable stags;
  ddp::StreamKey key;
  std::vector<std::byte> memory;
  Stag stag;
  endpoint::Endpoint endpoint;
  Connection connection;
};

class Joined {
 public:
  Joined(std::size_t bytes, bool crc, mpa::FpduPolicy fpdu, bool markers = false)
      : a(1, bytes, fpdu), b(2, bytes, fpdu), scratch_(kScratchBytes) {
    const mpa::Policy policy = made_policy(crc, markers);
    a.connection.start(mpa::Initiator(policy, {}, now_), now_);
    mpa::Responder responder(policy, now_);
    std::size_t request = 0;
    for (const ConstBytes span : a.connection.tx_buffers(now_)) request += responder.rx(span, now_);
    a.connection.tx_commit(request, now_);
    (void)responder.poll_event();
    (void)responder.accept(1, 1, {});
    b.connection.start(std::move(responder), now_);
    settle();
  }

  // Moves octets until none are left.
  void settle() {
    while (move(a.connection, b.connection) || move(b.connection, a.connection)) {
    }
  }
  // Takes what `a` has to send to nowhere.
  void drop() {
    std::size_t octets = 0;
    for (const ConstBytes span : a.connection.tx_buffers(now_)) octets += span.size();
    a.connection.tx_commit(octets, now_);
  }
  [[nodiscard]] bool ready() const {
    return a.connection.phase() == Phase::kFull && b.connection.phase() == Phase::kFull;
  }

  End a, b;

 private:
  bool move(Connection& from, Connection& to) {
    auto out = from.tx_buffers(now_);
    ConstBytes piece;
    const auto next = [&] {
      for (; piece.empty() && !out.empty(); out = out.subspan(1)) piece = out.front();
      return !piece.empty();
    };
    std::size_t moved = 0, taken = 1;
    while (taken > 0 && next()) {
      taken = 0;
      for (MutBytes room : to.rx_buffers(scratch_)) {
        while (!room.empty() && next()) {
          const std::size_t n = std::min(room.size(), piece.size());
          std::memcpy(room.data(), piece.data(), n);
          piece = piece.subspan(n);
          room = room.subspan(n);
          taken += n;
        }
      }
      to.rx_commit(taken, now_);
      moved += taken;
    }
    from.tx_commit(moved, now_);
    return moved > 0;
  }

  TimePoint now_{};
  std::vector<std::byte> scratch_;
};

// One Send, received; the buffer is posted again each time.
template <bool markers>
void send(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Joined joined(bytes, state.range(1) != 0, mpa::FpduPolicy::kMax, markers);
  if (!joined.ready()) return state.SkipWithError("the connection was not established");
  for (auto _ : state) {
    (void)joined.b.connection.post_recv({1, joined.b.all()});
    (void)joined.a.connection.post_send({.wr_id = 1, .op = rdmap::SendOp::kSend, .sges = joined.a.all()});
    joined.settle();
    const auto sent = joined.a.connection.poll_send();
    const auto received = joined.b.connection.poll_recv();
    if (!sent || !received || received->byte_len != bytes) return state.SkipWithError("no completion");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}
BENCHMARK(send<false>)->Name("SendToCompletion")->ArgNames({"bytes", "crc"})->ArgsProduct({{8, 4096, 65536}, {0, 1}});
BENCHMARK(send<true>)
    ->Name("SendToCompletionWithMarkers")
    ->ArgNames({"bytes", "crc"})
    ->ArgsProduct({{8, 4096, 65536}, {0, 1}});

// Lists of small Sends, as message rates are measured. With `whole` they are received as well; else their octets are
// dropped, and only the sending half counts.
template <bool whole>
void sends(benchmark::State& state) {
  constexpr std::size_t kBytes = 8;
  const auto list = static_cast<std::size_t>(state.range(0));
  Joined joined(kBytes, true, mpa::FpduPolicy::kMax);
  if (!joined.ready()) return state.SkipWithError("the connection was not established");
  const rdmap::SendWr send{.wr_id = 1, .op = rdmap::SendOp::kSend, .sges = joined.a.all(), .signaled = false};
  const rdmap::RecvWr receive{1, joined.b.all()};
  for (auto _ : state) {
    for (std::size_t i = 0; whole && i < list; ++i) (void)joined.b.connection.post_recv(receive);
    for (std::size_t i = 0; i < list; ++i) (void)joined.a.connection.post_send(send);
    if (whole) {
      joined.settle();
    } else {
      joined.drop();
    }
    if (joined.a.connection.poll_send()) return state.SkipWithError("a Send failed");
    std::size_t received = 0;
    while (joined.b.connection.poll_recv()) ++received;
    if (received != (whole ? list : 0)) return state.SkipWithError("not all were received");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(list) * state.iterations());
}
BENCHMARK(sends<true>)->Name("SendsToCompletion")->ArgName("list")->Arg(1)->Arg(32)->Arg(64);
BENCHMARK(sends<false>)->Name("SendsToWire")->ArgName("list")->Arg(1)->Arg(32)->Arg(64);

template <rdmap::SendOp Op>
void tagged(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Joined joined(bytes, state.range(1) != 0, mpa::FpduPolicy::kMax);
  if (!joined.ready()) return state.SkipWithError("the connection was not established");
  for (auto _ : state) {
    (void)joined.a.connection.post_send(
        {.wr_id = 1, .op = Op, .sges = joined.a.all(), .remote_stag = joined.b.stag, .remote_to = 0});
    joined.settle();
    const auto done = joined.a.connection.poll_send();
    if (!done || done->status != Errc::kOk) return state.SkipWithError("no completion");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}
BENCHMARK(tagged<rdmap::SendOp::kWrite>)
    ->Name("WriteToCompletion")
    ->ArgNames({"bytes", "crc"})
    ->ArgsProduct({{8, 4096, 65536}, {0, 1}});
BENCHMARK(tagged<rdmap::SendOp::kRead>)
    ->Name("ReadToCompletion")
    ->ArgNames({"bytes", "crc"})
    ->ArgsProduct({{8, 4096, 65536}, {0, 1}});

}  // namespace
}  // namespace iwarp::stream
