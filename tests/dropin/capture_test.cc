#include "dropin/verbs/capture.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <variant>
#include <vector>

#include "iwarp/trace/packet.h"
#include "tests/support/hex.h"

namespace iwarp::dropin {
namespace {

namespace fs = std::filesystem;
using iwarp::test::Bytes;

class CaptureFile : public ::testing::Test {
 protected:
  CaptureFile() { fs::remove(file_); }
  ~CaptureFile() override { fs::remove(file_); }

  static cm::TapTarget target(bool initiator) {
    using boost::asio::ip::make_address;
    return {
        .local = {make_address("10.0.0.1"), 4000}, .remote = {make_address("10.0.0.2"), 7174}, .initiator = initiator};
  }
  [[nodiscard]] std::vector<char> octets() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // TCP segments of the file; each is whole.
  [[nodiscard]] std::vector<trace::TcpSegment> segments() {
    content_ = octets();
    std::vector<trace::TcpSegment> out;
    if (content_.size() < 24) return out;
    std::uint32_t magic = 0;
    std::memcpy(&magic, content_.data(), sizeof magic);
    EXPECT_EQ(magic, 0xA1B2C3D4U);
    for (std::size_t at = 24; at < content_.size();) {
      std::array<std::uint32_t, 4> head{};
      if (content_.size() - at < sizeof head) {
        ADD_FAILURE() << "a header is cut off";
        break;
      }
      std::memcpy(head.data(), content_.data() + at, sizeof head);
      at += sizeof head;
      EXPECT_EQ(head[2], head[3]);
      if (content_.size() - at < head[2]) {
        ADD_FAILURE() << "a packet is cut off";
        break;
      }
      const ConstBytes packet = std::as_bytes(std::span(content_)).subspan(at, head[2]);
      at += head[2];
      const auto parsed = trace::parse_packet(trace::LinkType::kEthernet, packet, packet.size());
      const auto* segment = std::get_if<trace::TcpSegment>(&parsed);
      if (segment == nullptr) {
        ADD_FAILURE() << "no TCP segment";
        continue;
      }
      out.push_back(*segment);
    }
    return out;
  }
  // The payload from that port.
  [[nodiscard]] Bytes stream(std::uint16_t from) {
    Bytes all;
    for (const auto& segment : segments()) {
      if (segment.source.port == from) all.insert(all.end(), segment.payload.begin(), segment.payload.end());
    }
    return all;
  }

  const std::string file_ = (fs::temp_directory_path() / ("iwarp_capture_test." + std::to_string(::getpid()))).string();
  std::vector<char> content_;
};

TEST_F(CaptureFile, HasTheOctetsOfBothDirectionsAtOnce) {
  const auto maker = capture_to(file_);
  EXPECT_FALSE(fs::exists(file_)) << "before the first connection";
  const auto tap = maker(target(true));
  const Bytes out = iwarp::test::pattern(200'000), in = iwarp::test::pattern(77);
  const ConstBytes all(out);
  tap->sent({all.first(100), all.subspan(100)}, {});
  tap->received({in}, {});
  EXPECT_EQ(stream(4000), out);
  EXPECT_EQ(stream(7174), in);
  const auto first = segments().front();
  EXPECT_EQ(first.source.port, 4000) << "who has connected";
  tap->sent_end(cm::ByteTap::End::kFin, {});
  tap->received_end(cm::ByteTap::End::kReset, {});
  EXPECT_TRUE(segments().back().reset);
}

TEST_F(CaptureFile, NamesTheOneThatHasAccepted) {
  const auto tap = capture_to(file_)(target(false));
  EXPECT_EQ(segments().front().source.port, 7174);
}

TEST_F(CaptureFile, IsForTheOwnerAndBeginsAnew) {
  std::ofstream(file_) << std::string(100'000, 'x');
  fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write);
  (void)capture_to(file_)(target(true));
  EXPECT_LT(fs::file_size(file_), 1000U);
  fs::remove(file_);
  (void)capture_to(file_)(target(true));
  EXPECT_EQ(fs::status(file_).permissions() & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

TEST_F(CaptureFile, EndsWithAWholePacketWhenItIsFull) {
  const auto tap = capture_to(file_, 10'000)(target(true));
  const Bytes some = iwarp::test::pattern(1000);
  for (int i = 0; i < 20; ++i) tap->sent({some}, {});
  const auto size = fs::file_size(file_);
  EXPECT_LE(size, 10'000U);
  EXPECT_GT(size, 8'000U);
  EXPECT_EQ(stream(4000).size() % 1000, 0U);
  tap->sent({ConstBytes(some).first(1)}, {});
  EXPECT_EQ(fs::file_size(file_), size) << "what came later has no place before what is missing";
}

TEST_F(CaptureFile, ThatCannotBeMadeIsDoneWithout) {
  const auto tap = capture_to("/nowhere/at/all")(target(true));
  const Bytes some = iwarp::test::pattern(10);
  tap->sent({some}, {});
}

TEST(CaptureFileName, IsOnePerProcess) {
  Settings asked;
  EXPECT_EQ(capture_file(asked), "");
  asked.trace = "/tmp/x";
  const auto mine = "/tmp/x." + std::to_string(::getpid());
  EXPECT_EQ(capture_file(asked), mine);
  asked.trace_process = ::getpid();
  EXPECT_EQ(capture_file(asked), "/tmp/x");
  asked.trace_process = ::getppid();
  EXPECT_EQ(capture_file(asked), mine);
}

}  // namespace
}  // namespace iwarp::dropin
