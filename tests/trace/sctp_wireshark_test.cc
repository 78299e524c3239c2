// What Wireshark makes of the packets that the tests of the trace are made of: its dissectors of SCTP, in UDP or not,
// and of DDP and RDMAP, joined by tools/wireshark/ddp_sctp.lua.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

#include "tests/tools/capture_file.h"
#include "tests/trace/sctp_packets.h"

namespace iwarp::trace {
namespace {

using test::send_segment;
using ::testing::ElementsAre;

constexpr auto kTx = Direction::kTx;
constexpr auto kRx = Direction::kRx;

std::vector<std::string> output_of(const std::string& command) {
  std::vector<std::string> lines;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe.get())) > 0;) text.append(part, n);
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class SctpWireshark : public ::testing::Test {
 protected:
  void SetUp() override {
    if (output_of("command -v tshark").empty()) GTEST_SKIP() << "tshark is not installed";
    file_ = ::testing::TempDir() + "iwarp-sctp-" + std::to_string(::getpid()) + ".pcap";
  }
  void TearDown() override { std::filesystem::remove(file_); }

  // Packets of a session: set-up, control, a Send in one chunk and one in two fragments, an RDMA Write, the end.
  [[nodiscard]] static std::vector<Packet> session(std::uint16_t udp) {
    const SctpPacketMaker m(kClient4, kServer4, udp);
    const test::Bytes second = numbered(2, send_segment(test::pattern(100), {.msn = 2}));
    return {
        m.make(kTx, SctpBytes().init(1, 100, 1)),
        m.make(kRx, SctpBytes().init(2, 200, 1)),
        m.make(kTx, SctpBytes().data(100, 0, 17, control(0, "0005 8020c010 0102"))),
        m.make(kRx, SctpBytes().data(200, 0, 17, control(0, "0006 80104020"))),
        m.make(kTx, SctpBytes().data(101, 0, 16, numbered(1, send_segment(test::pattern(90))))),
        m.make(kTx, SctpBytes().data(102, 0, 16, ConstBytes(second).first(60), kFirstPart)),
        m.make(kTx, SctpBytes().data(103, 0, 16, ConstBytes(second).subspan(60), kLastPart)),
        m.make(kRx, SctpBytes().data(201, 0, 16, numbered(1, test::write_segment(Stag{5}, 0x1000, test::pattern(20))))),
        m.make(kTx, SctpBytes().data(104, 0, 17, control(3, "0004"))),
        m.make(kRx, SctpBytes().data(202, 0, 17, control(2, "0004"))),
    };
  }
  [[nodiscard]] std::vector<std::string> tshark(const std::string& fields) const {
    return output_of("tshark -r '" + file_ +
                     "' -X lua_script:" IWARP_SOURCE_DIR
                     "/tools/wireshark/ddp_sctp.lua -o 'sctp.checksum:CRC 32c' -T fields -E 'separator=|' " +
                     fields + " 2>/dev/null");
  }
  std::string file_;
};

TEST_F(SctpWireshark, ReadsASession) {
  for (const std::uint16_t udp : {std::uint16_t{0}, std::uint16_t{40000}}) {
    test::write_capture(file_, session(udp));
    // Of each packet: the checksum is good, nothing is malformed; then what is in it.
    EXPECT_THAT(tshark("-e sctp.checksum.status -e _ws.malformed -e sctp.adaptation_layer_indication -e ddp_sctp.ssn "
                       "-e ddp_sctp.function -e ddp_sctp.ird -e ddp_sctp.ord -e ddp_sctp.private_data "
                       "-e iwarp_rdma.opcode -e iwarp_ddp.msn -e iwarp_ddp.stag"),
                ElementsAre("1||0x00000001||||||||", "1||0x00000001||||||||", "1|||0|0x0005|32|16|0102|||",
                            "1|||0|0x0006|16|32||||", "1|||1|||||0x03|1|", "1||||||||||", "1|||2|||||0x03|2|",
                            "1|||1|||||0x00||0x00000005", "1|||3|0x0004||||||", "1|||2|0x0004||||||"))
        << udp;
  }
}

// That the test above can fail.
TEST_F(SctpWireshark, FindsAWrongChecksum) {
  std::vector<Packet> packets = session(0);
  packets[4].back() ^= std::byte{1};
  test::write_capture(file_, packets);
  EXPECT_THAT(tshark("-e sctp.checksum.status"), ElementsAre("1", "1", "1", "1", "0", "1", "1", "1", "1", "1"));
}

}  // namespace
}  // namespace iwarp::trace
