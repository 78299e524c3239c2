#include <algorithm>
#include <array>

#include "tools/perf/ping_pong.h"
#include "tools/perf/rdma_tests.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Looks for the end of the connection once in so many polls of memory.
constexpr unsigned kSpinsPerLook = 64;

std::size_t receives(const Spec& spec) {
  return spec.test == Test::kSendLat ? kLatencyReceives : 0;
}

void closed() {
  throw std::runtime_error("the other end has closed the connection");
}

// What comes in lies in the first half of the region, what goes out in the second.
std::size_t out_at(const RdmaSide& side) {
  return side.spec().region_bytes() / 2;
}

// Spins until the last octet of the incoming buffer is `expected`. False when the connection ended.
bool watch(RdmaSide& side, std::byte expected) {
  const volatile std::byte* last = &side.region()[side.spec().size - 1];
  std::array<verbs::Completion, 4> completions;
  for (unsigned spins = 1; *last != expected; ++spins) {
    side.progress();
    if (spins % kSpinsPerLook == 0) {
      (void)side.poll(completions);
      if (side.ended()) return false;
    }
  }
  return true;
}

void write_out(RdmaSide& side, std::byte mark) {
  const Spec& spec = side.spec();
  side.region()[out_at(side) + spec.size - 1] = mark;
  const verbs::SendWr wr{.op = verbs::SendOp::kWrite,
                         .sges = side.slice(out_at(side), spec.size),
                         .remote_stag = side.remote().stag,
                         .remote_to = side.remote().to,
                         .signaled = false};
  side.post({&wr, 1});
}

class Latency final : public Active {
 public:
  Latency(const Spec& spec, const std::string& host, std::uint16_t port)
      : engine_(mode_of(spec)), side_(spec, engine_, receives(spec)) {
    for (std::size_t i = 0; i < receives(spec); ++i) side_.post_receive(i, side_.slice(i * spec.size, spec.size));
    side_.connect(host, port);
  }

  Sample run(std::chrono::nanoseconds duration) override {
    return ping_pong(duration, side_.spec().size, [this] { turn(); });
  }

  void verify() override {
    if (side_.spec().test != Test::kSendLat) {
      turn();
      return;  // write_lat proves arrival by every turn; the content of tagged messages is verified by the bw tests
    }
    const std::size_t size = side_.spec().size;
    fill_pattern(&side_.region()[out_at(side_)], size, 3);
    turn();
    if (!has_pattern(&side_.region()[last_ * size], size, 3)) throw std::runtime_error("the data sent arrived damaged");
  }

 private:
  void turn() {
    const Spec& spec = side_.spec();
    if (spec.test == Test::kWriteLat) {
      mark_ = mark_ == std::byte{255} ? std::byte{1} : static_cast<std::byte>(std::to_integer<int>(mark_) + 1);
      write_out(side_, mark_);
      if (!watch(side_, mark_)) closed();
      return;
    }
    const bool read = spec.test == Test::kReadLat;
    const verbs::SendWr wr{.op = read ? verbs::SendOp::kRead : verbs::SendOp::kSend,
                           .sges = side_.slice(out_at(side_), spec.size),
                           .remote_stag = side_.remote().stag,
                           .remote_to = side_.remote().to,
                           .signaled = read};
    side_.post({&wr, 1});
    const auto got = side_.wait(completions_);
    if (got.empty()) closed();
    if (read) return;
    last_ = got.front().wr_id;
    side_.post_receive(last_, side_.slice(last_ * spec.size, spec.size));
  }

  cm::Engine engine_;
  RdmaSide side_;
  std::byte mark_{0};
  std::size_t last_ = 0;
  std::array<verbs::Completion, 1> completions_;
};

}  // namespace

std::unique_ptr<Active> latency_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<Latency>(spec, host, port);
}

void latency_passive(RdmaSide& side, const std::atomic<bool>& stop) {
  const Spec& spec = side.spec();
  if (spec.test == Test::kWriteLat) {
    for (std::byte expected{1}; !stop && watch(side, expected);) {
      write_out(side, expected);
      expected = expected == std::byte{255} ? std::byte{1} : static_cast<std::byte>(std::to_integer<int>(expected) + 1);
    }
    return;
  }
  std::array<verbs::Completion, 1> completions;
  std::optional<std::uint64_t> before;  // answered in the last turn: the answer has left its buffer by now
  while (!stop && !side.ended()) {
    for (const auto& c : side.poll(completions)) {
      if (before) side.post_receive(*before, side.slice(*before * spec.size, spec.size));
      before = c.wr_id;
      // Last of all: with this answer the other end may be content, and end the connection.
      const verbs::SendWr wr{.sges = side.slice(c.wr_id * spec.size, spec.size), .signaled = false};
      side.post({&wr, 1});
    }
    if (!side.ended()) side.progress();
  }
}

}  // namespace iwarp::tools::perf
