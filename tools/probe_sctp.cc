// `iwarp probe PEER --llp sctp`: what a passive DDP/SCTP peer negotiates, and how it deviates from RFC 5043 and RFC
// 6581.
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <optional>
#include <stdexcept>

#include "tools/peer_address.h"
#include "tools/probe/sctp_dialogue.h"
#include "tools/probe/sctp_report.h"
#include "tools/probe_flags.h"

namespace iwarp::tools {
namespace {

using namespace probe;
using boost::asio::ip::udp;

// Whether there is anybody, whether that is DDP, and whether a deciding question was answered or is still to come.
bool worth_asking_more(std::span<const SctpRecord> records, bool all_asked) {
  if (records.size() == 1 && !records[0].answer.init) return false;
  if (records.size() > 1 && !records.back().answer.init && !records[records.size() - 2].answer.init) return false;
  if (records.back().answer.init && !indicates_ddp(records.back().answer)) return false;
  return !all_asked || records.size() < kDecidingSctpQuestions || learn(records).answers;
}

}  // namespace

int probe_sctp(const ProbeFlags& flags) {
  const auto parsed = peer_address(flags.peer, kNfsRdmaPort);
  if (!parsed) throw CLI::ValidationError("PEER", parsed.error);
  const gateway::HostPort& peer = *parsed.value;
  const auto data = flags.private_data_at(peer.port);
  const auto list = chosen(flags, sctp_questions());
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  SctpDialogueOptions options;
  options.timeout = flags.timeout();
  options.packet_bytes = flags.llp.sctp().packet_bytes;
  const auto dialogue = make_sctp_dialogue(options);
  if (!dialogue) throw std::runtime_error(dialogue.error().why);

  std::vector<SctpRecord> records;
  boost::asio::io_context io(1);
  boost::system::error_code failed;
  const auto found = udp::resolver(io).resolve(peer.host, std::to_string(peer.port), failed);
  if (failed) {
    spdlog::error("cannot resolve the host name {}: {}", peer.host, failed.message());
  } else {
    auto address = found.begin();
    for (const SctpQuestion* q : list) {
      records.push_back({q, (*dialogue)->ask(*q, data, *address)});
      // A host may have addresses that its service does not listen on.
      while (records.size() == 1 && !records[0].answer.init && ++address != found.end())
        records[0].answer = (*dialogue)->ask(*q, data, *address);
      flags.print(line(records.back()));
      if (!worth_asking_more(records, flags.only.empty())) break;
    }
  }
  if (records.size() == 1 && !records[0].answer.init)
    spdlog::error("cannot connect to {}: {}", peer.to_string(), records[0].answer.why);
  const SctpReport report = make_report(peer.to_string(), std::move(records));
  flags.print(conclusion(report));
  if (json) json->write("probe", to_json(report));
  return exit_code(verdict(report));
}

}  // namespace iwarp::tools
