#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tools/perf/rdma_tests.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Of send_bw. With two, each waits for the credits of the one before.
constexpr unsigned kListsInFlight = 4;

// Every message has room for a Note.
std::size_t slot_bytes(const Spec& spec) {
  return std::max<std::size_t>(spec.size, kNoteBytes);
}

std::size_t slots_of(const Spec& spec) {
  return spec.region_bytes() / slot_bytes(spec);
}

// In verification each message carries the number of its slot, which says what follows.
bool is_slot(const std::byte* data, std::size_t size, std::uint32_t number) {
  return read_message(data).value == number && has_pattern(data + kNoteBytes, size - kNoteBytes, number);
}

class Sends final : public Active {
 public:
  Sends(const Spec& spec, const std::string& host, std::uint16_t port)
      : engine_(mode_of(spec)),
        side_(spec, engine_, 0),
        list_(spec.test == Test::kSendRate ? spec.list : std::max(1U, spec.depth / kListsInFlight)),
        credits_(send_credits(spec)),
        work_(list_, {.wr_id = list_, .signaled = false}) {
    work_.back().signaled = true;
    side_.connect(host, port);
  }

  Sample run(std::chrono::nanoseconds duration) override {
    for (std::size_t i = 0; i < slots_of(side_.spec()); ++i) write_message(slot(i), {Note::kData, 0});
    Sample s;
    const auto begin = Clock::now();
    const auto end = begin + duration;
    while (Clock::now() < end) {
      if (ready()) {
        post();
        s.operations += list_;
      }
      reap();
      if (!ready()) side_.progress();
    }
    settle(0);
    s.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    s.octets = s.operations * side_.spec().size;
    return s;
  }

  void verify() override {
    const std::size_t bytes = slot_bytes(side_.spec()), slots = slots_of(side_.spec());
    for (std::uint32_t i = 0; i < slots; ++i) {
      write_message(slot(i), {Note::kVerify, i});
      fill_pattern(slot(i) + kNoteBytes, bytes - kNoteBytes, i);
    }
    next_ = 0;
    std::size_t sent = 0;
    while (sent < slots) {
      if (ready()) {
        post();
        sent += list_;
      }
      reap();
      if (!ready()) side_.progress();
    }
    settle(static_cast<std::uint32_t>(sent));
  }

 private:
  [[nodiscard]] std::byte* slot(std::size_t i) { return &side_.region()[i * slot_bytes(side_.spec())]; }
  [[nodiscard]] bool ready() const {
    // One credit stays for the note at the end.
    return outstanding_ + list_ <= side_.spec().depth && credits_ > list_;
  }

  void post() {
    const std::size_t bytes = slot_bytes(side_.spec()), slots = slots_of(side_.spec());
    for (std::size_t i = 0; i < list_; ++i) {
      work_[i].sges = side_.slice(next_ * bytes, bytes);
      next_ = (next_ + 1) % slots;
    }
    side_.post(work_);
    outstanding_ += list_;
    credits_ -= list_;
  }

  void reap() {
    for (const auto& c : side_.poll(completions_)) {
      Message m;
      if (!side_.is_note(c, m)) {
        outstanding_ -= c.wr_id;
      } else if (m.note == Note::kCredit) {
        credits_ += m.value;
      } else {
        answer_ = m;
      }
    }
    if (side_.ended()) throw std::runtime_error("the other end has closed the connection");
  }

  // Waits until the other end has got everything, `verified` messages to compare among it.
  void settle(std::uint32_t verified) {
    answer_ = {};
    side_.say({Note::kEnd, verified});
    --credits_;
    while (answer_.note == Note::kData || outstanding_ > 0) {
      reap();
      if (answer_.note == Note::kData || outstanding_ > 0) side_.progress();
    }
    if (answer_.note != Note::kGood) throw std::runtime_error("the data sent arrived damaged");
  }

  cm::Engine engine_;
  RdmaSide side_;
  std::size_t list_;
  std::size_t credits_;
  std::vector<verbs::SendWr> work_;
  std::size_t next_ = 0;
  std::size_t outstanding_ = 0;
  Message answer_;
  std::array<verbs::Completion, 32> completions_;
};

}  // namespace

std::size_t send_credits(const Spec& spec) {
  return std::min(2 * std::size_t{spec.depth}, slots_of(spec));
}

std::unique_ptr<Active> send_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<Sends>(spec, host, port);
}

void send_passive(RdmaSide& side, const std::atomic<bool>& stop) {
  const Spec& spec = side.spec();
  const std::size_t slot = slot_bytes(spec);
  const auto slots = static_cast<std::uint32_t>(slots_of(spec));
  std::array<verbs::Completion, 64> completions;
  std::array<verbs::RecvWr, 64> again;
  const std::uint32_t enough = static_cast<std::uint32_t>(send_credits(spec) / 4);
  std::uint32_t owed = 0;
  std::uint32_t verified = 0;  // messages compared since the last kEnd
  bool damaged = false;
  std::optional<Note> answer;
  while (!stop && !side.ended()) {
    std::size_t looked_at = 0;
    for (const auto& c : side.poll(completions)) {
      if (c.op != verbs::WcOp::kRecv) continue;
      std::byte* data = &side.region()[c.wr_id * slot];
      const Message m = read_message(data);
      if (m.note == Note::kVerify && !is_slot(data, slot, verified++ % slots)) damaged = true;
      again[looked_at].wr_id = c.wr_id;
      again[looked_at++].sges = side.slice(c.wr_id * slot, slot);
      ++owed;
      if (m.note != Note::kEnd) continue;
      if (std::exchange(verified, 0) != m.value) damaged = true;
      answer = std::exchange(damaged, false) ? Note::kBad : Note::kGood;
    }
    if (looked_at > 0) side.post_receives(std::span{again}.first(looked_at));
    if (owed > enough) side.say({Note::kCredit, std::exchange(owed, 0)});
    // Last of all: with this answer the other end may be content, and end the connection.
    if (answer) side.say({*std::exchange(answer, std::nullopt), 0});
    if (!side.ended()) side.progress();
  }
}

}  // namespace iwarp::tools::perf
