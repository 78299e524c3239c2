#include "iwarp/trace/half_stream.h"

#include <gmock/gmock.h>

#include "tests/support/segments.h"
#include "tests/trace/startup.h"

namespace iwarp::trace {
namespace {

using test::Bytes;
using test::fpdu;
using test::send_segment;
using test::operator|;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Items in words: "request", "fpdu 34/34 good", "undecoded 5", "aligned on", "not mpa".
class Observed {
 public:
  explicit Observed(bool from_start = true) : stream_(from_start) {}

  Observed& feed(const Bytes& bytes) {
    stream_.feed(bytes);
    return drain();
  }
  Observed& lose(std::uint64_t n) {
    stream_.lose(n);
    return drain();
  }
  Observed& close() {
    stream_.close();
    return drain();
  }
  HalfStream& stream() { return stream_; }
  [[nodiscard]] const std::vector<std::string>& items() const { return items_; }
  [[nodiscard]] const Bytes& ulpdu() const { return ulpdu_; }

 private:
  Observed& drain() {
    while (const auto item = stream_.next()) std::visit([this](const auto& i) { on(i); }, *item);
    return *this;
  }
  void on(const HalfStream::Startup& s) { items_.emplace_back(s.frame.is_reply ? "reply" : "request"); }
  void on(const HalfStream::Fpdu& f) {
    static constexpr const char* kCrc[] = {"good", "bad", "off", "unknown"};
    items_.push_back("fpdu " + std::to_string(f.ulpdu.size()) + "/" + std::to_string(f.ulpdu_bytes) + " " +
                     kCrc[static_cast<int>(f.crc)]);
    ulpdu_.assign(f.ulpdu.begin(), f.ulpdu.end());
  }
  void on(const HalfStream::Undecoded& u) { items_.push_back("undecoded " + std::to_string(u.bytes)); }
  void on(const HalfStream::Aligned& a) { items_.emplace_back(a.crc ? "aligned on" : "aligned off"); }
  void on(const HalfStream::NotMpa&) { items_.emplace_back("not mpa"); }

  HalfStream stream_;
  std::vector<std::string> items_;
  Bytes ulpdu_;
};

const Bytes kSend = send_segment(test::pattern(100));  // ULPDU of 118 octets, FPDU of 124

TEST(HalfStream, StartupFrameThenFpdus) {
  Observed o;
  o.feed(request(true) | fpdu(kSend, true) | fpdu(kSend, true)).close();
  EXPECT_THAT(o.items(), ElementsAre("request", "fpdu 118/118 good", "fpdu 118/118 good"));
  EXPECT_EQ(o.ulpdu(), kSend);
}

TEST(HalfStream, CutAtEveryByteGivesTheSame) {
  const Bytes all = reply(true) | fpdu(kSend, true) | fpdu(send_segment({}), true);
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(cut);
    Observed o;
    o.feed(Bytes(all.begin(), at)).feed(Bytes(at, all.end())).close();
    EXPECT_THAT(o.items(), ElementsAre("reply", "fpdu 118/118 good", "fpdu 18/18 good")) << cut;
  }
  Observed o;
  for (const std::byte b : all) o.feed({b});
  EXPECT_THAT(o.items(), ElementsAre("reply", "fpdu 118/118 good", "fpdu 18/18 good"));
}

TEST(HalfStream, TheFirstFpduTellsWhetherCrcsAreInUse) {
  Observed o;
  o.feed(request(false) | fpdu(kSend, false) | fpdu(kSend, true)).close();
  EXPECT_THAT(o.items(), ElementsAre("request", "fpdu 118/118 off", "fpdu 118/118 off"));
}

TEST(HalfStream, GoesOnBehindABadCrc) {
  Bytes bad = fpdu(kSend, true);
  bad[40] ^= std::byte{1};
  Observed o;
  o.stream().set_crc(true);
  o.feed(request(true) | bad | fpdu(kSend, true)).close();
  EXPECT_THAT(o.items(), ElementsAre("request", "fpdu 118/118 bad", "aligned on", "fpdu 118/118 good"));
}

TEST(HalfStream, LossWithinAnFpduKeepsTheAlignment) {
  const Bytes f = fpdu(kSend, true);
  for (std::size_t begin = 2; begin < f.size(); ++begin) {
    for (std::size_t end = begin + 1; end <= f.size(); ++end) {
      Observed o;
      o.feed(request(true) | fpdu(kSend, true) | Bytes(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(begin)));
      o.lose(end - begin).feed(Bytes(f.begin() + static_cast<std::ptrdiff_t>(end), f.end()) | fpdu(kSend, true));
      o.close();
      const std::string seen = std::to_string(std::min<std::size_t>(begin - 2, 118));
      ASSERT_THAT(o.items(),
                  ElementsAre("request", "fpdu 118/118 good", "fpdu " + seen + "/118 unknown", "fpdu 118/118 good"))
          << begin << " to " << end;
    }
  }
}

TEST(HalfStream, SeveralLossesWithinOneFpdu) {
  Observed o;
  const Bytes f = fpdu(kSend, true);
  o.feed(request(true) | Bytes(f.begin(), f.begin() + 30))
      .lose(10)
      .feed(Bytes(f.begin() + 40, f.begin() + 60))
      .lose(64);
  o.feed(f).close();
  EXPECT_THAT(o.items(), ElementsAre("request", "fpdu 28/118 unknown", "fpdu 118/118 good"));
}

TEST(HalfStream, FindsTheAlignmentBehindALargerLoss) {
  const Bytes f = fpdu(kSend, true);
  Observed o;
  o.feed(request(true) | f | Bytes(f.begin(), f.begin() + 30)).lose(1000000);
  o.feed(Bytes(f.begin() + 100, f.end()) | f | f).close();
  EXPECT_THAT(o.items(), ElementsAre("request", "fpdu 118/118 good", "fpdu 28/118 unknown", "undecoded 24",
                                     "aligned on", "fpdu 118/118 good", "fpdu 118/118 good"));
}

TEST(HalfStream, WithoutItsBeginningItIsAligned) {
  const Bytes f = fpdu(kSend, false);
  Observed o(false);
  o.feed(Bytes(f.begin() + 60, f.end()) | f | f | f).close();
  EXPECT_THAT(o.items(),
              ElementsAre("undecoded 64", "aligned off", "fpdu 118/118 off", "fpdu 118/118 off", "fpdu 118/118 off"));
}

TEST(HalfStream, TheSynMayBeMissing) {
  Observed o(false);
  o.feed(request(true) | fpdu(kSend, true));
  EXPECT_THAT(o.items(), ElementsAre("request", "fpdu 118/118 good"));
}

TEST(HalfStream, LossOfTheStartupFrame) {
  Observed o;
  o.feed(Bytes(10, std::byte{'x'})).close();
  EXPECT_THAT(o.items(), ElementsAre("not mpa"));
  Observed lost;
  lost.lose(20).feed(fpdu(kSend, true)).close();
  EXPECT_THAT(lost.items(), ElementsAre("aligned on", "fpdu 118/118 good"));
  Observed half;
  half.feed(test::hex("4d504120")).lose(16).feed(fpdu(kSend, true)).close();
  EXPECT_THAT(half.items(), ElementsAre("undecoded 4", "aligned on", "fpdu 118/118 good"));
}

TEST(HalfStream, SomethingElseIsLeftAlone) {
  Observed o;
  o.feed(test::hex("485454502f")).feed(fpdu(kSend, true)).close();
  EXPECT_THAT(o.items(), ElementsAre("not mpa"));
}

TEST(HalfStream, MalformedStartupFrameIsOursAll) {
  Bytes too_long = request(true);
  too_long[18] = std::byte{0x7f};
  Observed o;
  o.feed(too_long).feed(fpdu(kSend, true)).close();
  EXPECT_THAT(o.items(), ElementsAre("undecoded 20", "undecoded 124"));
}

TEST(HalfStream, EndsWithinAFrame) {
  const Bytes f = fpdu(kSend, true), r = request(true);
  Observed startup;
  startup.feed(Bytes(r.begin(), r.begin() + 19)).close();
  EXPECT_THAT(startup.items(), ElementsAre("undecoded 19"));
  Observed full;
  full.feed(r | Bytes(f.begin(), f.begin() + 1)).close();
  EXPECT_THAT(full.items(), ElementsAre("request", "undecoded 1"));
  Observed later;
  later.feed(r | Bytes(f.begin(), f.begin() + 123)).close();
  EXPECT_THAT(later.items(), ElementsAre("request", "undecoded 123"));
}

TEST(HalfStream, StoppedIsNotReadAsFpdus) {
  Observed o;
  o.feed(request(true));
  o.stream().stop("reason");
  o.feed(fpdu(kSend, true)).lose(5).close();
  EXPECT_THAT(o.items(), ElementsAre("request", "undecoded 124"));
}

TEST(HalfStream, NothingInNothingOut) {
  Observed o;
  o.close();
  EXPECT_THAT(o.items(), IsEmpty());
}

}  // namespace
}  // namespace iwarp::trace
