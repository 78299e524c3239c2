// `iwarp trace` over captures made between Linux kernels with siw (tests/vectors/trace/README.md).
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "tests/support/vectors.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kVectors = test::vector_path("trace/");

std::string read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Unpacked for the length of a test, where it is kept compressed.
class TraceOf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::filesystem::exists(file_)) return;
    const std::string packed = std::exchange(
        file_, ::testing::TempDir() + "iwarp-trace-" + std::to_string(::getpid()) + "-" + GetParam() + ".pcap");
    ASSERT_EQ(shell("gzip -dc '" + packed + ".gz' >'" + file_ + "'").code, 0);
    unpacked_ = true;
  }
  void TearDown() override {
    if (unpacked_) std::filesystem::remove(file_);
  }

  std::string file_ = kVectors + GetParam() + ".pcap";

 private:
  bool unpacked_ = false;
};

TEST_P(TraceOf, HasNoUndecodedByte) {
  const Finished f = run({"trace", file_});
  EXPECT_EQ(f.code, 0) << f.output;
  std::size_t totals = 0;
  std::istringstream lines(f.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Total(") == std::string::npos) continue;
    ++totals;
    EXPECT_THAT(line, HasSubstr("undecoded=0, lost=0, bad_crc=0, malformed=0)"));
  }
  // perftest exchanges its parameters in a connection of its own.
  EXPECT_EQ(totals, std::string(GetParam()).starts_with("siw-ib_") ? 4U : 2U);
}

// Opcodes of the last segments of messages, as tshark counts them.
TEST_P(TraceOf, HasTheMessagesThatTsharkSees) {
  if (std::system("tshark --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "tshark is not installed";
  const Finished tshark =
      shell("tshark -r '" + file_ + "' -T fields -e iwarp_rdma.opcode -e iwarp_ddp.last_flag 2>/dev/null");
  ASSERT_EQ(tshark.code, 0);
  std::map<int, int> theirs;
  std::istringstream rows(tshark.output);
  for (std::string row; std::getline(rows, row);) {
    std::istringstream opcodes(row.substr(0, row.find('\t'))), flags(row.substr(row.find('\t') + 1));
    for (std::string op, last; std::getline(opcodes, op, ',') && std::getline(flags, last, ',');) {
      if (last == "1" || last == "True") ++theirs[std::stoi(op, nullptr, 0)];
    }
  }
  const char* kNames[] = {
      "Write",    "ReadRequest", "ReadResponse", "Send", "SendInvalidate", "SendSolicited", "SendSolicitedInvalidate",
      "Terminate"};
  std::map<int, int> ours;
  std::istringstream lines(run({"trace", file_}).output);
  for (std::string ms, conn, dir, layer, rest; lines >> ms >> conn >> dir >> layer && std::getline(lines, rest);) {
    if (layer != "rdmap") continue;
    const auto name = std::find(std::begin(kNames), std::end(kNames), rest.substr(1, rest.find('(') - 1));
    ASSERT_NE(name, std::end(kNames)) << rest;
    ++ours[static_cast<int>(name - std::begin(kNames))];
  }
  EXPECT_FALSE(ours.empty());
  EXPECT_EQ(ours, theirs);
}

INSTANTIATE_TEST_SUITE_P(Captures, TraceOf,
                         ::testing::Values("siw-rping", "siw-crc-rping", "siw-p2p-rping", "siw-p2pcrc-rping",
                                           "siw-v1-rping", "siw-rping-4000B", "siw-crc-nfs41-start", "siw-crc-nfs41",
                                           "siw-p2p-nfs41", "siw-p2pcrc-nfs41", "siw-nfs3", "siw-nfs40", "siw-nfs41",
                                           "siw-ib_write_bw", "siw-ib_read_bw", "siw-ib_send_bw"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
                           return name;
                         });

// Whole outputs, reviewed once.
TEST(Trace, LinesOfRpingAndNfs) {
  for (const char* name : {"siw-p2pcrc-rping", "siw-crc-nfs41-start"}) {
    EXPECT_EQ(run({"trace", kVectors + name + ".pcap"}).output, read_file(kVectors + name + ".txt"));
  }
}

TEST(Trace, VerboseShowsFpdusAndSegments) {
  const Finished f = run({"trace", "-v", kVectors + "siw-crc-rping.pcap"});
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.output, AllOf(HasSubstr("tx mpa Fpdu(ulpdu=34, crc=good)"),
                              HasSubstr("tx ddp Untagged(last=1, qn=0, msn=1, mo=0, length=16)")));
}

class DamagedCapture : public ::testing::Test {
 protected:
  DamagedCapture() : path_(::testing::TempDir() + "iwarp-trace-" + std::to_string(::getpid()) + ".pcap") {}
  ~DamagedCapture() override { std::filesystem::remove(path_); }
  Finished trace(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return run({"trace", path_});
  }
  std::string path_;
};

TEST_F(DamagedCapture, BadCrc) {
  std::string bytes = read_file(kVectors + "siw-crc-rping.pcap");
  const std::size_t at = bytes.find("rdma-ping-0");
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  const Finished f = trace(bytes);
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, AllOf(HasSubstr("mpa BadCrc(ulpdu=78, computed=0x"),
                              HasSubstr("mpa Undecoded(bytes=84, why=\"wrong CRC\")")));
}

TEST_F(DamagedCapture, EndsWithinAPacket) {
  const std::string bytes = read_file(kVectors + "siw-rping.pcap");
  const Finished f = trace(bytes.substr(0, bytes.size() - 10));
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, AllOf(HasSubstr("Total("), HasSubstr("truncated")));
}

TEST_F(DamagedCapture, IsNoCapture) {
  const Finished f = trace("GIF89a, and more of it so that there is a header");
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("as a capture"));
}

TEST(Trace, FileDoesNotExist) {
  const Finished f = run({"trace", "/nonexistent.pcap"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("/nonexistent.pcap"));
}

TEST(Trace, NothingOfInterest) {
  const Finished f = run({"trace", "--port", "1", kVectors + "siw-rping.pcap"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("no iWARP connection in"));
}

}  // namespace
}  // namespace iwarp::test
