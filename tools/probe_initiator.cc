// `iwarp probe --listen`: what an MPA initiator asks for, what it does with the answers, and how it deviates from RFC
// 5044 and RFC 6581.
#include <spdlog/spdlog.h>

#include <boost/asio/ip/address.hpp>

#include "iwarp/cm/description.h"
#include "tools/command.h"
#include "tools/peer_address.h"
#include "tools/probe/doorway.h"
#include "tools/probe/initiator_report.h"
#include "tools/probe_flags.h"

namespace iwarp::tools {
namespace {

using namespace probe;
using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

tcp::endpoint listen_at(const std::string& text) {
  if (text.empty()) return {boost::asio::ip::make_address("::"), kNfsRdmaPort};
  const auto parsed = peer_address(text, kNfsRdmaPort);
  if (!parsed) throw CLI::ValidationError("--listen", parsed.error);
  boost::system::error_code bad;
  const auto address = boost::asio::ip::make_address(parsed.value->host, bad);
  if (bad) throw CLI::ValidationError("--listen", "'" + parsed.value->host + "' is not an IP address of this host");
  return {address, parsed.value->port};
}

}  // namespace

int probe_initiator(const ProbeFlags& flags) {
  const tcp::endpoint at = listen_at(flags.listen);
  const auto data = flags.private_data_at(at.port());
  const auto list = chosen(flags, trials());
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  EncounterOptions options;
  options.timeout = flags.timeout();
  const cm::TapMaker tap_maker = flags.recorder.tap_maker();
  Doorway doorway(at);
  spdlog::info("listening on {}", cm::to_string(doorway.local()));
  spdlog::info("{}, one for each connection: let the initiator connect so often; Ctrl-C ends it",
               count_of(list.size(), "question"));

  std::vector<Encounter> encounters;
  bool interrupted = false;
  for (const Trial* trial : list) {
    std::string peer;
    std::optional<TimePoint> deadline;
    if (flags.wait_seconds > 0)
      deadline = Clock::now() + std::chrono::milliseconds(static_cast<long>(flags.wait_seconds * 1000));
    {
      Socket socket;
      const auto came = doorway.accept(socket, peer, deadline, tap_maker);
      interrupted = came == Doorway::Came::kInterrupted;
      if (came != Doorway::Came::kSomebody) break;
      encounters.push_back(meet(*trial, data, socket, peer, options));
    }
    Encounter& e = encounters.back();
    if (trial->answer == Trial::Answer::kClose && e.parsed_request()) {
      Socket again;
      const auto came = doorway.accept(again, peer, Clock::now() + options.timeout, tap_maker);
      if (came == Doorway::Came::kSomebody) e.next_request = request_of(again, options);
    }
    flags.print(line(e));
  }
  const InitiatorReport report = make_report(std::move(encounters));
  flags.print(conclusion(report));
  if (json) json->write("probe", to_json(report));
  if (interrupted && report.encounters.empty()) return kExitInterrupted;
  return exit_code(verdict(report));
}

}  // namespace iwarp::tools
