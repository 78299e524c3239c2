// `iwarp trace`: what the iWARP connections of a capture file did, a line for each protocol message.
#include <pcap/pcap.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "iwarp/trace/capture.h"
#include "iwarp/trace/line_writer.h"
#include "tools/command.h"

namespace iwarp::tools {
namespace {

using File = std::unique_ptr<pcap_t, decltype(&pcap_close)>;

struct Flags {
  std::string file;
  trace::CaptureOptions options;
};

std::optional<trace::LinkType> link_type(int dlt) {
  switch (dlt) {
    case DLT_EN10MB:
      return trace::LinkType::kEthernet;
    case DLT_LINUX_SLL:
      return trace::LinkType::kLinuxSll;
    case DLT_LINUX_SLL2:
      return trace::LinkType::kLinuxSll2;
    case DLT_NULL:
    case DLT_LOOP:
      return trace::LinkType::kLoopback;
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return trace::LinkType::kRawIp;
    default:
      return std::nullopt;
  }
}

// False when standard output takes no more: nobody reads it any longer.
bool print(trace::Capture& capture, trace::LineWriter& writer) {
  for (const trace::Record& r : capture.take()) std::puts(writer.line(r).c_str());
  return std::ferror(stdout) == 0;
}

int run(const Flags& flags) {
  char why[PCAP_ERRBUF_SIZE] = "";
  const File file(pcap_open_offline_with_tstamp_precision(flags.file.c_str(), PCAP_TSTAMP_PRECISION_NANO, why),
                  pcap_close);
  if (file == nullptr) {
    std::fprintf(stderr, "iwarp: cannot read %s as a capture: %s\n", flags.file.c_str(), why);
    return kExitFailed;
  }
  const int dlt = pcap_datalink(file.get());
  const auto link = link_type(dlt);
  if (!link) {
    const char* name = pcap_datalink_val_to_name(dlt);
    std::fprintf(stderr,
                 "iwarp: %s was captured on a link of type %s (%d): only Ethernet, Linux cooked, loopback and raw IP "
                 "are understood\n",
                 flags.file.c_str(), name == nullptr ? "unknown" : name, dlt);
    return kExitFailed;
  }
  trace::Capture capture(flags.options);
  trace::LineWriter writer{{}};
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  std::optional<Duration> first;
  Duration at{};
  int more = 0;
  while ((more = pcap_next_ex(file.get(), &header, &bytes)) == 1) {
    const Duration time = std::chrono::seconds(header->ts.tv_sec) + std::chrono::nanoseconds(header->ts.tv_usec);
    if (!first) first = time;
    at = std::max(at, time - *first);
    capture.packet(at, *link, std::as_bytes(std::span(bytes, header->caplen)), header->len);
    if (!print(capture, writer)) return kExitFailed;
  }
  capture.finish(at);
  if (!print(capture, writer) || std::fflush(stdout) != 0) return kExitFailed;
  if (more != PCAP_ERROR_BREAK) std::fprintf(stderr, "iwarp: %s: %s\n", flags.file.c_str(), pcap_geterr(file.get()));
  const trace::Capture::Counts& c = capture.counts();
  const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
  if (c.cut + c.fragments > 0)
    std::fprintf(stderr, "iwarp: left out %llu packets without whole headers and %llu IP fragments\n", n(c.cut),
                 n(c.fragments));
  if (c.connections == 0) std::fprintf(stderr, "iwarp: no iWARP connection in %llu packets\n", n(c.packets));
  return more == PCAP_ERROR_BREAK && c.connections > 0 && c.totals.all_decoded() ? kExitOk : kExitFailed;
}

}  // namespace

Run add_trace(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("trace", "Show the MPA, DDP, RDMAP and RPC-over-RDMA messages of a capture file");
  cmd->add_option("FILE", flags->file, "Capture, pcap or pcapng; - is standard input")->required();
  cmd->add_option("--port", flags->options.port, "Only TCP connections with this port at either end")
      ->check(CLI::Range(1, 65535));
  cmd->add_option("--stream", flags->options.stream, "Only the connection of this number, the second word of a line");
  cmd->add_flag("-v,--verbose", flags->options.verbose, "Also a line for each FPDU and each DDP segment");
  cmd->footer(
      "Examples:\n"
      "  iwarp trace nfs.pcap                        every message, both directions\n"
      "  iwarp trace nfs.pcap --stream 2 -v          one connection, down to the FPDUs\n"
      "  tcpdump -i eth0 -w - port 20049 | iwarp trace -\n"
      "Lines:  <ms> <connection> tx|rx <layer> <PDU>(field=value, ...)   tx is what the TCP client sent.\n"
      "Exit code: 0 all decoded, 1 something was not (or was not captured), 2 wrong usage.");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
