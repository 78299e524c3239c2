// `iwarp probe`: what another MPA implementation negotiates, and how it deviates from RFC 5044 and RFC 6581.
#include "tools/command.h"
#include "tools/probe/question.h"
#include "tools/probe/trial.h"
#include "tools/probe_flags.h"

namespace iwarp::tools {

Run add_probe(CLI::App& app) {
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* cmd = app.add_subcommand(
      "probe", "Tell what an iWARP listener, or with --listen an initiator, negotiates, and where it deviates");
  auto* peer = cmd->add_option("PEER", flags->peer,
                               "The listener: HOST or HOST:PORT, such as 10.0.0.2 or [::1]:7174; the port is 20049 "
                               "unless it is named");
  auto* listen = cmd->add_option("--listen", flags->listen,
                                 "Examine an initiator instead: take its connections at this address and port "
                                 "(default: all addresses, port 20049)")
                     ->type_name("ADDRESS:PORT")
                     ->expected(0, 1)
                     ->excludes(peer);
  cmd->add_option("--timeout", flags->timeout_seconds, "Seconds to wait for each connection and each answer")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  cmd->add_option("--wait", flags->wait_seconds,
                  "With --listen: end when no connection comes for so many seconds; 0: wait until interrupted")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str()
      ->needs(listen);
  cmd->add_option(
         "--private-data", flags->private_data,
         "none; rpcrdma (RFC 8797, so that an NFS/RDMA server states its own); octets in hex; or auto: rpcrdma "
         "for port 20049, else none")
      ->capture_default_str();
  cmd->add_option("--only", flags->only, "Ask only these questions, separated by commas, in this order")
      ->type_name("QUESTION")
      ->delimiter(',')
      ->allow_extra_args(false);
  flags->json.add(*cmd, "Print the report as JSON");
  flags->recorder.add(*cmd);
  cmd->footer(
      "Connections to PEER, one after the other, each closed after the Reply or the RTR:\n" +
      list_of(probe::questions()) +
      "Nothing else is sent, so a listener comes to no harm; one that serves a single client (rping -s without "
      "-P)\n"
      "takes only one question.\n"
      "Answers to an initiator, one for each connection that it makes, each closed after its first message:\n" +
      list_of(probe::trials()) +
      "The initiator has to connect so often, in a loop for instance:\n"
      "  while sleep 1; do iwarp rping -c -a HOST -p PORT -C 1; done\n"
      "Examples:\n"
      "  iwarp probe 10.0.0.2                         the server at port 20049\n"
      "  iwarp probe 10.0.0.2:7174 --only enhanced    one connection\n"
      "  iwarp probe [::1]:7174 --json --timeout 1    for scripts\n"
      "  iwarp probe --listen 0.0.0.0:7174            what an initiator does\n"
      "Exit code: 0 no deviation, 1 failed otherwise, 2 wrong usage, 3 deviations (advice, where the RFC says\n"
      "SHOULD, does not count), 4 unreachable: no TCP connection, 5 no MPA: something else answers, or nothing,\n"
      "6 refused: it speaks MPA and rejects every Request, 130 interrupted before an initiator came.");
  return [flags, peer, listen]() -> int {
    if (listen->count() != 0) return probe_initiator(*flags);
    if (peer->count() == 0)
      throw CLI::ValidationError("probe", "name the listener, PEER, or wait for an initiator with --listen");
    return probe_responder(*flags);
  };
}

}  // namespace iwarp::tools
