// `iwarp probe --llp sctp` against our own commands, and against peers that do not behave.
#include <gmock/gmock.h>

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/sctp_cm/net.h"
#include "tests/tools/sctp_raw_server.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

Finished probe(const std::string& address, const Words& more = {}, const char* timeout = "20") {
  Words words{"probe", address, "--llp", "sctp", "--timeout", timeout};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

json probe_json(const std::string& address, Words more = {}, const char* timeout = "20") {
  more.emplace_back("--json");
  const Finished f = probe(address, more, timeout);
  json j = json::parse(f.output.substr(f.output.find("{\n")));  // the log goes before it
  j["code"] = f.code;
  return j;
}

Words requirements(const json& connection) {
  Words ids;
  for (const json& d : connection.at("deviations")) ids.push_back(d.at("requirement"));
  return ids;
}

TEST(ProbeSctp, OurServerDeviatesInNothing) {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    Subprocess server({"rping", "-s", "-P", "-a", host, "-p", "0", "--llp", "sctp"});
    const std::string port = server.listening_port();
    const json j = probe_json((host == "::1" ? "[::1]:" : "127.0.0.1:") + port);
    EXPECT_EQ(j["code"], 0) << j;
    EXPECT_EQ(j["llp"], "sctp");
    ASSERT_EQ(j["connections"].size(), tools::probe::sctp_questions().size());
    for (const json& c : j["connections"]) {
      const std::string name = c["question"];
      EXPECT_EQ(c["association"]["indication"], 1);
      EXPECT_EQ(c["association"]["streams_in"], 64);
      EXPECT_EQ(c["sctp"], "open") << name;
      if (name == "peer-to-peer") {
        EXPECT_THAT(requirements(c), ElementsAre("RFC6581-9.2-12")) << "advice: it names one form of two";
      } else {
        EXPECT_THAT(requirements(c), IsEmpty()) << c;
      }
      const json& session = c["sessions"].back();
      if (name == "rtr-read" || name == "rtr-write" || name == "two-sessions") {
        EXPECT_EQ(session["rtr"]["fate"], "taken");
      }
      if (session["answer"]["code"] == kEnhancedAccept) {
        EXPECT_EQ(session["terminate"], true) << name;
      }
    }
    EXPECT_EQ(j["summary"]["several"],
              "two on an association: accepted, and each ends by itself; a stream again: accepted");
    EXPECT_THAT(j["summary"]["ird_ord"], HasSubstr("at most 128/1"));
    // It came to no harm.
    const Finished ping = run({"rping", "-c", "-a", host, "-p", port, "-C", "1", "-V", "--llp", "sctp"});
    EXPECT_EQ(ping.code, 0) << ping.output;
  }
}

TEST(ProbeSctp, AGatewayStatesItsInlineSizes) {
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  std::optional<tcp::acceptor> nfs(std::in_place, io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  Subprocess gateway({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp",
                      "127.0.0.1:" + std::to_string(nfs->local_endpoint().port()), "--llp", "sctp", "--sctp-packet",
                      "9000", "--reserved-port", "off"});
  const std::string address = "127.0.0.1:" + gateway.listening_port();
  const Words flags{"--private-data", "rpcrdma", "--sctp-packet", "8900", "--only", "enhanced,plain,two-sessions"};
  const Finished f = probe(address, flags);
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, AllOf(HasSubstr("inline        sends "), HasSubstr("(RFC 8797)\n"),
                              HasSubstr("two on an association: accepted, and each ends by itself"),
                              HasSubstr("; 8884 octets of a message in a packet"),
                              HasSubstr("; not known for 14 questions of 17\n")));
  nfs.reset();  // then it has nobody to serve
  EXPECT_EQ(probe(address, flags).code, 6);
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

TEST(ProbeSctp, NobodyListens) {
  const Finished f = probe("127.0.0.1:9");
  EXPECT_EQ(f.code, 4);
  EXPECT_THAT(f.output, AllOf(HasSubstr("cannot connect to 127.0.0.1:9: Connection refused: no program has that UDP"),
                              HasSubstr("127.0.0.1:9 cannot be reached"), Not(HasSubstr("plain"))));
  boost::asio::io_context io;  // or nobody reads there
  const boost::asio::ip::udp::socket silent(io, {boost::asio::ip::address_v4::loopback(), 0});
  EXPECT_THAT(probe("127.0.0.1:" + std::to_string(silent.local_endpoint().port()), {}, "0.3").output,
              HasSubstr("no answer of an SCTP peer in time"));
  EXPECT_THAT(probe("does-not-exist.invalid", {}, "0.3").output,
              HasSubstr("cannot resolve the host name does-not-exist.invalid"));
}

TEST(ProbeSctp, SomethingElseIsNoDdp) {
  for (const auto& [indication, says] :
       {std::pair{std::optional<std::uint32_t>{}, "its INIT ACK has no adaptation indication"},
        {std::optional<std::uint32_t>{7}, "its INIT ACK has adaptation indication 7"}}) {
    const SctpRawServer server([](auto&, auto, const SctpMessage&) { ADD_FAILURE() << "nothing may be sent"; },
                               {.indication = indication});
    const Finished f = probe(server.address());
    EXPECT_EQ(f.code, 5) << f.output;
    EXPECT_THAT(f.output, AllOf(HasSubstr("is not known as a DDP peer over SCTP: SCTP, but no DDP: "), HasSubstr(says),
                                Not(HasSubstr("plain"))));
  }
}

TEST(ProbeSctp, SilenceIsNoDdpAfterTwoAssociations) {
  const SctpRawServer server([](auto&, auto, const SctpMessage&) {});
  const Finished f = probe(server.address(), {}, "0.3");
  EXPECT_EQ(f.code, 5) << f.output;
  EXPECT_THAT(f.output, AllOf(HasSubstr("enhanced          no answer\nplain             no answer\n\n"),
                              HasSubstr("is not known as a DDP peer over SCTP: no answer")));
}

TEST(ProbeSctp, OneThatRejectsAllIsExitCode6) {
  const SctpRawServer server([](auto& to, auto stream, const SctpMessage& m) {
    if (const auto c = control_of(m); c && c->is(sctp::Function::kInitiate))
      put(to, stream,
          c->has_enhanced_code() ? control(0, kEnhancedReject, hex("0000 0000 0102")) : control(0, kReject));
  });
  const json j = probe_json(server.address(), {"--only", "enhanced,plain"});
  EXPECT_EQ(j["code"], 6) << j;
  EXPECT_EQ(j["verdict"], "refused");
  EXPECT_EQ(j["connections"][0]["sessions"][0]["answer"]["private_data_hex"], "0102");
}

// As one that has RFC 5043 only.
TEST(ProbeSctp, APeerWithoutRfc6581IsHealthy) {
  const SctpRawServer server([](auto& to, auto stream, const SctpMessage& m) {
    const auto c = control_of(m);
    if (!c) return;
    if (c->is(sctp::Function::kInitiate)) put(to, stream, control(0, c->has_enhanced_code() ? kTerminate : kAccept));
    if (c->is(sctp::Function::kTerminate) || !c->function()) put(to, stream, control(c->ssn, kTerminate));
  });
  const json j = probe_json(server.address());
  EXPECT_EQ(j["code"], 0) << j;
  EXPECT_EQ(j["summary"]["sessions"], "enhanced: Terminate; plain: accepted; unknown Function Code: Terminate");
}

// Does all it is asked for, whatever becomes of its packets.
TEST(ProbeSctp, ABadNetworkIsNoDeviation) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const SctpRawServer server(
        [](auto& to, auto stream, const SctpMessage& m) {
          const auto c = control_of(m);
          if (!c) put(to, stream, read_response(1));
          if (c && c->is(sctp::Function::kInitiate))
            put(to, stream, c->enhanced ? control(0, kEnhancedAccept, octets_of(*c->enhanced)) : control(0, kAccept));
          if (c && c->is(sctp::Function::kTerminate)) put(to, stream, control(c->ssn, kTerminate));
        },
        {}, {.fate = sctp_cm::bad_network(seed, 10, 20, 10)});
    const json j = probe_json(server.address(), {"--only", "enhanced,plain,rtr-read,two-sessions,stream-again"});
    EXPECT_EQ(j["code"], 0) << j;
    EXPECT_EQ(j["connections"][2]["sessions"][0]["rtr"]["fate"], "taken") << j;
    EXPECT_THAT(j["summary"]["several"], HasSubstr("accepted, and each ends by itself")) << j;
  }
}

TEST(ProbeSctp, JsonInAFileLeavesTheText) {
  const SctpRawServer server(answering(control(0, kAccept)));
  const std::string file = ::testing::TempDir() + "probe-sctp-" + std::to_string(::getpid()) + ".json";
  const Finished f = probe(server.address(), {"--only", "plain", "--json", file});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, HasSubstr("plain             accepted: Accept\n"));
  std::remove(file.c_str());
}

TEST(ProbeSctp, SaysWhatIsWrong) {
  const auto refused = [](Words words) {
    words.insert(words.begin(), "probe");
    const Finished f = run(words);
    EXPECT_EQ(f.code, 2) << f.output;
    return f.output;
  };
  EXPECT_THAT(refused({"--llp", "sctp"}), HasSubstr("PEER"));
  EXPECT_THAT(refused({"--listen", "127.0.0.1:0", "--llp", "sctp"}),
              HasSubstr("--llp: --listen examines initiators of MPA over TCP"));
  EXPECT_THAT(refused({"127.0.0.1", "--llp", "sctp", "--trace", "-"}),
              HasSubstr("--trace and --pcap record connections over TCP"));
  EXPECT_THAT(refused({"127.0.0.1", "--llp", "sctp", "--only", "crc-off"}),
              HasSubstr("unknown question 'crc-off': use enhanced plain"));
  EXPECT_THAT(refused({"127.0.0.1", "--only", "plain"}),
              HasSubstr("unknown question 'plain': use enhanced revision-1"));
  EXPECT_THAT(refused({"127.0.0.1", "--sctp-packet", "9000"}), HasSubstr("--sctp-packet: goes with --llp sctp"));
}

struct SctpBreaker {
  const char* name;
  const char* question;
  SctpRawServer::Behave behave;
  Words requirements;
};

class BadSctpPeer : public ::testing::TestWithParam<SctpBreaker> {};

TEST_P(BadSctpPeer, IsExitCode3) {
  const SctpRawServer server(GetParam().behave);
  const json j = probe_json(server.address(), {"--only", GetParam().question}, "2");
  EXPECT_EQ(j["code"], 3) << j;
  EXPECT_EQ(requirements(j["connections"][0]), GetParam().requirements) << j;
}

const SctpMessage kGood = control(0, kEnhancedAccept, hex("0008 0008"));

INSTANTIATE_TEST_SUITE_P(
    Kind, BadSctpPeer,
    ::testing::Values(
        SctpBreaker{"SendsOrdered", "enhanced", answering({17, true, kGood.octets}), {"RFC5043-10-1"}},
        SctpBreaker{"AcceptsAsPlain", "enhanced", answering(control(0, kAccept)), {"RFC6581-7-22"}},
        SctpBreaker{
            "WantsMoreReads", "enhanced", answering(control(0, kEnhancedAccept, hex("0008 0064"))), {"RFC6581-9.1-12"}},
        SctpBreaker{"AnswersNoReadRtr",
                    "rtr-read",
                    answering(control(0, kEnhancedAccept, hex("8008 4008"))),
                    {"RFC6581-9.2-6"}},
        SctpBreaker{"LeavesAGap", "enhanced", answering({kGood, control(7, kTerminate)}), {"RFC5043-6-2"}},
        SctpBreaker{"AnswersOnAnotherStream",
                    "enhanced",
                    [](auto& to, auto, const SctpMessage& m) {
                      if (const auto c = control_of(m); c && c->is(sctp::Function::kInitiate)) {
                        put(to, sctp::StreamId{0}, kGood);
                        put(to, sctp::StreamId{9}, control(0, kAccept));
                      }
                    },
                    {"RFC5043-6.1-2"}},
        SctpBreaker{"PrivateDataOf600Octets", "plain", answering(control(0, kAccept, Bytes(600))), {"RFC5043-5.2.3-5"}},
        SctpBreaker{"EndsAllForOne",
                    "two-sessions",
                    [](auto& to, auto stream, const SctpMessage& m) {
                      const auto c = control_of(m);
                      if (m.ppid == 16) put(to, stream, read_response(1));
                      if (c && c->is(sctp::Function::kInitiate))
                        put(to, stream, control(0, kEnhancedAccept, hex("8008 4008")));
                      if (c && c->is(sctp::Function::kTerminate)) to.abort("one has ended");
                    },
                    {"RFC5043-11.3-5"}},
        SctpBreaker{"CountsOnInTheNextSession",
                    "stream-again",
                    [n = 0U](auto& to, auto stream, const SctpMessage& m) mutable {
                      const auto c = control_of(m);
                      if (c && c->is(sctp::Function::kInitiate))
                        put(to, stream, control(n++, kEnhancedAccept, hex("0008 0008")));
                      if (c && c->is(sctp::Function::kTerminate)) put(to, stream, control(n++, kTerminate));
                    },
                    {"RFC5043-6.1-1"}},
        SctpBreaker{"Floods",
                    "enhanced",
                    answering(std::vector<SctpMessage>(300, control(0, kEnhancedAccept, hex("0008 0008")))),
                    {"RFC5043-5.2.1-2"}}),
    [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace iwarp::test
