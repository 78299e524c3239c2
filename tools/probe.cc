// `iwarp probe`: what an MPA responder negotiates, and how it deviates from RFC 5044 and RFC 6581.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <iostream>

#include "iwarp/gateway/options.h"
#include "iwarp/rpcrdma/private_data.h"
#include "tools/command.h"
#include "tools/probe/dialogue.h"
#include "tools/probe/report.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using namespace probe;
using boost::asio::ip::tcp;

constexpr int kExitDeviations = 3;
constexpr std::uint16_t kNfsRdmaPort = 20049;
constexpr std::size_t kMaxPrivateData = mpa::kMaxPrivateDataBytes - mpa::kEnhancedDataBytes;

struct Flags {
  std::string peer;
  double timeout_seconds = 5;
  std::string private_data = "auto";
  std::vector<std::string> only;
  bool json = false;
  RecorderFlags recorder;
};

std::vector<std::byte> private_data(const Flags& flags, std::uint16_t port) {
  if (flags.private_data == "none" || (flags.private_data == "auto" && port != kNfsRdmaPort)) return {};
  if (flags.private_data == "auto" || flags.private_data == "rpcrdma") {
    // Not a promise that is kept: no RPC follows. Remote invalidation is not claimed.
    const auto message = rpcrdma::PrivateData{.send_bytes = 4096, .receive_bytes = 4096}.encode();
    return {message.begin(), message.end()};
  }
  const std::string& digits = flags.private_data;
  const bool hex = digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos && digits.size() % 2 == 0;
  if (!hex || digits.size() / 2 > kMaxPrivateData)
    throw CLI::ValidationError("--private-data", "'" + digits + "' is not none, rpcrdma or up to 508 octets in hex");
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return out;
}

std::vector<const Question*> chosen(const Flags& flags) {
  std::vector<const Question*> list;
  if (flags.only.empty()) {
    for (const Question& q : questions()) list.push_back(&q);
  }
  for (const std::string& name : flags.only) {
    list.push_back(question_named(name));
    if (list.back() != nullptr) continue;
    std::string text = "unknown question '" + name + "': use";
    for (const Question& q : questions()) text += " " + std::string(q.name);
    throw CLI::ValidationError("--only", text);
  }
  return list;
}

// Whether a deciding question was answered, or others are still to come.
bool worth_going_on(std::span<const Record> records, bool all_asked) {
  const Answer& last = records.back().answer;
  if (records.size() == 1 && last.after_reply == TcpState::kUnreachable) return false;
  return !all_asked || records.size() < kDecidingQuestions || learn(records).replies;
}

int run(const Flags& flags) {
  const auto parsed = gateway::HostPort::parse(flags.peer);
  if (!parsed) throw CLI::ValidationError("HOST:PORT", parsed.error);
  const gateway::HostPort& peer = *parsed.value;
  const auto data = private_data(flags, peer.port);
  const auto list = chosen(flags);
  DialogueOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<long>(flags.timeout_seconds * 1000));
  options.tap_maker = flags.recorder.tap_maker();

  boost::asio::io_context io(1);
  boost::system::error_code failed;
  const auto found = tcp::resolver(io).resolve(peer.host, std::to_string(peer.port), failed);
  if (failed) {
    std::cerr << "iwarp: " << peer.host << ": " << failed.message() << '\n';
    return kExitFailed;
  }
  auto address = found.begin();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::vector<Record> records;
  for (const Question* q : list) {
    if (terminal) std::cerr << "\r\033[K" << q->name << ": " << q->asks << std::flush;
    records.push_back({q, ask(*q, data, *address, options)});
    // A host may have addresses that its service does not listen on.
    while (records.size() == 1 && records[0].answer.after_reply == TcpState::kUnreachable && ++address != found.end())
      records[0].answer = ask(*q, data, *address, options);
    if (!worth_going_on(records, flags.only.empty())) break;
  }
  if (terminal) std::cerr << "\r\033[K";
  const Report report = make_report(peer.to_string(), std::move(records));
  if (flags.json) {
    std::cout << to_json(report).dump(2) << '\n';
  } else {
    std::cout << to_text(report);
  }
  if (!report.mpa) return kExitFailed;
  return grave(report) == 0 ? kExitOk : kExitDeviations;
}

std::string list_of_questions() {
  std::string text = "Connections, one after the other, each closed after the Reply or the RTR:\n";
  for (const Question& q : questions()) {
    std::string name(q.name);
    name.resize(18, ' ');
    text += "  " + name + std::string(q.asks) + "\n";
  }
  return text;
}

}  // namespace

Run add_probe(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd =
      app.add_subcommand("probe", "Tell what an MPA responder negotiates, and how it deviates from the RFCs");
  cmd->add_option("PEER", flags->peer, "HOST:PORT of the responder, such as 10.0.0.2:20049 or [::1]:7174")->required();
  cmd->add_option("--timeout", flags->timeout_seconds, "Seconds to wait for each connection and each answer")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  cmd->add_option(
         "--private-data", flags->private_data,
         "none; rpcrdma (RFC 8797, so that an NFS/RDMA server states its own); octets in hex; or auto: rpcrdma "
         "for port 20049, else none")
      ->capture_default_str();
  cmd->add_option("--only", flags->only, "Ask only these questions, separated by commas, in this order")
      ->delimiter(',')
      ->allow_extra_args(false);
  cmd->add_flag("--json", flags->json, "Print the report as JSON");
  flags->recorder.add(*cmd);
  cmd->footer(list_of_questions() +
              "Nothing else is sent, so a listener comes to no harm; one that serves a single client (rping -s without "
              "-P)\n"
              "takes only one question.\n"
              "Examples:\n"
              "  iwarp probe 10.0.0.2:20049                   all that the server negotiates\n"
              "  iwarp probe 10.0.0.2:7174 --only enhanced    one connection\n"
              "  iwarp probe [::1]:7174 --json --timeout 1    for scripts\n"
              "Exit code: 0 no deviation, 1 not reachable or no MPA responder, 2 wrong usage, 3 deviations found\n"
              "(advice, where the RFC says SHOULD, does not count).");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
