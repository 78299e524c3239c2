// A Summary as tables.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>

#include "iwarp/trace/summary.h"

namespace iwarp::trace {
namespace {

void append(std::string& out, const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  out += text;
}

// In at most 8 columns: 1234567, 1234.5M
std::string count(std::uint64_t n) {
  std::string out;
  if (n < 10'000'000) {
    append(out, "%" PRIu64, n);
  } else if (n < 10'000'000'000) {
    append(out, "%.1fM", static_cast<double>(n) / 1e6);
  } else {
    append(out, "%.1fG", static_cast<double>(n) / 1e9);
  }
  return out;
}

std::string milliseconds_text(Duration d) {
  std::string out;
  append(out, "%.3f", std::chrono::duration<double, std::milli>(d).count());
  return out;
}

constexpr const char* kProcedureFormat = "%-26.60s %7s %6s %5s %5s %8s %8s %8s %8s %8s %8s %8s\n";

void add_procedures(std::string& out, const Summary& summary) {
  append(out, kProcedureFormat, "", "", "", "", "no", "octets", "octets", "octets", "ms", "ms", "ms", "ms");
  append(out, kProcedureFormat, "procedure", "calls", "errors", "again", "reply", "Send", "Write", "Read", "min",
         "median", "p99", "max");
  for (const auto& [name, p] : summary.procedures()) {
    const auto latency = [&p = p](double part) {
      return p.latencies.empty() ? std::string("-") : milliseconds_text(p.latency(part));
    };
    append(out, kProcedureFormat, name.c_str(), count(p.calls).c_str(), count(p.errors).c_str(),
           count(p.retransmissions).c_str(), count(p.calls - std::min(p.calls, p.replies)).c_str(),
           count(p.send_bytes).c_str(), count(p.write_bytes).c_str(), count(p.read_bytes).c_str(), latency(0).c_str(),
           latency(0.5).c_str(), latency(0.99).c_str(), latency(1).c_str());
  }
}

void add_connections(std::string& out, const Summary& summary) {
  append(out, "%4s %-21s %-21s %8s %8s %8s %7s %7s %7s %6s  %s\n", "conn", "client", "server", "tx", "rx", "Sends",
         "Writes", "Reads", "RPCs", "errors", "end");
  const auto row = [&out](const std::string& name, const Summary::Connection& c) {
    append(out, "%4s %-21s %-21s %8s %8s %8s %7s %7s %7s %6s  %s\n", name.c_str(), c.client.c_str(), c.server.c_str(),
           count(c.bytes[0]).c_str(), count(c.bytes[1]).c_str(), count(c.sends).c_str(), count(c.writes).c_str(),
           count(c.reads).c_str(), count(c.calls).c_str(), count(c.errors).c_str(), c.end.c_str());
  };
  if (summary.other_connections() > 0) {
    Summary::Connection all = summary.others();
    all.client = count(summary.other_connections()) + " others";
    all.end = "over";
    row("", all);
  }
  for (const auto& [name, c] : summary.connections()) {
    if (c.is_iwarp) row(name, c);
  }
}

// Nothing if nothing was.
void add_forgotten(std::string& out, const Summary::Forgotten& f) {
  if (f == Summary::Forgotten{}) return;
  append(out, "\nForgotten, for want of memory: %s RPCs under way, the end of %s connections, %s latencies\n",
         count(f.rpcs).c_str(), count(f.connections).c_str(), count(f.latencies).c_str());
}

}  // namespace

std::string to_text(const Summary& summary) {
  std::string out;
  if (!summary.procedures().empty()) {
    add_procedures(out, summary);
    out += '\n';
  }
  add_connections(out, summary);
  add_forgotten(out, summary.forgotten());
  return out;
}

}  // namespace iwarp::trace
