#include "tools/perf/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace iwarp::tools::perf {
namespace {

constexpr std::size_t kColumns = 8;
using Cells = std::array<std::string, kColumns>;

std::string size_text(std::uint32_t size) {
  if (size >= 1048576 && size % 1048576 == 0) return fmt::format("{} MiB", size / 1048576);
  if (size >= 1024 && size % 1024 == 0) return fmt::format("{} KiB", size / 1024);
  return fmt::format("{}", size);
}

std::string mode_text(const Spec& s) {
  std::string text;
  if (!is_raw(s.test)) text = s.crc ? "crc" : "no crc";
  if (s.test == Test::kSendRate) text += fmt::format(", lists of {}", s.list);
  const bool reads = s.test == Test::kReadBw || s.test == Test::kReadLat;
  if (reads && s.crc && !s.stable) text += ", copied";
  if (!is_raw(s.test) && s.fpdu != Spec{}.fpdu) text += fmt::format(", FPDUs {}", s.fpdu);
  if (unit_of(s.test) == Unit::kMicroseconds) {
    const char* wait = is_raw(s.test) ? (s.manual ? "spinning" : "blocking") : (s.manual ? "manual" : "automatic");
    text += (text.empty() ? "" : ", ") + std::string(wait);
  }
  if (s.threads > 1) text += fmt::format("{}{} threads", text.empty() ? "" : ", ", s.threads);
  return text;
}

std::string value_text(const Spec& s, const Measured& m) {
  switch (unit_of(s.test)) {
    case Unit::kOctetsPerSecond:
      return fmt::format("{:.2f} GB/s", m.value / 1e9);
    case Unit::kOperationsPerSecond:
      return m.value >= 1e6 ? fmt::format("{:.2f} M/s", m.value / 1e6) : fmt::format("{:.1f} k/s", m.value / 1e3);
    case Unit::kMicroseconds:
      break;
  }
  return fmt::format("{:.1f} us", m.value);
}

// How the baseline was best.
std::string way_text(const Spec& s) {
  const char* wait = s.manual ? "spinning" : "sleeping";
  if (s.test == Test::kTcpBw)
    return fmt::format("; calls of {} and {}, {}", size_text(s.call), size_text(s.receive), wait);
  if (s.test == Test::kTcpRate)
    return fmt::format("frames of {}, {}, {}", s.size, s.nodelay ? "TCP_NODELAY" : "Nagle", wait);
  return "";
}

std::string tail_text(const Spec& s, const Measured& m) {
  if (unit_of(s.test) == Unit::kMicroseconds) return fmt::format("p99 {:.1f}, p99.9 {:.1f} us", m.p99, m.p999);
  if (unit_of(s.test) == Unit::kOctetsPerSecond)
    return fmt::format("{:.2f} + {:.2f} CPU s/GB", m.client_cpu_per_gb, m.server_cpu_per_gb);
  return "";
}

Cells cells(const Row& row) {
  Cells c{std::string(name(row.spec.test)),
          size_text(row.spec.size),
          mode_text(row.spec),
          value_text(row.spec, row.ours),
          "",
          "",
          tail_text(row.spec, row.ours),
          ""};
  c[6] += way_text(row.spec);
  if (is_raw(row.spec.test)) return c;
  c[4] = value_text(row.baseline, row.base);
  c[5] = fmt::format("{:.2f} ({:.2f}-{:.2f})", row.ratio, row.lowest, row.highest);
  c[7] = tail_text(row.baseline, row.base) + way_text(row.baseline);
  return c;
}

}  // namespace

std::string table(const std::vector<Row>& rows, bool markdown) {
  std::vector<Cells> lines{
      {"test", "size", "how", "ours", "plain TCP", "ratio (least-most)", "ours, more", "plain TCP, more"}};
  for (const Row& row : rows) lines.push_back(cells(row));
  std::array<std::size_t, kColumns> width{};
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) width[i] = std::max(width[i], line[i].size());
  }
  std::string text;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    std::string out = markdown ? "|" : "";
    for (std::size_t i = 0; i < kColumns; ++i)
      out += markdown ? fmt::format(" {} |", lines[n][i]) : fmt::format("{:<{}}", lines[n][i], width[i] + 2);
    while (!out.empty() && out.back() == ' ') out.pop_back();
    text += out + '\n';
    if (markdown && n == 0) text += "|---|---|---|---|---|---|---|---|\n";
  }
  return text;
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
