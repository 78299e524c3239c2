// An end on a session of SCTP (session::Half, session::EarlyPlacement) that gets the segments of a peer in any order:
// Writes over each other, Sends, Invalidates, Reads both ways, with octets changed on the way. What it tells, answers
// and has in memory is what an end tells, answers and has that got the same segments in order. Half of the runs change
// more meanwhile: a segment comes again, the application revokes what the peer writes to. There memory that is revoked
// stays as it is, and nothing is kept in the end.
//
// Input: flags, Receives, Reads | steps of the peer, each of 6 octets (Conversation::step) | changes of segments, each
// of 4 | the order, by an octet for each segment (Arrivals::all).
#include <vector>

#include "tests/fuzz/check.h"
#include "tests/session/early_fixture.h"

namespace iwarp::fuzz {
namespace {

using session::World;
using test::Bytes;
using test::list;

constexpr std::size_t kArea = 1200, kSource = 2000, kReceiveBytes = 700;

// A peer's work, and a world in which it is recorded. Two of one input are alike.
struct Conversation {
  Conversation(std::uint8_t receives, std::uint8_t reads, ConstBytes steps, ConstBytes harms)
      : source(w.a.region(kSource, test::kRemoteAll)), area(area_of(w)), asked(w.b.region(300, test::kRemoteAll)) {
    session::fill(source, 1);
    session::fill(asked, 2);
    auto& inbox = w.b.region(4 * kReceiveBytes);
    for (std::size_t i = 0; i < receives % 5u; ++i)
      FUZZ_CHECK(
          w.b.core.post_recv({.wr_id = 10 + i, .sges = list({inbox.sge(i * kReceiveBytes, kReceiveBytes)})}).ok());
    auto& sink = w.b.region(1800);
    for (std::size_t i = 0; i < reads % 4u; ++i)
      FUZZ_CHECK(
          w.b.core.post_send(test::read_wr(20 + i, list({sink.sge(i * 600, 10 + i * 250)}), source, i * 500)).ok());
    w.ask();
    auto& back = w.a.region(300);
    for (Script in(steps); !in.done();) step(in, back);
    w.record();
    for (Script in(harms); !in.done() && !w.segments.empty();) {
      Bytes& segment = w.segments[in.u8() % w.segments.size()];
      const std::uint8_t at = in.u8(), change = in.u8();
      const std::size_t cut = in.u8();
      if (segment.empty()) continue;
      segment[at % segment.size()] ^= std::byte{change};
      if (cut > 200) segment.resize(segment.size() - std::min(segment.size(), cut - 200));
    }
  }

  World w;
  test::Region &source, &area, &asked;

 private:
  static test::Region& area_of(World& w) {
    w.b.regions.push_back(std::make_unique<test::Region>(w.b.stags, w.b.key.pd, kArea,
                                                         test::kRemoteAll | ddp::Access::kRemoteInvalidate, 0x20000,
                                                         w.b.key.stream, w.b.random()));
    return *w.b.regions.back();
  }
  // What would not fit in the source is cut; what does not fit in the area is the peer's fault.
  void step(Script& in, test::Region& back) {
    const std::uint8_t what = in.u8();
    const std::size_t from = in.u16() % kSource, bytes = in.u16() % 1300, to = in.u8() * 5u;
    const auto octets = list({source.sge(from, std::min(bytes, kSource - from))});
    switch (what % 8) {
      case 0:
        (void)w.a.core.post_send(test::read_wr(3, list({back.all()}), asked));
        break;
      case 1: {
        auto wr = test::send_wr(4, octets);
        wr.op = rdmap::SendOp::kSendInvalidate;
        wr.remote_stag = area.stag();
        (void)w.a.core.post_send(wr);
        break;
      }
      case 2:
      case 3:
        (void)w.a.core.post_send(test::send_wr(2, octets));
        break;
      default:
        (void)w.a.core.post_send(test::write_wr(1, octets, area, to));
    }
  }
};

class Arrivals {
 public:
  Arrivals(Conversation& of, ConstBytes order, bool disturbed) : of_(of), in_(order), disturbed_(disturbed) {
    for (std::size_t i = 0; i < of.w.segments.size(); ++i) left_.push_back(i);
  }
  void all() {
    while (!left_.empty()) {
      const std::uint8_t octet = in_.u8();
      if (disturbed_ && octet >= 0xe0) {
        disturb(octet);
        continue;
      }
      const auto which = left_.begin() + static_cast<std::ptrdiff_t>(octet % left_.size());
      came_.push_back(*which);
      left_.erase(which);
      if (is_tagged(of_.w.segments[came_.back()]) && !left_.empty() && left_.front() < came_.back()) ++early_tagged_;
      of_.w.arrive(came_.back());
    }
    of_.w.lose();
    FUZZ_CHECK(of_.w.budget().held() == 0);
    if (!revoked_.empty()) FUZZ_CHECK(of_.area.bytes() == revoked_);
  }

  // Segments with payload that say by themselves where that belongs, and came before others in front of them.
  [[nodiscard]] std::uint64_t early_tagged() const { return early_tagged_; }

 private:
  static bool is_tagged(const Bytes& segment) {
    return segment.size() > 14 && (segment[0] & std::byte{0x80}) != std::byte{0};
  }
  void disturb(std::uint8_t octet) {
    if (octet % 2 == 0 && !came_.empty()) return of_.w.arrive(came_[in_.u8() % came_.size()]);
    ddp::StagTable& stags = of_.w.b.stags;
    if (!stags.invalidate(of_.area.stag())) return;  // the peer has done it
    FUZZ_CHECK(stags.quiescent(of_.area.stag()));
    revoked_ = of_.area.bytes();
  }

  Conversation& of_;
  Script in_;
  const bool disturbed_;
  std::vector<std::size_t> left_, came_;  // the first in its order
  std::uint64_t early_tagged_ = 0;
  Bytes revoked_;  // what the area was when it was revoked; empty: it was not
};

bool has_failed(const World& w) {
  return std::any_of(w.log.begin(), w.log.end(), [](const std::string& line) {
    return line.starts_with("ended ") && line != std::string("ended ") + name(Errc::kConnectionLost);
  });
}

void run(Script& in) {
  const std::uint8_t flags = in.u8(), receives = in.u8(), reads = in.u8();
  const ConstBytes steps = in.bytes(6 * (1 + flags / 2 % 8)), harms = in.bytes(4 * (flags / 16 % 4));
  Conversation early(receives, reads, steps, harms);
  const bool disturbed = (flags & 1) != 0;
  Arrivals arrivals(early, in.rest(), disturbed);
  arrivals.all();
  if (disturbed) return;
  Conversation due(receives, reads, steps, harms);
  FUZZ_CHECK(due.w.segments == early.w.segments);
  Arrivals(due, {}, false).all();  // in order
  FUZZ_CHECK(due.w.counters().early == 0);
  FUZZ_CHECK(early.w.log == due.w.log);
  FUZZ_CHECK(early.w.answers == due.w.answers);
  if (has_failed(due.w)) return;
  FUZZ_CHECK(early.w.memory() == due.w.memory());
  if (harms.empty()) FUZZ_CHECK(early.w.counters().early >= arrivals.early_tagged());
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  [[maybe_unused]] static const bool strict = testing::GTEST_FLAG(throw_on_failure) = true;  // test supports use EXPECT
  iwarp::fuzz::Script script(iwarp::fuzz::as_input(data, size));
  iwarp::fuzz::run(script);
  return 0;
}
