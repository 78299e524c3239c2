// `iwarp probe`: what an MPA responder negotiates, and how it deviates from RFC 5044 and RFC 6581.
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <iostream>
#include <optional>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/command.h"
#include "tools/json_file.h"
#include "tools/peer_address.h"
#include "tools/probe/dialogue.h"
#include "tools/probe/report.h"
#include "tools/recorder.h"
#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

using namespace probe;
using boost::asio::ip::tcp;

constexpr int kExitDeviations = 3;
constexpr int kExitUnreachable = 4;
constexpr int kExitNoMpa = 5;
constexpr int kExitRefused = 6;
constexpr std::uint16_t kNfsRdmaPort = 20049;
constexpr std::size_t kMaxPrivateData = mpa::kMaxPrivateDataBytes - mpa::kEnhancedDataBytes;

struct Flags {
  std::string peer;
  double timeout_seconds = 5;
  std::string private_data = "auto";
  std::vector<std::string> only;
  JsonFlag json;
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

// Whether a deciding question was answered, or others are still to come; and whether there is anybody.
bool worth_going_on(std::span<const Record> records, bool all_asked) {
  const auto unreachable = [](const Record& r) { return r.answer.after_reply == TcpState::kUnreachable; };
  if (records.size() == 1 && unreachable(records[0])) return false;
  if (records.size() > 1 && unreachable(records.back()) && unreachable(records[records.size() - 2])) return false;
  return !all_asked || records.size() < kDecidingQuestions || learn(records).replies;
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHealthy:
      return kExitOk;
    case Verdict::kDeviations:
      return kExitDeviations;
    case Verdict::kUnreachable:
      return kExitUnreachable;
    case Verdict::kNoMpa:
      return kExitNoMpa;
    case Verdict::kRefused:
      break;
  }
  return kExitRefused;
}

// Text goes to standard output at once, unless JSON takes its place.
void print(const Flags& flags, const std::string& text) {
  if (flags.json.on_standard_output()) return;
  std::cout << text;
  check_standard_output();
}

int run(const Flags& flags) {
  const auto parsed = peer_address(flags.peer, kNfsRdmaPort);
  if (!parsed) throw CLI::ValidationError("PEER", parsed.error);
  const gateway::HostPort& peer = *parsed.value;
  const auto data = private_data(flags, peer.port);
  const auto list = chosen(flags);
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  DialogueOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<long>(flags.timeout_seconds * 1000));
  options.tap_maker = flags.recorder.tap_maker();

  std::vector<Record> records;
  boost::asio::io_context io(1);
  boost::system::error_code failed;
  const auto found = tcp::resolver(io).resolve(peer.host, std::to_string(peer.port), failed);
  if (failed) {
    spdlog::error("cannot resolve the host name {}: {}", peer.host, failed.message());
  } else {
    auto address = found.begin();
    for (const Question* q : list) {
      records.push_back({q, ask(*q, data, *address, options)});
      // A host may have addresses that its service does not listen on.
      while (records.size() == 1 && records[0].answer.after_reply == TcpState::kUnreachable && ++address != found.end())
        records[0].answer = ask(*q, data, *address, options);
      print(flags, line(records.back()));
      if (!worth_going_on(records, flags.only.empty())) break;
    }
  }
  if (records.size() == 1 && records[0].answer.after_reply == TcpState::kUnreachable)
    spdlog::error("cannot connect to {}: {}", peer.to_string(), records[0].answer.why);
  const Report report = make_report(peer.to_string(), std::move(records));
  print(flags, conclusion(report));
  if (json) json->write("probe", to_json(report));
  return exit_code(verdict(report));
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
  cmd->add_option("PEER", flags->peer,
                  "The responder: HOST or HOST:PORT, such as 10.0.0.2 or [::1]:7174; the port is "
                  "20049 unless it is named")
      ->required();
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
  flags->json.add(*cmd, "Print the report as JSON");
  flags->recorder.add(*cmd);
  cmd->footer(
      list_of_questions() +
      "Nothing else is sent, so a listener comes to no harm; one that serves a single client (rping -s without "
      "-P)\n"
      "takes only one question.\n"
      "Examples:\n"
      "  iwarp probe 10.0.0.2                         all that the server at port 20049 negotiates\n"
      "  iwarp probe 10.0.0.2:7174 --only enhanced    one connection\n"
      "  iwarp probe [::1]:7174 --json --timeout 1    for scripts\n"
      "Exit code: 0 no deviation, 1 failed otherwise, 2 wrong usage, 3 deviations (advice, where the RFC says\n"
      "SHOULD, does not count), 4 unreachable: no TCP connection, 5 no MPA: something else answers, or nothing,\n"
      "6 refused: it speaks MPA and rejects every Request.");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
