// `iwarp probe PEER`: what an MPA responder negotiates, and how it deviates from RFC 5044 and RFC 6581.
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "tools/peer_address.h"
#include "tools/probe/dialogue.h"
#include "tools/probe_flags.h"

namespace iwarp::tools {
namespace {

using namespace probe;
using boost::asio::ip::tcp;

// Whether a deciding question was answered, or others are still to come; and whether there is anybody.
bool worth_going_on(std::span<const Record> records, bool all_asked) {
  const auto unreachable = [](const Record& r) { return r.answer.after_reply == TcpState::kUnreachable; };
  if (records.size() == 1 && unreachable(records[0])) return false;
  if (records.size() > 1 && unreachable(records.back()) && unreachable(records[records.size() - 2])) return false;
  return !all_asked || records.size() < kDecidingQuestions || learn(records).replies;
}

}  // namespace

int probe_responder(const ProbeFlags& flags) {
  const auto parsed = peer_address(flags.peer, kNfsRdmaPort);
  if (!parsed) throw CLI::ValidationError("PEER", parsed.error);
  const gateway::HostPort& peer = *parsed.value;
  const auto data = flags.private_data_at(peer.port);
  const auto list = chosen(flags, questions());
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  DialogueOptions options;
  options.timeout = flags.timeout();
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
      flags.print(line(records.back()));
      if (!worth_going_on(records, flags.only.empty())) break;
    }
  }
  if (records.size() == 1 && records[0].answer.after_reply == TcpState::kUnreachable)
    spdlog::error("cannot connect to {}: {}", peer.to_string(), records[0].answer.why);
  const Report report = make_report(peer.to_string(), std::move(records));
  flags.print(conclusion(report));
  if (json) json->write("probe", to_json(report));
  return exit_code(verdict(report));
}

}  // namespace iwarp::tools
