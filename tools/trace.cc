// `iwarp trace`: what the iWARP connections of a capture file did, a line for each protocol message.
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "iwarp/trace/capture.h"
#include "iwarp/trace/record_filter.h"
#include "tools/command.h"
#include "tools/standard_output.h"
#include "tools/trace_output.h"

namespace iwarp::tools {
namespace {

using File = std::unique_ptr<pcap_t, decltype(&pcap_close)>;

constexpr std::size_t kColumns = 120;

struct Flags {
  std::string file;
  trace::CaptureOptions options;
  trace::RecordFilter filter;
  std::string time = "relative";
  std::string color = "auto";
  bool summary = false;
  JsonFlag json;
  std::string html;
};

bool wants_color(const std::string& flag) {
  if (flag != "auto") return flag == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return ::isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::unique_ptr<TraceOutput> make_text(const Flags& flags) {
  if (flags.summary) return make_trace_summary();
  trace::LineStyle style;
  style.time = flags.time == "absolute" ? trace::TimeStyle::kAbsolute
               : flags.time == "delta"  ? trace::TimeStyle::kDelta
                                        : trace::TimeStyle::kRelative;
  style.columns = flags.options.verbose ? 0 : kColumns;
  style.color = wants_color(flags.color);
  return make_trace_lines(style);
}

// One, or a file of JSON beside the text.
class Outputs final : public TraceOutput {
 public:
  explicit Outputs(const Flags& flags) {
    if (flags.json.given())
      outputs_.push_back(flags.summary ? make_trace_json_summary(flags.json) : make_trace_json(flags.json));
    if (!flags.html.empty()) {
      outputs_.push_back(make_trace_html(flags.html));
    } else if (!flags.json.on_standard_output()) {
      outputs_.push_back(make_text(flags));
    }
  }
  void start(Duration since_1970) override { each(&TraceOutput::start, since_1970); }
  void seen(const trace::Record& record) override { each<const trace::Record&>(&TraceOutput::seen, record); }
  void add(const trace::Record& record) override { each<const trace::Record&>(&TraceOutput::add, record); }
  void finish(const trace::Capture::Counts& counts) override {
    each<const trace::Capture::Counts&>(&TraceOutput::finish, counts);
  }

 private:
  template <class T>
  void each(void (TraceOutput::*call)(T), T argument) {
    for (const auto& output : outputs_) (output.get()->*call)(argument);
  }
  std::vector<std::unique_ptr<TraceOutput>> outputs_;
};

// Packets come as they are captured: lines must not wait for a full buffer.
bool is_live(pcap_t* file) {
  struct stat about {};
  return ::fstat(::fileno(pcap_file(file)), &about) != 0 || !S_ISREG(about.st_mode);
}

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

// Throws when standard output takes no more.
void give(trace::Capture& capture, const trace::RecordFilter& filter, TraceOutput& output, bool flush) {
  const auto records = capture.take();
  for (const trace::Record& r : records) {
    output.seen(r);
    if (filter.wants(r)) output.add(r);
  }
  if (flush && !records.empty()) std::fflush(stdout);
  if (std::ferror(stdout) != 0) check_standard_output();
}

int run(const Flags& flags) {
  char why[PCAP_ERRBUF_SIZE] = "";
  const File file(pcap_open_offline_with_tstamp_precision(flags.file.c_str(), PCAP_TSTAMP_PRECISION_NANO, why),
                  pcap_close);
  if (file == nullptr) {
    std::fprintf(stderr, "iwarp trace: cannot read %s as a capture: %s\n", flags.file.c_str(), why);
    return kExitFailed;
  }
  const int dlt = pcap_datalink(file.get());
  const auto link = link_type(dlt);
  if (!link) {
    const char* name = pcap_datalink_val_to_name(dlt);
    std::fprintf(
        stderr,
        "iwarp trace: %s was captured on a link of type %s (%d): only Ethernet, Linux cooked, loopback and raw IP "
        "are understood\n",
        flags.file.c_str(), name == nullptr ? "unknown" : name, dlt);
    return kExitFailed;
  }
  trace::Capture capture(flags.options);
  Outputs output(flags);
  const bool live = is_live(file.get());
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  std::optional<Duration> first;
  Duration at{};
  int more = 0;
  while ((more = pcap_next_ex(file.get(), &header, &bytes)) == 1) {
    const Duration time = std::chrono::seconds(header->ts.tv_sec) + std::chrono::nanoseconds(header->ts.tv_usec);
    if (!first) {
      first = time;
      output.start(time);
    }
    at = std::max(at, time - *first);
    capture.packet(at, *link, std::as_bytes(std::span(bytes, header->caplen)), header->len);
    give(capture, flags.filter, output, live);
  }
  capture.finish(at);
  give(capture, flags.filter, output, false);
  output.finish(capture.counts());
  check_standard_output();
  if (more != PCAP_ERROR_BREAK)
    std::fprintf(stderr, "iwarp trace: %s: %s\n", flags.file.c_str(), pcap_geterr(file.get()));
  const trace::Capture::Counts& c = capture.counts();
  const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
  if (c.cut + c.fragments > 0)
    std::fprintf(stderr, "iwarp trace: left out %llu packets without whole headers and %llu IP fragments\n", n(c.cut),
                 n(c.fragments));
  if (c.connections == 0) std::fprintf(stderr, "iwarp trace: no iWARP connection in %llu packets\n", n(c.packets));
  return more == PCAP_ERROR_BREAK && c.connections > 0 && c.totals.all_decoded() ? kExitOk : kExitFailed;
}

}  // namespace

Run add_trace(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd =
      app.add_subcommand("trace", "Show the messages of iWARP and of the RPCs that it carries, of a capture file");
  cmd->add_option("FILE", flags->file, "Capture, pcap or pcapng; - is standard input")->required();
  cmd->add_option("--port", flags->options.port,
                  "Only connections with this port, of TCP, SCTP or UDP around it, at either end")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  cmd->add_option("--stream", flags->options.stream, "Only the connection of this number, the second word of a line");
  cmd->add_option("--layer", flags->filter.layers, "Only these layers")
      ->delimiter(',')
      ->check(CLI::IsMember({"tcp", "mpa", "sctp", "ddp", "rdmap", "rpcrdma", "rpc"}));
  cmd->add_option("--xid", flags->filter.xid, "Only RPCs of this number, with the messages that carry them")
      ->type_name("XID");
  cmd->add_option("--config-program", flags->options.config_program,
                  "Number of the program CONFIG_RDMA, which the draft of 2005 leaves open")
      ->type_name("NUMBER")
      ->capture_default_str();
  cmd->add_flag("--errors", flags->filter.errors,
                "Only what went wrong: errors, statuses, resets, losses, repeated requests");
  flags->json.add(*cmd, "A JSON object a line (docs/JSON.md), or with --summary one document");
  CLI::Option* summary =
      cmd->add_flag("--summary", flags->summary, "In place of lines, a table of RPC procedures and one of connections");
  cmd->add_option("--html", flags->html, "In place of lines, a page with a ladder diagram, written to this file")
      ->type_name("FILE")
      ->excludes(cmd->get_option("--json"))
      ->excludes(summary);
  cmd->add_flag("-v,--verbose", flags->options.verbose,
                "Whole lines, and one for each of the frames (FPDU) and segments (DDP) that a message is cut into");
  cmd->add_option(
         "--time", flags->time,
         "Begin lines with ms since the first packet (relative), UTC (absolute), or ms since the line before (delta)")
      ->check(CLI::IsMember({"relative", "absolute", "delta"}))
      ->capture_default_str();
  cmd->add_option("--color", flags->color, "Color by layer, errors in red; auto: on a terminal, unless NO_COLOR is set")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  cmd->footer(
      "Examples:\n"
      "  iwarp trace nfs.pcap                        every message, both directions\n"
      "  iwarp trace nfs.pcap --stream 2 -v          one connection, down to the FPDUs\n"
      "  iwarp trace nfs.pcap --errors               what went wrong\n"
      "  iwarp trace nfs.pcap --summary              RPCs by procedure, with latencies\n"
      "  iwarp trace nfs.pcap --html ladder.html     to be looked at in a browser\n"
      "  tcpdump -i eth0 -U -w - port 20049 | iwarp trace -     as it happens\n"
      "Lines: <time> <connection> tx|rx <layer> <PDU>(field=value, ...).\n"
      "tx is what the TCP client sent, or who began the SCTP association. Lines end with '...' at 120 columns, unless "
      "-v.\n"
      "Exit code: 0 all decoded, 1 something was not (or was not captured), 2 wrong usage.");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
