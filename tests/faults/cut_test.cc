// The stream of one way stops, ends or is reset, at every stage of a conversation.
#include "tests/faults/conversation.h"
#include "tests/faults/stages.h"

namespace iwarp::faults {
namespace {

using Cut = Way::Cut;
using Part = Stage::Part;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLong = 30s;

class CutStream : public ::testing::Test {
 protected:
  // The stages of the way up, or down.
  std::vector<Stage> of(bool up) const { return stages(up ? clean_.up : clean_.down); }
  // Before the first octet, inside the parts of the startup frame, and up to its last octet.
  static std::vector<std::size_t> in_startup(const Stage& frame) { return {0, 1, 17, 20, frame.end - 1}; }
  static Case cut(const Settings& settings, bool up, Cut how, std::size_t at) {
    static constexpr std::array<const char*, 4> kNames{"nothing", "a stall", "FIN", "RST"};
    Case c{std::string(up ? "client to server: " : "server to client: ") + kNames.at(static_cast<std::size_t>(how)) +
               " at octet " + std::to_string(at),
           settings};
    Way& way = up ? c.settings.plan.up : c.settings.plan.down;
    way.cut = how;
    way.cut_at = at;
    return c;
  }
  // Between FPDUs, and in the middle of each of their parts.
  std::vector<Case> in_fpdus(const Settings& settings, Cut how, std::size_t every) const {
    std::vector<Case> cases;
    std::size_t n = 0;
    for (const bool up : {true, false}) {
      for (const Stage& s : of(up)) {
        if (s.part == Part::kStartup || n++ % every != 0) continue;
        const bool whole = s.part == Part::kLength && s.fpdu > 0;
        cases.push_back(cut(settings, up, how, whole && s.fpdu % 2 == 0 ? s.begin : (s.begin + s.end) / 2));
      }
    }
    return cases;
  }

 private:
  const Relay::Record clean_ = Conversations().undisturbed();
};

// Each side's own limit, before the other's.
TEST_F(CutStream, StallInTheRequestTimesOutOnEitherSide) {
  std::vector<Case> cases;
  for (const bool server_waits : {true, false}) {
    Settings s = impatient();
    (server_waits ? s.client_policy : s.server_policy).startup_timeout = 1s;
    for (const std::size_t at : in_startup(of(true).front())) cases.push_back(cut(s, true, Cut::kStall, at));
  }
  hold_all(cases, [](const Case& c, const Outcome& out) {
    EXPECT_EQ(out.server_start.code, Errc::kNotConnected);  // the application never hears of it
    const bool client_waited = c.settings.client_policy.startup_timeout < c.settings.server_policy.startup_timeout;
    EXPECT_EQ(out.client_start.code, client_waited ? Errc::kStartupTimeout : Errc::kConnectionLost);
  });
}

TEST_F(CutStream, StallInTheReplyTimesOutAtTheClient) {
  std::vector<Case> cases;
  Settings s = impatient();
  s.stream.first_fpdu_timeout = kLong;
  for (const std::size_t at : in_startup(of(false).front())) cases.push_back(cut(s, false, Cut::kStall, at));
  hold_all(cases, [](const Case&, const Outcome& out) {
    EXPECT_EQ(out.client_start.code, Errc::kStartupTimeout);
    EXPECT_NE(out.server_start.code, Errc::kOk);
  });
}

TEST_F(CutStream, StallBeforeTheFirstFpduTimesOutAtTheServer) {
  std::vector<Case> cases;
  Settings s = impatient();
  s.patience = kLong;  // the client hears of it from the server
  const std::size_t begin = of(true).front().end;
  for (const std::size_t at : {begin, begin + 1, begin + 10}) cases.push_back(cut(s, true, Cut::kStall, at));
  hold_all(cases, [](const Case&, const Outcome& out) {
    EXPECT_EQ(out.client_start.code, Errc::kOk);
    EXPECT_EQ(out.server_start.code, Errc::kStartupTimeout);
    EXPECT_FALSE(out.gave_up);
  });
}

// No rule of MPA, DDP or RDMAP limits the time that an operation takes. The application does: it closes, and however
// deaf the other end is, its own end comes within the limits of closing.
TEST_F(CutStream, StallInFullOperationEndsWithTheApplicationsPatience) {
  const Settings s = impatient();
  hold_all(in_fpdus(s, Cut::kStall, 5), [](const Case&, const Outcome& out) {
    EXPECT_FALSE(out.complete);
    EXPECT_EQ(out.client_start.code, Errc::kOk);
    EXPECT_TRUE(out.gave_up || out.server_start.code == Errc::kStartupTimeout);
  });
}

TEST_F(CutStream, EndsDuringStartup) {
  std::vector<Case> cases;
  for (const bool up : {true, false}) {
    for (const Cut how : {Cut::kFin, Cut::kReset}) {
      for (const std::size_t at : in_startup(of(up).front())) cases.push_back(cut({}, up, how, at));
    }
  }
  hold_all(cases, [](const Case& c, const Outcome& out) {
    const Way& down = c.settings.plan.down;
    const bool fin_in_reply = down.cut == Cut::kFin && down.cut_at > 0;
    EXPECT_EQ(out.client_start.code, fin_in_reply ? Errc::kMalformedStartupFrame : Errc::kConnectionLost);
    if (down.cut == Cut::kNone) {
      EXPECT_EQ(out.server_start.code, Errc::kNotConnected);  // the application never hears of it
    } else {
      EXPECT_EQ(out.server_start.code, down.cut == Cut::kFin ? Errc::kPeerClosed : Errc::kConnectionLost);
    }
  });
}

TEST_F(CutStream, ResetInFullOperation) {
  hold_all(in_fpdus({}, Cut::kReset, 1), [](const Case&, const Outcome& out) {
    EXPECT_FALSE(out.complete || out.gave_up);
    EXPECT_EQ(out.client_end.reason.code, Errc::kConnectionLost);
    EXPECT_EQ(out.server_end.reason.code, Errc::kConnectionLost);
  });
}

// Inside an FPDU the connection is lost; between two of them it is an orderly end.
TEST_F(CutStream, HalfCloseInFullOperation) {
  const std::vector<Stage> up = of(true), down = of(false);
  hold_all(in_fpdus({}, Cut::kFin, 1), [&](const Case& c, const Outcome& out) {
    EXPECT_FALSE(out.complete || out.gave_up);
    const bool at_server = c.settings.plan.up.cut != Cut::kNone;
    const std::size_t at = at_server ? c.settings.plan.up.cut_at : c.settings.plan.down.cut_at;
    const bool between = std::ranges::any_of(at_server ? up : down,
                                             [&](const Stage& s) { return s.part == Part::kLength && s.begin == at; });
    const Errc told = (at_server ? out.server_end : out.client_end).reason.code;
    EXPECT_EQ(told, between ? Errc::kPeerClosed : Errc::kConnectionLost) << name(told);
  });
}

}  // namespace
}  // namespace iwarp::faults
