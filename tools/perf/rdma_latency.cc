#include <algorithm>
#include <array>
#include <optional>
#include <utility>

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

constexpr std::uint64_t kSeed = 3;        // of the patterns that go to the passive end
constexpr std::uint64_t kAnswerSeed = 4;  // of those that come back, where they are not the same

void check(bool good, const char* how) {
  if (!good) throw std::runtime_error(std::string("the data ") + how + " arrived damaged");
}

std::byte next_mark(std::byte mark) {
  return mark == std::byte{255} ? std::byte{1} : static_cast<std::byte>(std::to_integer<int>(mark) + 1);
}

// Writes the outgoing buffer to the other end's incoming one.
void write_out(RdmaSide& side) {
  const Spec& spec = side.spec();
  const verbs::SendWr wr{.op = verbs::SendOp::kWrite,
                         .sges = side.slice(out_at(side), spec.size),
                         .remote_stag = side.remote().stag,
                         .remote_to = side.remote().to,
                         .signaled = false};
  side.post({&wr, 1});
}

// The same with a new mark in the last octet, for which the other end watches.
void write_mark(RdmaSide& side, std::byte mark) {
  side.region()[out_at(side) + side.spec().size - 1] = mark;
  write_out(side);
}

// Verification of write_lat: writes a pattern and leaves the last octet as it was. The note that follows says that all
// of it has been placed (RFC 5040 section 5.5).
void write_pattern(RdmaSide& side, std::uint64_t seed, Note note) {
  fill_pattern(&side.region()[out_at(side)], side.spec().size - 1, seed);
  write_out(side);
  side.say({note, 0});
}

bool has_come(RdmaSide& side, std::uint64_t seed) {
  return has_pattern(side.region().data(), side.spec().size - 1, seed);
}

// Spins until the last octet of the incoming buffer is `expected`, and answers who wants to verify meanwhile. False
// when the connection ended, or at `stop`.
bool watch(RdmaSide& side, std::byte expected, const std::atomic<bool>& stop) {
  const volatile std::byte* last = &side.region()[side.spec().size - 1];
  std::array<verbs::Completion, 4> completions;
  for (unsigned spins = 1; *last != expected; ++spins) {
    side.progress();
    if (spins % kSpinsPerLook != 0) continue;
    for (const auto& c : side.poll(completions)) {
      Message m;
      if (side.is_note(c, m) && m.note == Note::kVerify)
        write_pattern(side, kAnswerSeed, has_come(side, kSeed) ? Note::kGood : Note::kBad);
    }
    if (side.ended() || stop) return false;
  }
  return true;
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
    switch (side_.spec().test) {
      case Test::kWriteLat:
        return verify_writes();
      case Test::kReadLat:
        return verify_reads();
      default:
        return verify_sends();
    }
  }

 private:
  void turn() {
    const Spec& spec = side_.spec();
    if (spec.test == Test::kWriteLat) {
      mark_ = next_mark(mark_);
      write_mark(side_, mark_);
      if (!watch(side_, mark_, interrupted)) closed();
      return;
    }
    const bool read = spec.test == Test::kReadLat;
    const verbs::SendWr wr{.op = read ? verbs::SendOp::kRead : verbs::SendOp::kSend,
                           .sges = side_.slice(out_at(side_), spec.size),
                           .remote_stag = side_.remote().stag,
                           .remote_to = side_.remote().to,
                           .signaled = read};
    side_.post({&wr, 1});
    // While the other end works, what the last turn used up is posted again.
    if (const auto used = std::exchange(last_, std::nullopt))
      side_.post_receive(*used, side_.slice(*used * spec.size, spec.size));
    const auto got = side_.wait(completions_);
    if (got.empty()) closed();
    if (!read) last_ = got.front().wr_id;
  }

  void verify_writes() {
    write_pattern(side_, kSeed, Note::kVerify);
    check(answer() == Note::kGood && has_come(side_, kAnswerSeed), "written");
    turn();
  }

  void verify_reads() {
    side_.say({Note::kFill, kSeed});
    check(answer() == Note::kGood, "to be read");
    turn();
    check(has_pattern(&side_.region()[out_at(side_)], side_.spec().size, kSeed), "read");
  }

  // Every message comes back; each of the receives at both ends takes one.
  void verify_sends() {
    const std::size_t size = side_.spec().size;
    for (std::uint64_t seed = kSeed; seed < kSeed + kLatencyReceives; ++seed) {
      fill_pattern(&side_.region()[out_at(side_)], size, seed);
      turn();
      check(has_pattern(&side_.region()[last_.value() * size], size, seed), "sent");
    }
  }

  Note answer() {
    for (Message m;;) {
      const auto got = side_.wait(completions_);
      if (got.empty()) closed();
      if (side_.is_note(got.front(), m)) return m.note;
    }
  }

  cm::Engine engine_;
  RdmaSide side_;
  std::byte mark_{0};
  std::optional<std::uint64_t> last_;  // the receive that the last answer came in
  std::array<verbs::Completion, 1> completions_;
};

}  // namespace

std::unique_ptr<Active> latency_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<Latency>(spec, host, port);
}

void latency_passive(RdmaSide& side, const std::atomic<bool>& stop) {
  const Spec& spec = side.spec();
  if (spec.test == Test::kWriteLat) {
    for (std::byte expected{1}; !stop && watch(side, expected, stop); expected = next_mark(expected))
      write_mark(side, expected);
    return;
  }
  std::array<verbs::Completion, 1> completions;
  std::optional<std::uint64_t> answered, before;  // in this turn, and in the one before: its answer has left its buffer
  while (!stop && !side.ended()) {
    for (const auto& c : side.poll(completions)) {
      const verbs::SendWr wr{.sges = side.slice(c.wr_id * spec.size, spec.size), .signaled = false};
      side.post({&wr, 1});
      before = std::exchange(answered, c.wr_id);
    }
    // While the other end works.
    if (const auto used = std::exchange(before, std::nullopt))
      side.post_receive(*used, side.slice(*used * spec.size, spec.size));
    if (!side.ended()) side.progress();
  }
}

}  // namespace iwarp::tools::perf
