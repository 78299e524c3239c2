// `iwarp trace` over captures made between Linux kernels with siw (tests/vectors/trace/README.md).
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "tests/support/vectors.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  const char* kNames[] = {"Write",
                          "ReadRequest",
                          "ReadResponse",
                          "Send",
                          "SendInvalidate",
                          "SendSolicited",
                          "SendSolicitedInvalidate",
                          "Terminate",
                          "Immediate",
                          "ImmediateSolicited",
                          "AtomicRequest",
                          "AtomicResponse"};
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
  EXPECT_THAT(f.output,
              AllOf(HasSubstr(", ulpdu=34, crc=good)"), HasSubstr(", last=1, qn=0, msn=1, mo=0, length=16)")));
}

// Without -v no line is longer than 120 columns, and each names its frame first.
TEST(Trace, LinesAreShortAndNameTheirFrames) {
  const Finished brief = run({"trace", kVectors + "siw-crc-nfs41-start.pcap"});
  std::istringstream lines(brief.output);
  bool cut = false;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120U) << line;
    cut = cut || line.ends_with("...)");
    if (line.find("Total(") == std::string::npos) {
      EXPECT_THAT(line, HasSubstr("(frame="));
    }
  }
  EXPECT_TRUE(cut);
  EXPECT_THAT(run({"trace", "-v", kVectors + "siw-crc-nfs41-start.pcap"}).output, Not(HasSubstr(", ...)")));
}

TEST(Trace, RepliesNameTheirCalls) {
  const Finished f = run({"trace", "-v", kVectors + "siw-crc-nfs41-start.pcap"});
  EXPECT_THAT(f.output,
              AllOf(HasSubstr("Call(frame=10, xid=0xc7450ac8, prog=NFS, vers=4.1, ops=[EXCHANGE_ID], proc=COMPOUND, "),
                    HasSubstr("Reply(frame=13, xid=0xc7450ac8, call_in=10, latency_ms=81.781, "
                              "status=NFS4_OK, ops=[EXCHANGE_ID], proc=COMPOUND, stat=SUCCESS")));
}

TEST(Trace, TimesAsAskedFor) {
  const std::string file = kVectors + "siw-crc-rping.pcap";
  const auto first_lines = [&](const char* style) {
    std::istringstream in(run({"trace", "--time", style, file}).output);
    std::string first, second;
    std::getline(in, first);
    std::getline(in, second);
    return std::pair(first.substr(0, first.find(' ')), second.substr(0, second.find(' ')));
  };
  EXPECT_EQ(first_lines("relative").first, "0.000");
  EXPECT_EQ(first_lines("delta").second, first_lines("relative").second);
  EXPECT_THAT(first_lines("absolute").first, ::testing::MatchesRegex("20..-..-..T..:..:..\\.......Z"));
}

TEST(Trace, ColorOnlyWhereItIsWanted) {
  const std::string file = kVectors + "siw-crc-rping.pcap";
  EXPECT_THAT(run({"trace", "--color", "always", file}).output, HasSubstr("\x1b["));
  EXPECT_THAT(run({"trace", file}).output, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(run({"trace", "--color", "never", file}).output, Not(HasSubstr("\x1b[")));
}

TEST(Trace, OnlyWhatIsAskedFor) {
  const std::string file = kVectors + "siw-crc-nfs41-start.pcap";
  const auto layers = [&](std::vector<std::string> flags) {
    std::set<std::string> out;
    flags.insert(flags.begin(), {"trace", file});
    std::istringstream lines(run(flags).output);
    for (std::string ms, conn, dir, layer, rest; lines >> ms >> conn >> dir >> layer && std::getline(lines, rest);) {
      out.insert(layer);
    }
    return out;
  };
  EXPECT_THAT(layers({"--layer", "rpc,mpa"}), ElementsAre("mpa", "rpc"));
  EXPECT_THAT(layers({"--layer", "rpc", "--stream", "1"}), ElementsAre("rpc"));
  EXPECT_THAT(layers({"--errors"}), IsEmpty());
  const std::string one = run({"trace", "--xid", "0xc7450ac8", file}).output;
  EXPECT_THAT(one, AllOf(HasSubstr("rdmap Send("), HasSubstr("rdmap Write("), HasSubstr("rpc Reply(")));
  std::istringstream lines(one);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, 7U);
}

TEST(Trace, JsonHasTheSameFields) {
  const std::string file = kVectors + "siw-crc-nfs41-start.pcap";
  const Finished f = run({"trace", "--json", file});
  EXPECT_EQ(f.code, 0);
  std::istringstream lines(f.output);
  std::size_t count = 0, replies = 0;
  std::string first;
  std::getline(lines, first);
  const auto about = nlohmann::json::parse(first).at("iwarp");
  EXPECT_EQ(about.at("schema"), 1);
  EXPECT_EQ(about.at("command"), "trace");
  for (std::string line; std::getline(lines, line); ++count) {
    const auto j = nlohmann::json::parse(line);
    if (j.at("layer") == "mpa") {
      EXPECT_EQ(j.at("fields").at("crc"), 1);
      EXPECT_EQ(j.at("fields").at("rtr_write"), 0);
    }
    if (j.at("pdu") != "Reply" || j.at("layer") != "rpc" || j.at("fields").at("xid") != "0xc7450ac8") continue;
    ++replies;
    EXPECT_EQ(j.at("fields").at("ops"), nlohmann::json::array({"EXCHANGE_ID"}));
    EXPECT_EQ(j.at("fields").at("call_in"), 10);
    EXPECT_DOUBLE_EQ(j.at("fields").at("latency_ms"), 81.781);
    EXPECT_EQ(j.at("direction"), "rx");
    EXPECT_EQ(j.at("error"), false);
  }
  EXPECT_EQ(replies, 1U);
  const std::string text = run({"trace", file}).output;
  EXPECT_EQ(count, static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
}

TEST(Trace, JsonHasListsAsArrays) {
  const Finished f = run({"trace", "--json", "--layer", "rpcrdma", kVectors + "siw-crc-nfs41-start.pcap"});
  std::istringstream lines(f.output);
  bool seen = false;
  for (std::string line; std::getline(lines, line);) {
    const auto j = nlohmann::json::parse(line).value("fields", nlohmann::json::object());
    if (!j.contains("reply") || !j.at("reply").is_array()) continue;
    seen = true;
    EXPECT_EQ(j.at("reads"), nlohmann::json::array());
    EXPECT_THAT(j.at("reply").at(0).get<std::string>(), HasSubstr("@0x"));
  }
  EXPECT_TRUE(seen);
}

TEST(Trace, SummaryByProcedureAndConnection) {
  const std::string file = kVectors + "siw-crc-nfs41-start.pcap";
  const Finished f = run({"trace", "--summary", file});
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.output, AllOf(HasSubstr("NFS 4.1 EXCHANGE_ID"), HasSubstr("10.1.0.1:20049"), HasSubstr("median")));
  std::istringstream lines(f.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U);
  const auto j = nlohmann::json::parse(run({"trace", "--summary", "--json", file}).output);
  EXPECT_EQ(j.at("iwarp").at("command"), "trace");
  EXPECT_EQ(j.at("connections").size(), 1U);
  EXPECT_GT(j.at("procedures").size(), 3U);
}

// What a filter leaves out of the counts is not unknown of the connection.
TEST(Trace, SummaryOfPartKnowsHowConnectionsEnd) {
  const std::string file = kVectors + "siw-crc-rping.pcap";
  const auto connection = [&file](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"trace", "--summary", "--json", file});
    return nlohmann::json::parse(run(flags).output).at("connections").at(0);
  };
  const auto all = connection({});
  ASSERT_NE(all.at("end"), "still open");
  for (const std::vector<std::string>& filter :
       {std::vector<std::string>{"--errors"}, {"--layer", "rdmap"}, {"--xid", "1"}}) {
    const auto part = connection(filter);
    for (const char* key : {"end", "client", "tx_bytes", "rx_messages"}) EXPECT_EQ(part.at(key), all.at(key)) << key;
  }
  EXPECT_EQ(connection({"--layer", "tcp"}).at("sends"), 0);
}

TEST(Trace, WritesJsonToAFileBesideTheLines) {
  const std::string file = kVectors + "siw-crc-nfs41-start.pcap";
  const std::string out = ::testing::TempDir() + "iwarp-trace-" + std::to_string(::getpid()) + ".json";
  const Finished f = run({"trace", file, "--json", out});
  EXPECT_EQ(f.code, 0);
  EXPECT_EQ(f.output, run({"trace", file}).output);
  std::ifstream written(out);
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::count(f.output.begin(), f.output.end(), '\n') + 1);
  std::filesystem::remove(out);
}

TEST(Trace, StopsWhenStandardOutputTakesNoMore) {
  for (const char* form : {"", "--json", "--summary", "--summary --json"}) {
    const Finished f = shell(std::string(IWARP_COMMAND) + " trace " + form + " " + kVectors +
                             "siw-crc-nfs41-start.pcap 2>&1 >/dev/full; echo $?");
    EXPECT_EQ(f.output, "iwarp trace: cannot write standard output: No space left on device\n1\n") << form;
  }
}

TEST(Trace, FlagsThatExcludeEachOther) {
  EXPECT_EQ(run({"trace", "x.pcap", "--json", "--html", "y.html"}).code, 2);
  EXPECT_EQ(run({"trace", "x.pcap", "--summary", "--html", "y.html"}).code, 2);
  EXPECT_EQ(run({"trace", "x.pcap", "--layer", "ip"}).code, 2);
  EXPECT_EQ(run({"trace", "x.pcap", "--time", "local"}).code, 2);
}

// A pipe: what came so far is shown while more is awaited.
TEST(Trace, ShowsPacketsOfAPipeAsTheyCome) {
  const std::string pipe = ::testing::TempDir() + "iwarp-trace-" + std::to_string(::getpid()) + ".fifo";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  {
    Subprocess command({"trace", pipe});
    std::ofstream out(pipe, std::ios::binary);
    const std::string bytes = read_file(kVectors + "siw-crc-rping.pcap");
    out << bytes.substr(0, bytes.size() - 200) << std::flush;
    EXPECT_TRUE(command.wait_for("rdmap Send("));
    EXPECT_EQ(command.count("Total("), 0U);
    out << bytes.substr(bytes.size() - 200) << std::flush;
    out.close();
    EXPECT_EQ(command.wait(), 0);
    EXPECT_EQ(command.count("Total("), 2U);
  }
  std::filesystem::remove(pipe);
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
  EXPECT_THAT(f.output, AllOf(HasSubstr(", ulpdu=78, computed=0x"), HasSubstr(", bytes=84, why=\"wrong CRC\")")));
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
