// One bit changed on its way, in every part of what two ends exchange.
#include "tests/faults/conversation.h"
#include "tests/faults/stages.h"

namespace iwarp::faults {
namespace {

using Part = Stage::Part;
using namespace std::chrono_literals;

Case flip(Settings settings, bool up, std::size_t octet, const Stage& stage) {
  (up ? settings.plan.up : settings.plan.down).flip_bit = octet * 8 + octet * 3 % 8;
  return {std::string(up ? "client to server: " : "server to client: ") + "octet " + std::to_string(octet) + " of " +
              stage.to_string(),
          std::move(settings)};
}

class BitFlip : public ::testing::Test {
 protected:
  // The stages of the way up, or down.
  std::vector<Stage> of(bool up) const { return stages(up ? clean_.up : clean_.down); }

 private:
  const Relay::Record clean_ = Conversations().undisturbed();
};

// Nothing protects startup frames but their own redundancy: they work, are refused, or time out. Nothing hangs.
TEST_F(BitFlip, InAStartupFrame) {
  std::vector<Case> cases;
  for (const bool up : {true, false}) {
    const Stage frame = of(up).front();
    for (std::size_t octet = frame.begin; octet < frame.end; ++octet) {
      for (const std::size_t bit : {0u, 3u, 6u}) {
        cases.push_back(flip(impatient(), up, octet, frame));
        Way& way = up ? cases.back().settings.plan.up : cases.back().settings.plan.down;
        way.flip_bit = octet * 8 + (octet + bit) % 8;
        cases.back().name += " bit " + std::to_string(*way.flip_bit % 8);
      }
    }
  }
  std::atomic<int> refused{0};
  hold_all(cases, [&](const Case&, const Outcome& out) {
    if (out.complete) return;
    ++refused;
    EXPECT_NE(out.client_end.reason.code, Errc::kOk);
    EXPECT_NE(out.server_end.reason.code, Errc::kOk);
  });
  EXPECT_GE(refused.load(), 2 * 16 * 3);  // every bit of the keys
}

// CRC-32C finds it before anything is placed; the other end is told by a Terminate.
TEST_F(BitFlip, InAnFpdu) {
  COVERS("RFC5044-6-1");
  COVERS("RFC5044-6-3");
  COVERS("RFC5044-8-2");
  std::vector<Case> cases;
  for (const bool up : {true, false}) {
    for (const Stage& s : of(up)) {
      if (s.part == Part::kStartup || s.part == Part::kLength) continue;
      const bool every = s.fpdu < 4 && s.part != Part::kPayload;
      const std::size_t stride = every ? 1 : std::max<std::size_t>(1, (s.end - s.begin) / 2);
      for (std::size_t octet = s.begin; octet < s.end; octet += stride) cases.push_back(flip({}, up, octet, s));
    }
  }
  ASSERT_GT(cases.size(), 200u);
  hold_all(cases, [](const Case& c, const Outcome& out) {
    EXPECT_FALSE(out.complete);
    const bool up = c.settings.plan.up.flip_bit.has_value();
    const auto& finder = up ? out.server_end : out.client_end;
    const auto& other = up ? out.client_end : out.server_end;
    EXPECT_EQ(finder.reason.code, Errc::kCrcMismatch);
    // Before its first FPDU a Responder may send none.
    EXPECT_EQ(other.reason.code, out.server_start.code == Errc::kOk ? Errc::kRemoteTerminate : Errc::kConnectionLost);
  });
}

// A length that is too large makes the receiver wait for octets that do not come, until its application has waited
// enough.
TEST_F(BitFlip, InTheLengthOfAnFpdu) {
  std::vector<Case> cases;
  for (const bool up : {true, false}) {
    for (const Stage& s : of(up)) {
      if (s.part != Part::kLength) continue;
      for (const std::size_t octet : {s.begin, s.begin + 1}) cases.push_back(flip(impatient(), up, octet, s));
    }
  }
  hold_all(cases, [](const Case& c, const Outcome& out) {
    EXPECT_FALSE(out.complete);
    const bool up = c.settings.plan.up.flip_bit.has_value();
    const Errc found = (up ? out.server_end : out.client_end).reason.code;
    // On a busy machine the other end may be the first whose time is up.
    const bool left =
        found == Errc::kPeerClosed && (up ? out.client_end : out.server_end).reason.code == Errc::kStartupTimeout;
    EXPECT_TRUE(found == Errc::kCrcMismatch || found == Errc::kFpduLength || found == Errc::kConnectionLost ||
                found == Errc::kStartupTimeout || left || out.gave_up)
        << name(found);
  });
}

}  // namespace
}  // namespace iwarp::faults
