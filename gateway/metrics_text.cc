#include "iwarp/gateway/metrics_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace iwarp::gateway {
namespace {

// Backslash, quote and line feed are escaped. The format is UTF-8: what is none of it must not spoil the page.
std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
  }
  return out;
}

std::string label(const char* name, const std::string& value) {
  return std::string(name) + "=\"" + escaped(value) + '"';
}

std::string seconds(std::uint64_t ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  return fmt::format("{}.{:09}", ns / kSecond, ns % kSecond);
}

// Of one listener: its labels, and its counters.
struct Series {
  std::string labels;
  ListenerMetrics of;
};

class Page {
 public:
  explicit Page(std::vector<Series> listeners) : listeners_(std::move(listeners)) {}

  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class Value>
  void sample(const std::string& labels, const Value& value, const char* suffix = "") {
    const auto out = std::back_inserter(text_);
    if (labels.empty()) {
      fmt::format_to(out, "{}{} {}\n", name_, suffix, value);
    } else {
      fmt::format_to(out, "{}{}{{{}}} {}\n", name_, suffix, labels, value);
    }
  }

  // One value of each listener.
  template <class Get>
  void each(const char* name, const char* type, const char* help, Get get) {
    family(name, type, help);
    for (const Series& s : listeners_) sample(s.labels, get(s.of.stats));
  }
  // One of each listener and enumerator. `Get` is given the snapshot and the enumerator's index.
  template <class Enum, class Get>
  void each(const char* name, const char* type, const char* help, const char* by, std::size_t n, Get get) {
    family(name, type, help);
    for (const Series& s : listeners_) {
      for (std::size_t i = 0; i < n; ++i)
        sample(s.labels + ',' + label(by, gateway::name(static_cast<Enum>(i))), get(s.of.stats, i));
    }
  }

  [[nodiscard]] const std::vector<Series>& listeners() const { return listeners_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::vector<Series> listeners_;
  const char* name_ = "";
  std::string text_;
};

std::vector<Series> series(const std::vector<ListenerMetrics>& listeners) {
  std::vector<Series> out;
  for (const ListenerMetrics& l : listeners) {
    const std::string labels = label("listener", l.name) + ',' + label("direction", l.direction);
    const auto same = std::find_if(out.begin(), out.end(), [&](const Series& s) { return s.labels == labels; });
    if (same == out.end()) {
      out.push_back({labels, l});
    } else {
      same->of.stats += l.stats;
    }
  }
  return out;
}

using S = Stats::Snapshot;

void add_rpc(Page& page) {
  const auto each = [&](const char* name, const char* type, const char* help, auto get) {
    page.each<RpcProgram>(name, type, help, "program", kRpcPrograms,
                          [&](const S& s, std::size_t i) { return get(s.rpc[i]); });
  };
  using P = RpcStats::Program;
  each("iwarp_gateway_calls_total", "counter", "RPC Calls taken for the other side, backward ones under callback.",
       [](const P& p) { return p.calls; });
  each("iwarp_gateway_replies_total", "counter", "Replies to these that came from the other side.",
       [](const P& p) { return p.replies(); });
  each("iwarp_gateway_failed_calls_total", "counter", "Calls that the gateway answered with an RPC error.",
       [](const P& p) { return p.failed; });
  each("iwarp_gateway_unanswered_calls_total", "counter", "Calls whose connection ended before their Reply.",
       [](const P& p) { return p.unanswered; });
  each("iwarp_gateway_outstanding_calls", "gauge", "Calls that wait for their Reply.",
       [](const P& p) { return p.outstanding(); });
  each("iwarp_gateway_call_bytes_total", "counter", "Octets of Calls, as RPC messages.",
       [](const P& p) { return p.call_bytes; });
  each("iwarp_gateway_reply_bytes_total", "counter", "Octets of Replies, as RPC messages.",
       [](const P& p) { return p.reply_bytes; });
  each("iwarp_gateway_call_read_bytes_total", "counter", "Octets of answered Calls that came or went by RDMA Read.",
       [](const P& p) { return p.read_bytes; });
  each("iwarp_gateway_reply_write_bytes_total", "counter", "Octets of Replies that came or went by RDMA Write.",
       [](const P& p) { return p.write_bytes; });

  page.family("iwarp_gateway_latency_seconds", "histogram",
              "Time from a whole Call at the gateway to its whole Reply there.");
  for (const Series& s : page.listeners()) {
    for (std::size_t i = 0; i < kRpcPrograms; ++i) {
      const P& p = s.of.stats.rpc[i];
      const std::string labels = s.labels + ',' + label("program", name(static_cast<RpcProgram>(i)));
      std::uint64_t below = 0;
      for (std::size_t b = 0; b < kLatencyLimits.size(); ++b) {
        below += p.by_latency[b];
        const double limit = static_cast<double>(kLatencyLimits[b].count()) / 1e6;
        page.sample(labels + fmt::format(",le=\"{}\"", limit), below, "_bucket");
      }
      page.sample(labels + ",le=\"+Inf\"", p.replies(), "_bucket");
      page.sample(labels, seconds(p.latency_ns), "_sum");
      page.sample(labels, p.replies(), "_count");
    }
  }
}

void add_messages(Page& page) {
  page.each<MessageKind>("iwarp_gateway_messages_received_total", "counter", "RPC messages received, by kind.", "kind",
                         kMessageKinds, [](const S& s, std::size_t i) { return s.messages[i].received; });
  page.each<MessageKind>("iwarp_gateway_messages_forwarded_total", "counter", "RPC messages forwarded, by kind.",
                         "kind", kMessageKinds, [](const S& s, std::size_t i) { return s.messages[i].forwarded; });
  page.family("iwarp_gateway_messages_dropped_total", "counter",
              "RPC messages received and not forwarded, by kind and cause.");
  for (const Series& s : page.listeners()) {
    for (std::size_t kind = 0; kind < kMessageKinds; ++kind) {
      for (std::size_t why = 0; why < kDropReasons; ++why)
        page.sample(s.labels + ',' + label("kind", name(static_cast<MessageKind>(kind))) + ',' +
                        label("reason", name(static_cast<DropReason>(why))),
                    s.of.stats.messages[kind].dropped[why]);
    }
  }
}

void add_bytes(Page& page) {
  constexpr std::array<const char*, kWays> kWayNames = {"in", "out"};
  page.family("iwarp_gateway_rdma_bytes_total", "counter", "Payload octets of RDMA Sends, Writes and Read Responses.");
  for (const Series& s : page.listeners()) {
    for (std::size_t op = 0; op < kRdmaOperations; ++op) {
      for (std::size_t way = 0; way < kWays; ++way)
        page.sample(s.labels + ',' + label("operation", name(static_cast<RdmaOperation>(op))) + ',' +
                        label("way", kWayNames[way]),
                    s.of.stats.rdma_bytes[op][way]);
    }
  }
  page.family("iwarp_gateway_tcp_bytes_total", "counter", "Octets on the TCP side, record marks included.");
  for (const Series& s : page.listeners()) {
    for (std::size_t way = 0; way < kWays; ++way)
      page.sample(s.labels + ',' + label("way", kWayNames[way]), s.of.stats.tcp_bytes[way]);
  }
}

void add_connections(Page& page) {
  page.each("iwarp_gateway_connections", "gauge", "Connections of clients that are served.",
            [](const S& s) { return s.active(); });
  page.each("iwarp_gateway_connections_opened_total", "counter", "Connections of clients that were served.",
            [](const S& s) { return s.opened; });
  page.each("iwarp_gateway_connections_closed_total", "counter",
            "Connections of clients that were served and are over.", [](const S& s) { return s.closed; });
  page.each<RefuseReason>("iwarp_gateway_connections_refused_total", "counter",
                          "Connections of clients that were not served, by cause.", "reason", kRefuseReasons,
                          [](const S& s, std::size_t i) { return s.refused[i]; });
  page.each<EndReason>("iwarp_gateway_connections_given_up_total", "counter",
                       "Connections that the gateway ended because of what a peer did or did not do, by cause.",
                       "reason", kEndReasons, [](const S& s, std::size_t i) { return s.given_up[i]; });
  page.each<Spoken>("iwarp_gateway_connections_by_version_total", "counter",
                    "Connections by what they speak of RPC-over-RDMA, from their first Call or Reply on.", "version",
                    kSpoken, [](const S& s, std::size_t i) { return s.spoken[i]; });
  page.each<DraftMessage>("iwarp_gateway_draft_2005_messages_total", "counter",
                          "Messages that only the draft of 2005 has.", "message", kDraftMessages,
                          [](const S& s, std::size_t i) { return s.draft_messages[i]; });
  page.family("iwarp_gateway_connections_ended_total", "counter",
              "How the RDMA side of connections ended; causes that have occurred.");
  for (const Series& s : page.listeners()) {
    for (std::size_t i = 0; i < kEnds; ++i) {
      if (s.of.stats.ended[i] > 0)
        page.sample(s.labels + ',' + label("reason", name(static_cast<Errc>(i))), s.of.stats.ended[i]);
    }
  }
  page.each<Incident>("iwarp_gateway_incidents_total", "counter", "What went wrong with messages, by cause.",
                      "incident", kIncidents, [](const S& s, std::size_t i) { return s.incidents[i]; });
  page.each("iwarp_gateway_crc_terminates_total", "counter",
            "Connections that an RDMA peer ended with Terminate 2/0/2, MPA CRC error.",
            [](const S& s) { return s.crc_terminates; });
  page.each("iwarp_gateway_siw_crc_faults_total", "counter",
            "Of these: by peers that do so again and again, most likely siw with its CRC fault.",
            [](const S& s) { return s.siw_crc_traps; });
  page.each("iwarp_gateway_early_wakes_total", "counter",
            "Empty RDMA Writes that wake a server which overlooked what came early.",
            [](const S& s) { return s.early_wakes; });
  page.each("iwarp_gateway_credits_granted", "gauge", "RPCs that RDMA clients may have outstanding now.",
            [](const S& s) { return s.credits_granted; });
  page.each("iwarp_gateway_credits_used", "gauge", "RPCs that RDMA clients have outstanding now.",
            [](const S& s) { return s.credits_used; });
  page.each("iwarp_gateway_registered_bytes", "gauge", "Registered memory of connections, used or not.",
            [](const S& s) { return s.registered_bytes; });
}

}  // namespace

std::string metrics_text(const std::vector<ListenerMetrics>& listeners, const ProcessMetrics& process) {
  Page page(series(listeners));
  page.family("iwarp_build_info", "gauge", "Always 1; the version is a label.");
  page.sample(label("version", process.version), 1);
  page.family("iwarp_gateway_listener_info", "gauge", "Always 1; where a listener is, and its server.");
  for (const Series& s : page.listeners())
    page.sample(s.labels + ',' + label("local", s.of.local) + ',' + label("backend", s.of.backend), 1);
  page.family("iwarp_gateway_registered_limit_bytes", "gauge", "Registered memory that all may have; 0: no limit.");
  page.sample("", process.memory_limit_bytes);
  add_rpc(page);
  add_messages(page);
  add_bytes(page);
  add_connections(page);
  return page.take();
}

}  // namespace iwarp::gateway
