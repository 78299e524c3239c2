#include "tools/top/view.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace iwarp::tools::top {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

std::string mib(double bytes) {
  return fmt::format("{:.1f} MiB", bytes / kMib);
}

// What is not printable must not reach the terminal.
std::string clean(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text;
}

struct Row {
  std::string name;
  Program now, before;
  double seconds;

  // Of a counter that began anew, as that of a gateway started again: from 0.
  [[nodiscard]] double rate(double Program::*what) const { return top_rate(now.*what, before.*what, seconds); }
  [[nodiscard]] static double top_rate(double now, double before, double seconds) {
    return (now >= before ? now - before : now) / seconds;
  }
  [[nodiscard]] std::string time(double q) const {
    const bool anew = now.replies < before.replies;
    const auto value = quantile(now.latency, anew ? Histogram{} : before.latency, q);
    return value ? short_time(*value) : "-";
  }
};

struct Column {
  const char* title;
  std::size_t width;
  std::string (*cell)(const Row&);
  unsigned rank;  // columns of higher rank are left out first
};

// In the order of the table.
constexpr std::array<Column, 8> kColumns = {
    Column{"CALLS/S", 9, [](const Row& r) { return short_number(r.rate(&Program::calls)); }, 0},
    Column{"REPLIES/S", 11, [](const Row& r) { return short_number(r.rate(&Program::replies)); }, 4},
    Column{"OUT", 7, [](const Row& r) { return short_number(r.now.outstanding); }, 2},
    Column{"P50", 8, [](const Row& r) { return r.time(0.5); }, 1},
    Column{"P99", 8, [](const Row& r) { return r.time(0.99); }, 1},
    Column{"CALL B/S", 10, [](const Row& r) { return short_number(r.rate(&Program::call_bytes)); }, 3},
    Column{"REPLY B/S", 11, [](const Row& r) { return short_number(r.rate(&Program::reply_bytes)); }, 3},
    Column{"FAILED", 8, [](const Row& r) { return short_number(r.now.failed); }, 5},
};
constexpr std::size_t kNameWidth = 10;

// The columns that fit, least important ones left out.
std::vector<const Column*> columns_within(std::size_t width) {
  std::vector<const Column*> out;
  for (const Column& c : kColumns) out.push_back(&c);
  const auto total = [&] {
    std::size_t sum = kNameWidth;
    for (const Column* c : out) sum += c->width;
    return sum;
  };
  while (!out.empty() && total() > width)
    out.erase(
        std::max_element(out.begin(), out.end(), [](const Column* a, const Column* b) { return a->rank < b->rank; }));
  return out;
}

std::string line_of(const std::vector<const Column*>& columns, const std::string& name, const Row* row) {
  std::string out = fmt::format("{:<{}}", name, kNameWidth);
  for (const Column* c : columns) out += fmt::format("{:>{}}", row ? c->cell(*row) : c->title, c->width);
  return out;
}

// Nothing: all have spoken version 1, as nearly all do.
std::string versions(const Listener& now) {
  std::string out;
  bool others = false;
  for (const auto& [version, connections] : now.by_version) {
    others |= version != "1" && connections > 0;
    out += fmt::format("  {}: {}", clean(version), short_number(connections));
  }
  return others ? "  connections by version of RPC-over-RDMA:" + out : std::string();
}

std::string octets(const Listener& now, const Listener& before, double seconds) {
  std::string out = "  RDMA B/s:";
  for (const char* operation : {"send", "write", "read"}) {
    out += fmt::format("  {}", operation);
    for (const char* way : {"in", "out"}) {
      const std::string key = std::string(operation) + ' ' + way;
      const auto value = [&](const Listener& of) {
        const auto at = of.rdma_bytes.find(key);
        return at == of.rdma_bytes.end() ? 0 : at->second;
      };
      out += fmt::format(" {} {}", way, short_number(Row::top_rate(value(now), value(before), seconds)));
    }
  }
  return out;
}

void add_listener(std::vector<std::string>& lines, const Listener& now, const Listener& before, double seconds,
                  std::size_t width) {
  lines.push_back("");
  lines.push_back(clean(fmt::format("{}  {}  {} -> {}", now.name, now.direction, now.local, now.backend)));
  lines.push_back(fmt::format("  connections {}  credits {} of {}  memory {}  refused {}  given up {}",
                              short_number(now.connections), short_number(now.credits_used),
                              short_number(now.credits_granted), mib(now.registered_bytes), short_number(now.refused),
                              short_number(now.given_up)));
  if (std::string spoken = versions(now); !spoken.empty()) lines.push_back(std::move(spoken));
  if (now.crc_faults > 0)
    lines.push_back(
        fmt::format("  {} ends by a peer with siw's CRC fault: see the gateway's log", short_number(now.crc_faults)));
  lines.push_back(octets(now, before, seconds));
  const auto columns = columns_within(width - 2);
  lines.push_back("  " + line_of(columns, "PROGRAM", nullptr));
  for (const auto& [name, program] : now.programs) {
    if (program.calls == 0 && name != "nfs") continue;
    const auto was = before.programs.find(name);
    const Row row{name, program, was == before.programs.end() ? Program{} : was->second, seconds};
    lines.push_back("  " + line_of(columns, clean(name), &row));
  }
}

}  // namespace

std::string short_number(double value) {
  constexpr std::array<const char*, 7> kUnits = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const bool fraction = value < 9.95 && (unit > 0 || value != std::floor(value));
  return fmt::format("{:.{}f}{}", value, fraction ? 1 : 0, kUnits[unit]);
}

std::string short_time(double seconds) {
  if (std::isinf(seconds)) return ">30s";
  if (seconds < 0.9995e-3) return fmt::format("{:.0f}us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.{}f}ms", seconds * 1e3, seconds < 9.95e-3 ? 1 : 0);
  return fmt::format("{:.1f}s", seconds);
}

std::vector<std::string> table(const Page& now, const Page& before, double seconds, std::size_t width) {
  constexpr std::size_t kLeastWidth = 20;
  width = std::max(width, kLeastWidth);
  double connections = 0, memory = 0, calls = 0, calls_before = 0, refused = 0;
  for (const Page* page : {&now, &before}) {
    for (const Listener& l : page->listeners) {
      for (const auto& [name, p] : l.programs) (page == &now ? calls : calls_before) += p.calls;
    }
  }
  for (const Listener& l : now.listeners) {
    connections += l.connections;
    memory += l.registered_bytes;
    refused += l.refused;
  }
  std::vector<std::string> lines;
  lines.push_back(fmt::format("calls/s {}  connections {}  refused {}  memory {}{}  iwarp {}",
                              short_number(Row::top_rate(calls, calls_before, seconds)), short_number(connections),
                              short_number(refused), mib(memory),
                              now.limit_bytes > 0 ? " of " + mib(now.limit_bytes) : "", clean(now.version)));
  const Listener none;
  for (const Listener& l : now.listeners) {
    const Listener* was = before.find(l);
    add_listener(lines, l, was != nullptr ? *was : none, seconds, width);
  }
  for (std::string& line : lines) {
    if (line.size() > width) line.resize(width);
  }
  return lines;
}

}  // namespace iwarp::tools::top
