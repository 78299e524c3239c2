// What the command line says to a user who gets it wrong, and to one who asks.
#include <gmock/gmock.h>
#include <unistd.h>

#include <sstream>

#include "tests/tools/subprocess.h"
#include "tools/command_line.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

struct Wrong {
  const char* name;
  std::vector<std::string> arguments;
  const char* says;  // what would be right
};

class WrongUsage : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongUsage, ExitsWith2AndSaysWhatWouldBeRight) {
  const Finished f = run(GetParam().arguments);
  EXPECT_EQ(f.code, 2) << f.output;
  EXPECT_THAT(f.output, HasSubstr(GetParam().says));
  EXPECT_THAT(f.output, HasSubstr("--help"));
  EXPECT_THAT(f.output, MatchesRegex("iwarp( [a-z]+)*: [^\n]*\nRun `iwarp( [a-z]+)* --help` for what it takes.\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Command, WrongUsage,
    ::testing::Values(
        Wrong{"NoSubcommand",
              {},
              "iwarp: choose a command: gateway, perf, probe, profiles, rping, run, top, trace or help"},
        Wrong{"UnknownSubcommand", {"rdma"}, "iwarp: there is no command 'rdma': choose gateway, perf"},
        Wrong{"NearlyASubcommand", {"gatway"}, "iwarp: there is no command 'gatway'; did you mean gateway?"},
        Wrong{"HelpOfUnknown", {"help", "prof"}, "iwarp help: there is no command 'prof'; did you mean perf?"},
        Wrong{
            "HelpOfUnknownBelow", {"help", "perf", "ran"}, "iwarp help: there is no command 'ran'; did you mean run?"},
        Wrong{"HelpOfNoCommand", {"help", "trace", "x"}, "iwarp help: iwarp trace has no command 'x'"},
        Wrong{"NearlyAFlag",
              {"rping", "-c", "--adress", "::1"},
              "iwarp rping: there is no flag --adress; did you mean --address?"},
        Wrong{"UnexpectedWord", {"rping", "-s", "here"}, "iwarp rping: unexpected argument 'here'"},
        Wrong{"ValueIsMissing", {"rping", "-c", "-a"}, "iwarp rping: --address: a value is missing"},
        Wrong{"UnknownFlag", {"rping", "-c", "-a", "127.0.0.1", "--nope"}, "--nope"},
        Wrong{"NoRole", {"rping"}, "choose one of -s (server) and -c (client)"},
        Wrong{"BothRoles", {"rping", "-s", "-c", "-a", "127.0.0.1"}, "does not go with"},
        Wrong{"ClientWithoutAddress", {"rping", "-c"}, "-a HOST"},
        Wrong{"ServerWithSource", {"rping", "-s", "-I", "127.0.0.1"}, "-I: goes with -c"},
        Wrong{"SourceIsNoAddress", {"rping", "-c", "-a", "::1", "-I", "eth0"}, "not an IP address"},
        Wrong{
            "SizeTooSmall", {"rping", "-c", "-a", "::1", "-S", "25"}, "--size: '25' is not a number from 26 to 65535"},
        Wrong{"SizeTooLarge", {"rping", "-c", "-a", "::1", "-S", "65536"}, "26 to 65535"},
        Wrong{"PortTooLarge", {"rping", "-c", "-a", "::1", "-p", "65536"}, "-p"},
        Wrong{"CountIsNoNumber", {"rping", "-c", "-a", "::1", "-C", "many"}, "many"},
        Wrong{"ServerAddressIsNoAddress", {"rping", "-s", "-a", "nowhere.invalid"}, "not an IP address"},
        Wrong{"MpaRevision", {"rping", "-c", "-a", "::1", "--mpa-rev", "3"}, "unknown value '3': use 1 or 2"},
        Wrong{"Crc", {"rping", "-c", "-a", "::1", "--crc", "maybe"}, "prefer-off"},
        Wrong{"Rtr", {"rping", "-c", "-a", "::1", "--rtr", "reed"}, "use write, read or send"},
        Wrong{"Fpdu", {"rping", "-c", "-a", "::1", "--fpdu", "huge"}, "emss"},
        Wrong{"Markers", {"rping", "-c", "-a", "::1", "--markers", "maybe"}, "refuse"},
        Wrong{"Ird", {"rping", "-c", "-a", "::1", "--ird", "16383"}, "0 to 16382"},
        Wrong{"PerfWithoutVerb", {"perf"}, "iwarp perf: choose a command: "},
        Wrong{"PerfUnknownVerb", {"perf", "rn"}, "iwarp perf: there is no command 'rn'; did you mean run?"},
        Wrong{"PerfUnknownTest", {"perf", "run", "write_bandwidth"}, "unknown test 'write_bandwidth': use tcp_bw"},
        Wrong{"PerfSize", {"perf", "run", "write_bw", "--size", "64q"}, "1 to 16m, such as 8, 64k, 1m"},
        Wrong{"PerfSizeOverflows",
              {"perf", "run", "write_bw", "--size", "18014398509481985k"},
              "1 to 16m, such as 8, 64k, 1m"},
        Wrong{"PerfSizeTrailing", {"perf", "run", "write_bw", "--size", "8 k x"}, "1 to 16m, such as 8, 64k, 1m"},
        Wrong{"PerfSizeAndAll", {"perf", "run", "write_bw", "--size", "8", "--all"}, "does not go with"},
        Wrong{"PerfBaseline",
              {"perf", "run", "write_bw", "--baseline", "better"},
              "unknown value 'better': use quick or best"},
        Wrong{"PerfNoTest", {"perf", "run", ""}, "name at least one test"},
        Wrong{"PerfBaselineRegion",
              {"perf", "run", "send_rate", "--size", "16m", "--depth", "64"},
              "must not exceed 1 GiB"},
        Wrong{"PerfProcessor", {"perf", "run", "write_lat", "--cpus", "0,1023"}, "cannot run on processor 1023"},
        Wrong{"PerfOneProcessor", {"perf", "run", "write_lat", "--cpus", "0"}, "such as 0,1"},
        Wrong{"PerfPeerPort", {"perf", "run", "write_bw", "127.0.0.1:-1"}, "has no valid port"},
        Wrong{"PerfListenPort", {"perf", "serve", "--listen", "127.0.0.1:-1"}, "has no valid port"},
        Wrong{"PerfRegion", {"perf", "run", "write_bw", "--size", "16m", "--depth", "128"}, "must not exceed 1 GiB"},
        Wrong{"PerfListen", {"perf", "serve", "--listen", "nowhere"}, "is not ADDRESS:PORT"},
        Wrong{"ProbeWithoutPeer", {"probe"}, "PEER"},
        Wrong{"ProbePeerWithWrongPort", {"probe", "127.0.0.1:x"}, "HOST:PORT"},
        Wrong{"ProbePeerAndListen", {"probe", "127.0.0.1", "--listen", "127.0.0.1:0"}, "--listen"},
        Wrong{"ProbeListenIsNoAddress", {"probe", "--listen", "nowhere.invalid:0"}, "not an IP address"},
        Wrong{"ProbeTrial", {"probe", "--listen", "127.0.0.1:0", "--only", "enhanced"}, "use accept rtr-write"},
        Wrong{"ProbeWaitWithoutListen", {"probe", "127.0.0.1", "--wait", "3"}, "--listen"},
        Wrong{"ProbeTimeout", {"probe", "[::1]:1", "--timeout", "0"}, "--timeout: '0' is not a number from 0.1 to 60"},
        Wrong{"ProbeQuestion", {"probe", "[::1]:1", "--only", "crc"}, "unknown question 'crc': use enhanced"},
        Wrong{"ProbePrivateData", {"probe", "[::1]:1", "--private-data", "0g"}, "up to 508 octets in hex"},
        Wrong{"FpdusWithoutTrace", {"rping", "-s", "-a", "127.0.0.1", "--trace-fpdus"}, "--trace"},
        Wrong{"TraceXid", {"trace", "x", "--xid", "zz"}, "--xid: 'zz' is no such number"},
        Wrong{"TraceWithoutFile", {"trace"}, "FILE"}, Wrong{"TracePort", {"trace", "x", "--port", "0"}, "--port"},
        Wrong{"GatewayWithoutDirection", {"gateway"}, "--rdma-listen with --tcp, or --tcp-listen with --rdma"},
        Wrong{"GatewayBothDirections",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1"},
              "choose one direction"},
        Wrong{"GatewayWithoutServer", {"gateway", "--rdma-listen", "127.0.0.1:0"}, "--tcp HOST:PORT"},
        Wrong{"GatewayWrongServer",
              {"gateway", "--tcp-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1"},
              "--rdma HOST:PORT"},
        Wrong{"GatewayListenIsNoAddress",
              {"gateway", "--rdma-listen", "localhost:0", "--tcp", "127.0.0.1:1"},
              "not an IP address"},
        Wrong{"GatewayListenWithoutPort",
              {"gateway", "--rdma-listen", "127.0.0.1", "--tcp", "127.0.0.1:1"},
              "--rdma-listen"},
        Wrong{"GatewayServerWithoutPort", {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1"}, "--tcp"},
        Wrong{"GatewayAllow",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--allow", "10.0.0.0/33"},
              "--allow"},
        Wrong{"GatewaySourceMap",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--source-map", "10.0.0.0/8"},
              "--source-map"},
        Wrong{"GatewayInline",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--inline", "1500"},
              "multiple of 1024"},
        Wrong{"GatewayReservedPort",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--reserved-port", "always"},
              "--reserved-port"},
        Wrong{"GatewayReservedPortTowardsRdma",
              {"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--reserved-port", "off"},
              "goes with --rdma-listen"},
        Wrong{"GatewayInsecurePortsOfRdmaClients",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--insecure-ports"},
              "goes with --tcp-listen"},
        Wrong{"GatewayWithoutIrd",
              {"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--ird", "0"},
              "--ird: 0 does not go with --tcp-listen"},
        Wrong{"GatewayPnfs",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--pnfs", "maybe"},
              "--pnfs"},
        Wrong{"GatewayRecord",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--connection-memory", "4",
               "--max-record", "8192"},
              "--max-record: must be at least 64 KiB below --connection-memory"},
        Wrong{"GatewayRecordOfTooMuchOfAllMemory",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--memory", "16", "--max-record",
               "1985"},
              "--max-record: must be at least 64 KiB below an eighth of --memory, which is 16 MiB"},
        Wrong{"GatewayCredits",
              {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--credits", "0"},
              "1 to 96"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(Help, OfEachCommandHasExamples) {
  const Finished all = run({"--help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.output, HasSubstr("rping"));
  EXPECT_THAT(all.output, HasSubstr("gateway"));
  EXPECT_THAT(all.output, HasSubstr("perf"));
  struct Command {
    std::vector<std::string> words;
    const char* flag;
  };
  for (const Command& command :
       {Command{{"rping"}, "--crc"}, Command{{"gateway"}, "--crc"}, Command{{"probe"}, "--only"},
        Command{{"trace"}, "--port"}, Command{{"perf"}, "idle"}, Command{{"perf", "run"}, "--crc"},
        Command{{"perf", "serve"}, "--listen"}, Command{{"perf", "idle"}, "--connections"}}) {
    std::string examples = "Examples:\n  iwarp";
    for (const std::string& word : command.words) examples += " " + word;
    std::vector<std::string> line = command.words;
    line.emplace_back("--help");
    const Finished f = run(line);
    EXPECT_EQ(f.code, 0) << examples;
    EXPECT_THAT(f.output, HasSubstr(examples));
    EXPECT_THAT(f.output, HasSubstr(command.flag));
  }
}

// Every command of the command line, as words behind "iwarp".
void gather(const CLI::App& app, const std::vector<std::string>& words, std::vector<std::vector<std::string>>& to) {
  to.push_back(words);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> below = words;
    below.push_back(sub->get_name());
    gather(*sub, below, to);
  }
}

std::vector<std::vector<std::string>> all_commands() {
  const tools::CommandLine commands;
  std::vector<std::vector<std::string>> all;
  gather(commands.app(), {}, all);
  return all;
}

TEST(Help, HasEightyColumnsAndNoWordsOfTheParser) {
  for (std::vector<std::string> words : all_commands()) {
    std::vector<std::string> asked = {"help"};
    asked.insert(asked.end(), words.begin(), words.end());
    words.emplace_back("--help");
    const Finished f = run(words);
    EXPECT_EQ(f.code, 0);
    EXPECT_EQ(f.output, run(asked).output);
    std::istringstream lines(f.output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    for (const char* jargon : {"UINT", "INT in", "TEXT", "FLOAT", "SUBCOMMAND", "REQUIRED"})
      EXPECT_THAT(f.output, Not(HasSubstr(jargon)));
  }
}

// In one line.
std::string help_of(const std::string& command) {
  std::istringstream words(run({command, "--help"}).output);
  std::string text;
  for (std::string word; words >> word;) text += word + " ";
  return text;
}

TEST(Help, WordsOptionsWithRangesChoicesAndDefaults) {
  EXPECT_THAT(help_of("gateway"), AllOf(HasSubstr(" --credits N "), HasSubstr("(1-96, default 64)")));
  EXPECT_THAT(help_of("gateway"), AllOf(HasSubstr(" --pcap FILE "), HasSubstr("(needs --trace)")));
  EXPECT_THAT(help_of("trace"), HasSubstr("(required)"));
  EXPECT_THAT(help_of("rping"), HasSubstr("(1, 2; default 2)"));
  EXPECT_THAT(help_of("rping"), HasSubstr("(not with --server)"));
}

// What cannot be written is an error of whatever printed it; who has closed a pipe knows.
TEST(Output, ThatCannotBeWrittenIsAnError) {
  for (std::vector<std::string> words : all_commands()) {
    std::string command = IWARP_COMMAND;
    for (const std::string& word : words) command += " " + word;
    const Finished full = shell(command + " --help 2>&1 >/dev/full; echo $?");
    EXPECT_THAT(full.output, MatchesRegex("iwarp.*: cannot write standard output: No space left on device\n1\n"));
  }
}

TEST(Output, ToAPipeThatNobodyReadsIsLeftQuietly) {
  const std::string fifo = ::testing::TempDir() + "iwarp-usage-" + std::to_string(::getpid()) + ".fifo";
  const Finished f = shell("mkfifo " + fifo + "; exec 5<>" + fifo + "; exec 6>" + fifo + "; exec 5<&-; rm " + fifo +
                           "; " + IWARP_COMMAND + " --help 2>&1 >&6; echo $?");
  EXPECT_EQ(f.output, "1\n");
}

TEST(Help, Version) {
  const Finished f = run({"--version"});
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.output, ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace iwarp::test
