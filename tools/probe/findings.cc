#include "tools/probe/findings.h"

#include <algorithm>
#include <set>
#include <utility>

namespace iwarp::tools::probe {

bool is_grave(const Deviation& deviation) {
  return text(deviation.rule).level != "SHOULD";
}

std::size_t grave(std::span<const Deviations> of_all) {
  std::size_t n = 0;
  for (const Deviations& list : of_all) n += static_cast<std::size_t>(std::ranges::count_if(list, is_grave));
  return n;
}

void drop_repeated_advice(std::span<Deviations> of_all) {
  std::set<std::pair<Rule, std::string>> given;
  for (Deviations& list : of_all)
    std::erase_if(list, [&](const Deviation& d) { return !is_grave(d) && !given.emplace(d.rule, d.what).second; });
}

std::string counted(std::span<const Deviations> of_all) {
  std::size_t all = 0;
  for (const Deviations& list : of_all) all += list.size();
  const std::size_t bad = grave(of_all);
  return (bad == 0 ? "none" : count_of(bad, "deviation")) +
         (all > bad ? ", " + count_of(all - bad, "piece") + " of advice" : "");
}

std::string listed(std::string_view question, const Deviations& deviations) {
  std::string s;
  for (const Deviation& d : deviations) {
    const RuleText& rule = text(d.rule);
    s += "    " + std::string(question) + ": " + d.what + "\n        " + section(rule.id) + ", " +
         std::string(rule.level) + ": " + std::string(rule.says) + " (" + std::string(rule.id) + ")\n";
  }
  return s;
}

nlohmann::ordered_json to_json(const Deviations& deviations) {
  auto j = nlohmann::ordered_json::array();
  for (const Deviation& d : deviations) {
    const RuleText& rule = text(d.rule);
    j.push_back({{"requirement", rule.id},
                 {"section", section(rule.id)},
                 {"level", rule.level},
                 {"says", rule.says},
                 {"seen", d.what}});
  }
  return j;
}

std::string padded(std::string_view word, std::size_t width) {
  std::string s(word);
  s.resize(std::max(width, s.size() + 1), ' ');
  return s;
}

std::string hex(ConstBytes octets) {
  static constexpr std::size_t kMost = 32;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : octets.first(std::min(octets.size(), kMost))) {
    out += kDigits[std::to_integer<unsigned>(b) >> 4];
    out += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return octets.size() > kMost ? out + "..." : out;
}

std::string count_of(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace iwarp::tools::probe
