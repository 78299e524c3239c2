#include <algorithm>
#include <array>

#include "tools/perf/rdma_tests.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSeed = 7;

// Looks at the first octet of `n` buffers from `slot` on, as whoever uses the data would at least.
void look(std::span<const std::byte> region, std::size_t size, std::size_t slot, std::size_t n) {
  const volatile std::byte* const octets = region.data();
  for (; n > 0; --n, ++slot) (void)octets[slot * size % region.size()];
}

class Bulk final : public Active {
 public:
  Bulk(const Spec& spec, const std::string& host, std::uint16_t port)
      : engine_(mode_of(spec)), side_(spec, engine_, 0), list_(spec.list) {
    side_.connect(host, port);
    work_.resize(list_);
  }

  Sample run(std::chrono::nanoseconds duration) override {
    Sample s;
    const auto begin = Clock::now();
    const auto end = begin + duration;
    while (Clock::now() < end) {
      if (outstanding_ + list_ <= side_.spec().depth) {
        post();
        s.operations += list_;
      }
      reap();
      if (outstanding_ + list_ > side_.spec().depth) side_.progress();
    }
    while (outstanding_ > 0) {
      reap();
      if (outstanding_ > 0) side_.progress();
    }
    exchange({Note::kEnd, 0});
    s.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    s.octets = s.operations * side_.spec().size;
    return s;
  }

  void verify() override {
    const bool write = side_.spec().test == Test::kWriteBw;
    auto region = side_.region();
    if (write) {
      fill_pattern(region.data(), region.size(), kSeed);
    } else {
      std::fill(region.begin(), region.end(), std::byte{0});
      exchange({Note::kFill, kSeed});
    }
    const std::size_t slots = region.size() / side_.spec().size;
    next_ = done_ = 0;
    for (std::size_t posted = 0; posted < slots || outstanding_ > 0;) {
      if (posted < slots && outstanding_ + list_ <= side_.spec().depth) {
        post();
        posted += list_;
      }
      reap();
      if (outstanding_ > 0) side_.progress();
    }
    if (write) {
      exchange({Note::kVerify, kSeed});
    } else if (!has_pattern(region.data(), region.size(), kSeed)) {
      throw std::runtime_error("the data read arrived damaged");
    }
  }

 private:
  // One list; its last request alone is signalled.
  void post() {
    const Spec& spec = side_.spec();
    const std::size_t slots = side_.region().size() / spec.size;
    for (std::size_t i = 0; i < list_; ++i) {
      const std::size_t at = next_ * spec.size;
      next_ = (next_ + 1) % slots;
      work_[i] = {.wr_id = list_,
                  .op = spec.test == Test::kWriteBw ? verbs::SendOp::kWrite : verbs::SendOp::kRead,
                  .sges = side_.slice(at, spec.size),
                  .remote_stag = side_.remote().stag,
                  .remote_to = side_.remote().to + at,
                  .signaled = i + 1 == list_};
    }
    side_.post(work_);
    outstanding_ += list_;
  }

  void reap() {
    for (const auto& c : side_.poll(completions_)) {
      if (side_.is_note(c, answer_)) continue;
      outstanding_ -= c.wr_id;
      if (c.op != verbs::WcOp::kRead) continue;
      look(side_.region(), side_.spec().size, done_, c.wr_id);
      done_ += c.wr_id;
    }
    if (side_.ended()) throw std::runtime_error("the other end has closed the connection");
  }

  void exchange(Message m) {
    answer_ = {};
    side_.say(m);
    while (answer_.note == Note::kData) {
      reap();
      if (answer_.note == Note::kData) side_.progress();
    }
    if (answer_.note != Note::kGood) throw std::runtime_error("the data written arrived damaged");
  }

  cm::Engine engine_;
  RdmaSide side_;
  std::size_t list_;
  std::size_t next_ = 0;  // slot
  std::size_t done_ = 0;  // operations
  std::size_t outstanding_ = 0;
  Message answer_;
  std::vector<verbs::SendWr> work_;
  std::array<verbs::Completion, 32> completions_;
};

}  // namespace

std::unique_ptr<Active> bulk_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<Bulk>(spec, host, port);
}

void bulk_passive(RdmaSide& side, const std::atomic<bool>& stop) {
  std::array<verbs::Completion, 16> completions;
  while (!stop && !side.ended()) {
    for (const auto& c : side.poll(completions)) {
      Message m;
      if (!side.is_note(c, m)) continue;
      Message answer{Note::kGood, m.value};
      const auto region = side.region();
      if (m.note == Note::kEnd) look(region, side.spec().size, 0, region.size() / side.spec().size);
      if (m.note == Note::kFill) fill_pattern(region.data(), region.size(), m.value);
      if (m.note == Note::kVerify && !has_pattern(region.data(), region.size(), m.value)) answer.note = Note::kBad;
      side.say(answer);
    }
    if (!side.ended()) side.progress();
  }
}

}  // namespace iwarp::tools::perf
