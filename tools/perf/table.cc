#include "tools/perf/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace iwarp::tools::perf {
namespace {

std::string long_size(std::uint32_t size) {
  if (size >= 1048576 && size % 1048576 == 0) return fmt::format("{} MiB", size / 1048576);
  if (size >= 1024 && size % 1024 == 0) return fmt::format("{} KiB", size / 1024);
  return fmt::format("{}", size);
}

std::string how_text(const Spec& s) {
  std::string text;
  if (!is_raw(s.test)) text = s.crc ? "crc" : "no crc";
  if (!is_raw(s.test) && s.llp != Spec{}.llp) text = fmt::format("SCTP, packets of {}", s.sctp_packet);
  if (!is_raw(s.test) && s.markers) text += ", Markers";
  const bool bulk = s.test == Test::kWriteBw || s.test == Test::kReadBw;
  if (s.test == Test::kSendRate || (bulk && s.list != default_list(s.test, s.depth)))
    text += fmt::format(", lists of {}", s.list);
  const bool reads = s.test == Test::kReadBw || s.test == Test::kReadLat;
  if (reads && s.crc && !s.stable) text += ", copied";
  if (!is_raw(s.test) && s.profile != Spec{}.profile) text += fmt::format(", profile {}", s.profile);
  if (!is_raw(s.test) && s.fpdu != Spec{}.fpdu) text += fmt::format(", FPDUs {}", s.fpdu);
  if (unit_of(s.test) == Unit::kMicroseconds) {
    const char* wait = is_raw(s.test) ? (s.manual ? "spinning" : "blocking") : (s.manual ? "manual" : "automatic");
    text += (text.empty() ? "" : ", ") + std::string(wait);
  }
  if (is_rpc(s.test)) text += fmt::format("{}{} outstanding", text.empty() ? "" : ", ", s.depth);
  if (s.threads > 1) text += fmt::format("{}{} threads", text.empty() ? "" : ", ", s.threads);
  return text;
}

// With which calls plain TCP was measured; empty where there is no choice.
std::string way_text(const Spec& s) {
  const char* wait = s.manual ? "spinning" : "sleeping";
  if (s.test == Test::kTcpBw)
    return fmt::format("calls of {} and {}, {}", long_size(s.call), long_size(s.receive), wait);
  if (s.test == Test::kTcpRate)
    return fmt::format("frames of {}, {}, {}", s.size, s.nodelay ? "TCP_NODELAY" : "Nagle", wait);
  return "";
}

std::string cpu_text(const Figures& f) {
  return fmt::format("{:.2f}+{:.2f}", f.client_cpu_per_gb, f.server_cpu_per_gb);
}

// Two decimals, or two digits where these would not be seen.
std::string short_number(double value) {
  return value > 0 && value < 0.095 ? fmt::format("{:.2g}", value) : fmt::format("{:.2f}", value);
}

std::string ratio_text(const Row& row) {
  return fmt::format("{} ({}-{})", short_number(row.ratio), short_number(row.lowest), short_number(row.highest));
}

double octet_rate(double octets_per_second, Units units) {
  return octets_per_second / 1e9 * (units.gbit ? 8 : 1);
}

const char* octet_unit(Units units) {
  return units.gbit ? "Gbit/s" : "GB/s";
}

// Where a raw test has nothing: its figures are those of plain TCP, and stand in the columns of the test.
constexpr const char* kNothing = "-";

std::string beside(const Row& row, const std::string& text) {
  return is_raw(row.spec.test) ? kNothing : text;
}

struct Line {
  std::string heading, text;
};

Line throughput(const Row& row, Units units) {
  constexpr const char* kLine = "{:<13}{:>8}  {:>10}  {:>15}  {:>18}  {:>13}  {:>11}  {:<19} {:>13}  {:>9}  ";
  const Figures& f = row.figures();
  const auto rate = [&](double value) { return short_number(octet_rate(value, units)); };
  const auto in_unit = [&](const char* column) { return fmt::format("{}[{}]", column, octet_unit(units)); };
  return {fmt::format(kLine, "test", "octets", "iterations", in_unit("BW peak"), in_unit("BW average"), "MsgRate[Mpps]",
                      in_unit("TCP"), "ratio (range)", "CPU[s/GB]", "TCP CPU"),
          fmt::format(kLine, name(row.spec.test), row.spec.size, f.operations, rate(f.most), rate(f.average),
                      fmt::format("{:.6f}", f.operations_per_second / 1e6), beside(row, rate(row.tcp.average)),
                      beside(row, ratio_text(row)), cpu_text(f), beside(row, cpu_text(row.tcp)))};
}

Line rate(const Row& row) {
  constexpr const char* kLine = "{:<12}{:>8}  {:>10}  {:>10}  {:>13}  {:>9}  {:<19} ";
  const Figures& f = row.figures();
  const auto thousands = [](double value) { return fmt::format("{:.1f}", value / 1e3); };
  return {fmt::format(kLine, "test", "octets", "iterations", "peak[k/s]", "average[k/s]", "TCP[k/s]", "ratio (range)"),
          fmt::format(kLine, name(row.spec.test), has_size(row.spec.test) ? std::to_string(row.spec.size) : kNothing,
                      f.operations, thousands(f.most), thousands(f.average), beside(row, thousands(row.tcp.average)),
                      beside(row, ratio_text(row)))};
}

Line latency(const Row& row) {
  constexpr const char* kLine = "{:<10}{:>8}  {:>10}  {:>9}  {:>9}  {:>8}  {:>8}  {:>8}  {:>9}  {:>8}  {:>8}  {:<19} ";
  const Latency& l = row.figures().latency;
  const auto us = [](double value) { return fmt::format("{:.2f}", value); };
  return {fmt::format(kLine, "test", "octets", "iterations", "t_min[us]", "t_typical", "p50", "p99", "p99.9", "t_max",
                      "TCP p50", "TCP p99", "ratio (range)"),
          fmt::format(kLine, name(row.spec.test), row.spec.size, row.figures().operations, us(l.least), us(l.typical),
                      us(l.p50), us(l.p99), us(l.p999), us(l.most), beside(row, us(row.tcp.latency.p50)),
                      beside(row, us(row.tcp.latency.p99)), beside(row, ratio_text(row)))};
}

Line line_of(const Row& row, Units units) {
  switch (unit_of(row.spec.test)) {
    case Unit::kOctetsPerSecond:
      return throughput(row, units);
    case Unit::kOperationsPerSecond:
      return rate(row);
    case Unit::kMicroseconds:
      break;
  }
  return latency(row);
}

// What a line of Markdown says of one side besides its value.
std::string more_text(const Spec& s, const Figures& f) {
  if (unit_of(s.test) == Unit::kMicroseconds)
    return fmt::format("p99 {:.1f}, p99.9 {:.1f} us", f.latency.p99, f.latency.p999);
  if (unit_of(s.test) == Unit::kOctetsPerSecond)
    return fmt::format("{:.2f} + {:.2f} CPU s/GB", f.client_cpu_per_gb, f.server_cpu_per_gb);
  return "";
}

std::string joined(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : "; ") + b;
}

bool any(const std::vector<Row>& rows, Test baseline) {
  return std::ranges::any_of(rows, [&](const Row& row) { return baseline_of(row.spec.test) == baseline; });
}

}  // namespace

std::string Table::add(const Row& row) {
  auto [heading, text] = line_of(row, units_);
  heading += "how";
  text += joined(how_text(row.spec), way_text(row.baseline()).empty() ? "" : "TCP: " + way_text(row.baseline()));
  if (!row.complete()) text += fmt::format("; interrupted: {} of {} pairs", row.pairs, row.planned);
  text += '\n';
  if (heading == heading_) return text;
  const std::string gap = heading_.empty() ? "" : "\n";
  heading_ = heading;
  return gap + heading + '\n' + text;
}

std::string markdown_heading() {
  return "| test | size | how | iwarp | plain TCP | ratio (least-largest) | iwarp, more | plain TCP, more |\n"
         "|---|---|---|---|---|---|---|---|\n";
}

std::string markdown_line(const Row& row, Units units) {
  const Unit unit = unit_of(row.spec.test);
  const bool raw = is_raw(row.spec.test);
  const std::string tcp = joined(more_text(row.baseline(), row.tcp), way_text(row.baseline()));
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", name(row.spec.test), long_size(row.spec.size),
                     joined(how_text(row.spec), row.complete() ? "" : "interrupted"),
                     raw ? "" : value_text(unit, row.iwarp.median, units), value_text(unit, row.tcp.median, units),
                     raw ? "" : ratio_text(row), raw ? "" : more_text(row.spec, row.iwarp), tcp);
}

std::string value_text(Unit unit, double value, Units units) {
  switch (unit) {
    case Unit::kOctetsPerSecond:
      return fmt::format("{} {}", short_number(octet_rate(value, units)), octet_unit(units));
    case Unit::kOperationsPerSecond:
      return value >= 1e6 ? fmt::format("{:.2f} M/s", value / 1e6) : fmt::format("{:.1f} k/s", value / 1e3);
    case Unit::kMicroseconds:
      break;
  }
  return fmt::format("{:.1f} us", value);
}

std::string brief(const Row& row, Units units) {
  const std::string value = value_text(unit_of(row.spec.test), row.figures().median, units);
  return is_raw(row.spec.test) ? value : fmt::format("{}, {} of plain TCP", value, short_number(row.ratio));
}

std::string notes(const std::vector<Row>& rows, bool best) {
  if (rows.empty()) return "";
  std::string text;
  if (!best && any(rows, Test::kTcpBw)) text += "TCP in 64 KiB calls; tuned TCP is faster: --baseline best\n";
  if (!best && any(rows, Test::kTcpRate))
    text += "TCP sends each frame in a call of its own; tuned TCP is faster: --baseline best\n";
  const Row& first = rows.front();
  return text + fmt::format("TCP congestion control{}: {}\n", first.spec.congestion.empty() ? " here" : "",
                            first.congestion_control);
}

std::string warning(const std::vector<Row>& rows) {
  const bool paced = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return unit_of(row.spec.test) == Unit::kOctetsPerSecond && row.congestion_control.starts_with("bbr");
  });
  if (!paced) return "";
  return "TCP's congestion control is bbr, which paces what is sent: throughput of both sides may be that of its "
         "pacing; Debian's default is cubic (--congestion cubic)";
}

}  // namespace iwarp::tools::perf
