// `iwarp perf serve`: the other end of a test.
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <boost/asio/ip/address.hpp>
#include <csignal>

#include "iwarp/cm/connection.h"
#include "tools/perf/end.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf/server.h"
#include "tools/perf_command.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using boost::asio::ip::tcp;

struct Flags {
  std::string listen = "[::]:" + std::to_string(kPerfPort);
  bool once = false;
  unsigned patience = 10;
  bool with_parent = false;
  RecorderFlags recorder;
};

int run(const Flags& flags) {
  if (flags.with_parent) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  perf::tap_maker = flags.recorder.tap_maker();
  const gateway::HostPort at = perf_address(flags.listen, "--listen");
  boost::system::error_code bad;
  const auto host = boost::asio::ip::make_address(at.host, bad);
  if (bad) throw CLI::ValidationError("--listen", "'" + flags.listen + "' is not ADDRESS:PORT");
  try {
    perf::serve({host, at.port}, flags.once, std::chrono::seconds(flags.patience),
                [](const tcp::endpoint& on) { print("listening on " + cm::to_string(on) + '\n'); });
  } catch (const boost::system::system_error& e) {
    spdlog::error("cannot listen on {}: {}; choose another address or port with --listen", flags.listen,
                  e.code().message());
    return kExitFailed;
  }
  return perf::interrupted && !flags.with_parent ? kExitInterrupted : kExitOk;
}

}  // namespace

Run add_perf_serve(CLI::App& perf) {
  auto flags = std::make_shared<Flags>();
  CLI::App* serve = perf.add_subcommand("serve", "Be the other end: wait for `iwarp perf run`");
  serve->add_option("--listen", flags->listen, "Address and port of the control connection; tests use any free ports")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  serve->add_flag("--once", flags->once, "End when the first client has gone");
  serve
      ->add_option("--patience", flags->patience,
                   "Seconds that a client may take between its tests before it is sent away")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  serve->add_flag("--with-parent", flags->with_parent)->group("");
  flags->recorder.add(*serve);
  serve->footer(
      "Examples:\n"
      "  iwarp perf serve\n"
      "  iwarp perf serve --listen 10.0.0.2:7175 --once");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
