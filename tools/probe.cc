// `iwarp probe`: what another implementation of MPA, or of DDP over SCTP, negotiates, and how it deviates from RFC 5044
// or RFC 5043, and from RFC 6581.
#include "tools/command.h"
#include "tools/probe/question.h"
#include "tools/probe/sctp_question.h"
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
  flags->llp.add(*cmd, "Connection set-up");
  flags->json.add(*cmd, "Print the report as JSON");
  flags->recorder.add(*cmd);
  cmd->footer(
      "Connections to PEER, one after the other, each closed after the Reply or the RTR:\n" +
      list_of(probe::questions()) +
      "Nothing else is sent, so a listener comes to no harm; one that serves a single client (rping -s without "
      "-P)\n"
      "takes only one question.\n"
      "With --llp sctp: associations to PEER instead, one after the other, each shut down after its sessions were "
      "ended:\n" +
      list_of(probe::sctp_questions()) +
      "Answers to an initiator, one for each connection that it makes, each closed after its first message:\n" +
      list_of(probe::trials()) +
      "The initiator has to connect so often, in a loop for instance:\n"
      "  while sleep 1; do iwarp rping -c -a HOST -p PORT -C 1; done\n"
      "Examples:\n"
      "  iwarp probe 10.0.0.2                         the server at port 20049\n"
      "  iwarp probe 10.0.0.2:7174 --only enhanced    one connection\n"
      "  iwarp probe [::1]:7174 --json --timeout 1    for scripts\n"
      "  iwarp probe --listen 0.0.0.0:7174            what an initiator does\n"
      "  iwarp probe 10.0.0.2:7174 --llp sctp         a peer that has DDP over SCTP\n"
      "Exit code: 0 no deviation, 1 failed otherwise, 2 wrong usage, 3 deviations (advice, where the RFC says\n"
      "SHOULD, does not count), 4 unreachable: no TCP connection, or no SCTP association,\n"
      "5 no MPA, or no DDP over SCTP: something else answers, or nothing, 6 refused: it rejects every Request or\n"
      "Initiate, 130 interrupted before an initiator came.");
  return [flags, peer, listen]() -> int {
    flags->llp.check();
    const bool sctp = flags->llp.kind() == llp::Kind::kSctp;
    if (sctp && listen->count() != 0)
      throw CLI::ValidationError("--llp",
                                 "--listen examines initiators of MPA over TCP; over SCTP name a passive peer, PEER");
    if (sctp && flags->recorder.given())
      throw CLI::ValidationError("--llp",
                                 "--trace and --pcap record connections over TCP: capture the packets of SCTP, "
                                 "and read them with `iwarp trace`");
    if (listen->count() != 0) return probe_initiator(*flags);
    if (peer->count() == 0)
      throw CLI::ValidationError("probe", "name the listener, PEER, or wait for an initiator with --listen");
    return sctp ? probe_sctp(*flags) : probe_responder(*flags);
  };
}

}  // namespace iwarp::tools
