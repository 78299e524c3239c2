#include "tools/top/page.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace iwarp::tools::top {
namespace {

using Labels = std::map<std::string, std::string, std::less<>>;

struct Line {
  std::string name;
  Labels labels;
  double value = 0;

  [[nodiscard]] std::string label(std::string_view key) const {
    const auto at = labels.find(key);
    return at == labels.end() ? std::string() : at->second;
  }
};

// name{key="value",...} number
std::optional<Line> parse_line(std::string_view text) {
  Line out;
  std::size_t at = text.find_first_of("{ ");
  if (at == std::string_view::npos) return std::nullopt;
  out.name = text.substr(0, at);
  if (text[at] == '{') {
    ++at;
    while (at < text.size() && text[at] != '}') {
      const std::size_t equals = text.find("=\"", at);
      if (equals == std::string_view::npos) return std::nullopt;
      std::string& value = out.labels[std::string(text.substr(at, equals - at))];
      for (at = equals + 2; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && ++at == text.size()) return std::nullopt;
        const bool feed = text[at - 1] == '\\' && text[at] == 'n';
        value += feed ? '\n' : text[at];
      }
      if (at == text.size()) return std::nullopt;
      ++at;
      if (at < text.size() && text[at] == ',') ++at;
    }
    if (at == text.size()) return std::nullopt;
    ++at;
  }
  const std::string number(text.substr(std::min(at + 1, text.size())));
  char* end = nullptr;
  out.value = std::strtod(number.c_str(), &end);
  if (end == number.c_str()) return std::nullopt;
  return out;
}

Listener& listener_of(Page& page, const Line& line) {
  const std::string name = line.label("listener"), direction = line.label("direction");
  const auto known = std::find_if(page.listeners.begin(), page.listeners.end(),
                                  [&](const Listener& l) { return l.name == name && l.direction == direction; });
  if (known != page.listeners.end()) return *known;
  Listener& added = page.listeners.emplace_back();
  added.name = name;
  added.direction = direction;
  return added;
}

void take(Page& page, const Line& line) {
  static const std::map<std::string, double Program::*, std::less<>> kOfProgram = {
      {"calls_total", &Program::calls},           {"replies_total", &Program::replies},
      {"failed_calls_total", &Program::failed},   {"outstanding_calls", &Program::outstanding},
      {"call_bytes_total", &Program::call_bytes}, {"reply_bytes_total", &Program::reply_bytes}};
  // Those with more labels are added up.
  static const std::map<std::string, double Listener::*, std::less<>> kOfListener = {
      {"connections", &Listener::connections},
      {"connections_refused_total", &Listener::refused},
      {"connections_given_up_total", &Listener::given_up},
      {"siw_crc_faults_total", &Listener::crc_faults},
      {"credits_granted", &Listener::credits_granted},
      {"credits_used", &Listener::credits_used},
      {"registered_bytes", &Listener::registered_bytes}};
  constexpr std::string_view kPrefix = "iwarp_gateway_";
  if (line.name == "iwarp_build_info") page.version = line.label("version");
  if (!line.name.starts_with(kPrefix)) return;
  const std::string name = line.name.substr(kPrefix.size());
  if (name == "registered_limit_bytes") page.limit_bytes = line.value;
  if (!line.labels.contains("listener")) return;
  Listener& of = listener_of(page, line);
  const std::string program = line.label("program");
  if (name == "listener_info") {
    of.local = line.label("local");
    of.backend = line.label("backend");
  } else if (name == "rdma_bytes_total") {
    of.rdma_bytes[line.label("operation") + ' ' + line.label("way")] += line.value;
  } else if (name == "connections_by_version_total") {
    of.by_version[line.label("version")] += line.value;
  } else if (name == "latency_seconds_bucket") {
    const std::string le = line.label("le");
    of.programs[program].latency[le == "+Inf" ? HUGE_VAL : std::strtod(le.c_str(), nullptr)] = line.value;
  } else if (const auto to = kOfProgram.find(name); to != kOfProgram.end()) {
    of.programs[program].*(to->second) += line.value;
  } else if (const auto at = kOfListener.find(name); at != kOfListener.end()) {
    of.*(at->second) += line.value;
  }
}

}  // namespace

const Listener* Page::find(const Listener& like) const {
  const auto at = std::find_if(listeners.begin(), listeners.end(),
                               [&](const Listener& l) { return l.name == like.name && l.direction == like.direction; });
  return at == listeners.end() ? nullptr : &*at;
}

std::optional<Page> parse_page(std::string_view text) {
  Page out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (const auto parsed = parse_line(line)) take(out, *parsed);
  }
  if (out.version.empty()) return std::nullopt;
  return out;
}

std::optional<double> quantile(const Histogram& now, const Histogram& before, double q) {
  const auto since = [&](const std::pair<const double, double>& bucket) {
    const auto at = before.find(bucket.first);
    return bucket.second - (at == before.end() ? 0 : at->second);
  };
  if (now.empty()) return std::nullopt;
  const double total = since(*now.rbegin());
  if (total <= 0) return std::nullopt;
  const double rank = q * total;
  double below = 0, from = 0;
  for (const auto& bucket : now) {
    const double to = since(bucket);
    if (to >= rank && to > below) {
      if (std::isinf(bucket.first)) return HUGE_VAL;
      return from + (bucket.first - from) * (rank - below) / (to - below);
    }
    below = to;
    from = bucket.first;
  }
  return HUGE_VAL;
}

}  // namespace iwarp::tools::top
