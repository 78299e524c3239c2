// --trace and --pcap: both files tell the same story, and tshark finds the capture in order.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cm/raw_tcp.h"
#include "tests/tools/recording.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;
using Words = std::vector<std::string>;

class Recorded : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Subprocess server({"rping", "-s", "-a", GetParam(), "-p", "0", "--trace", scratch_.file("server")});
    const Finished f = run({"rping", "-c", "-a", GetParam(), "-p", server.listening_port(), "-C", "2", "-S", "40000",
                            "--trace", scratch_.file("client"), "--pcap", capture()});
    ASSERT_EQ(f.code, 0) << f.output;
    ASSERT_EQ(server.wait(), 0) << server.output();
  }

  [[nodiscard]] std::string capture() const { return scratch_.file("pcap"); }
  [[nodiscard]] Lines traced(const std::string& name) const { return lines_in(scratch_.file(name)); }

 private:
  const Scratch scratch_{"recorder"};
};

TEST_P(Recorded, TraceShowsEveryMessage) {
  const Lines lines = traced("client");
  EXPECT_THAT(with(lines, "tx rdmap Send("), SizeIs(4));
  EXPECT_THAT(with(lines, "rx rdmap Send("), SizeIs(4));
  EXPECT_THAT(with(lines, "rx rdmap Write("), SizeIs(2));
  EXPECT_THAT(with(lines, "length=40000"), SizeIs(4));  // two Writes to the client, two Read Responses from it
  EXPECT_THAT(with(lines, "undecoded=0, lost=0, bad_crc=0, malformed=0)"), SizeIs(2));
}

TEST_P(Recorded, CaptureIsReadBackAsTheTraceSaid) {
  const Finished f = run({"trace", capture()});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(read_back(capture()), ElementsAreArray(comparable(traced("client"))));
}

// The same, seen from the other end.
TEST_P(Recorded, ServerSawWhatTheClientSent) {
  const Lines client = with(traced("client"), "rdmap "), server = with(traced("server"), "rdmap ");
  for (const auto& [there, here] : {std::pair{"tx", "rx"}, std::pair{"rx", "tx"}}) {
    Lines expected = with(client, std::string(there) + " rdmap");
    for (std::string& line : expected) line.replace(line.find(there), 2, here);
    EXPECT_THAT(with(server, std::string(here) + " rdmap"), ElementsAreArray(expected));
  }
}

TEST_P(Recorded, TsharkFindsNoFault) {
  if (!has_tshark()) GTEST_SKIP() << "tshark is not installed";
  EXPECT_THAT(tshark_faults(capture()), IsEmpty());
  EXPECT_THAT(tshark(capture(), "-T fields -e iwarp_rdma.opcode"), HasSubstr("0x03"));
}

INSTANTIATE_TEST_SUITE_P(Family, Recorded, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& p) { return p.param[0] == ':' ? "IPv6" : "IPv4"; });

// Its packets hold what one system call moved: several FPDUs, or a part of one, which Wireshark does not read where
// there are Markers (tests/tools/wireshark_test.cc has what it does).
TEST(Recorder, CaptureWithMarkersIsReadBackAsTheTraceSaid) {
  const Scratch scratch("recorder-markers");
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "--markers", "ask"});
  const Finished f = run({"rping", "-c", "-a", "127.0.0.1", "-p", server.listening_port(), "-C", "2", "-S", "40000",
                          "--markers", "ask", "--trace", scratch.file("client"), "--pcap", scratch.file("pcap")});
  ASSERT_EQ(f.code, 0) << f.output;
  ASSERT_EQ(server.wait(), 0) << server.output();
  const Lines lines = lines_in(scratch.file("client"));
  EXPECT_THAT(with(with(lines, " mpa Re"), "markers=1"), SizeIs(2));
  EXPECT_THAT(with(lines, "length=40000"), SizeIs(4));
  EXPECT_THAT(with(lines, "undecoded=0, lost=0, bad_crc=0, malformed=0)"), SizeIs(2));
  EXPECT_THAT(read_back(scratch.file("pcap")), ElementsAreArray(comparable(lines)));
}

// Both ends of a test, and of connections that nothing is sent over.
TEST(Recorder, PerfRecordsItsConnections) {
  const std::string file = ::testing::TempDir() + "iwarp-recorder-perf-" + std::to_string(::getpid());
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0", "--trace", file + ".server"});
  const std::string peer = "127.0.0.1:" + server.listening_port();
  const auto lines = [](const std::string& name) {
    const Lines all = lines_in(name);
    std::filesystem::remove(name);
    return all;
  };
  for (const Words& test : {Words{"run", "write_bw", peer, "--size=64k", "--pairs=1", "--seconds=0.05"},
                            Words{"run", "connect_rate", peer, "--pairs=1", "--seconds=0.05"},
                            Words{"idle", peer, "--connections", "10"}}) {
    Words words{"perf"};
    words.insert(words.end(), test.begin(), test.end());
    for (const std::string& more : {std::string("--trace"), file + ".client", std::string("--pcap"), file + ".pcap"})
      words.push_back(more);
    const Finished f = run(words);
    ASSERT_EQ(f.code, 0) << f.output;
    const Lines traced = lines(file + ".client");
    EXPECT_THAT(with(traced, "tx mpa Request("), Not(IsEmpty())) << test[1];
    if (test[1] == "write_bw") {
      EXPECT_THAT(with(traced, "tx rdmap Write("), Not(IsEmpty()));
    }
    EXPECT_EQ(with(traced, "Open(").size(), with(traced, "tx mpa Request(").size()) << test[1];
    EXPECT_GT(std::filesystem::file_size(file + ".pcap"), 24U) << test[1];
    std::filesystem::remove(file + ".pcap");
  }
  server.signal(SIGTERM);
  (void)server.wait();
  const Lines served = lines(file + ".server");
  EXPECT_THAT(with(served, "rx mpa Request("), Not(IsEmpty()));
  EXPECT_THAT(with(served, "rx rdmap Write("), Not(IsEmpty()));
}

// A connection that never gets beyond its startup has a beginning and an end as well.
TEST(Recorder, ShowsTheEndOfARefusedStartup) {
  const std::string file = ::testing::TempDir() + "iwarp-refused-" + std::to_string(::getpid());
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "--trace", file});
  const std::string port = server.listening_port();
  ASSERT_EQ(shell("bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf %64s x >&3; cat <&3'").code, 0);
  ASSERT_EQ(run({"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1"}).code, 0);
  ASSERT_EQ(server.wait(), 0) << server.output();
  EXPECT_THAT(with(lines_in(file), "1 tx tcp Fin()"), SizeIs(1));
  std::filesystem::remove(file);
}

// A responder that says nothing after its Reply: empty Writes are to wake it.
TEST(Recorder, ShowsWhatWakesASilentPeer) {
  const Scratch scratch{"recorder-wakes"};
  RawListener listener;
  Subprocess client({"rping", "-c", "-a", "127.0.0.1", "-p", std::to_string(listener.port()), "--mpa-rev", "1",
                     "--trace", scratch.file("client")});
  RawTcp peer = listener.accept();
  (void)read_frame(peer, false);
  ASSERT_TRUE(peer.send(octets({.is_reply = true, .crc = true, .revision = 1})));
  while (!peer.read_some(65536, 5000).empty()) {
  }
  peer.close();
  EXPECT_EQ(client.wait(), 1) << client.output();
  const Lines lines = lines_in(scratch.file("client"));
  EXPECT_THAT(with(lines, "tx rdmap Send("), SizeIs(1));
  // Who comes late for several makes up for them with one.
  EXPECT_THAT(with(lines, "tx rdmap Write("), AllOf(SizeIs(AllOf(Ge(1U), Le(3U))), Each(HasSubstr("length=0"))))
      << client.output();
}

// All its connections, which are odd, and short.
TEST(Recorder, ProbeRecordsItsConnections) {
  const Scratch scratch("recorder-probe");
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--trace", scratch.file("server")});
  const Finished f = run({"probe", "127.0.0.1:" + server.listening_port(), "--json", "--trace", scratch.file("probe"),
                          "--pcap", scratch.file("pcap")});
  ASSERT_EQ(f.code, 0) << f.output;
  const std::size_t connections = nlohmann::json::parse(f.output).at("connections").size();
  const Lines traced = lines_in(scratch.file("probe"));
  EXPECT_THAT(with(traced, "tx tcp Open("), SizeIs(connections));
  EXPECT_THAT(with(traced, "tx mpa Request("), SizeIs(connections));
  EXPECT_THAT(with(traced, "tx rdmap ReadRequest("), Not(IsEmpty()));
  EXPECT_THAT(with(lines_in(scratch.file("server")), "rx mpa Request("), Not(IsEmpty()));
  const Lines read = read_back(scratch.file("pcap")), expected = comparable(traced);
  for (std::size_t i = 1; i <= connections; ++i)
    EXPECT_THAT(of_connection(read, i), ElementsAreArray(of_connection(expected, i)));
  if (!has_tshark()) GTEST_SKIP() << "tshark is not installed";
  EXPECT_THAT(tshark_faults(scratch.file("pcap")), IsEmpty());
}

TEST(Recorder, FileThatCannotBeWritten) {
  for (const char* flag : {"--trace", "--pcap"}) {
    const Finished f = run({"rping", "-c", "-a", "127.0.0.1", "-p", "1", flag, "/nonexistent/x"});
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, AllOf(HasSubstr("/nonexistent/x"), HasSubstr("No such file or directory")));
  }
}

}  // namespace
}  // namespace iwarp::test
