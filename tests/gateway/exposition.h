// A strict reader of Prometheus' text format 0.0.4, for tests: what a scraper or promtool would object to is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace iwarp::gateway::test {

struct Exposition {
  struct Family {
    std::string type, help;
    std::map<std::string, double> samples;  // "name{labels}" as written
  };
  std::map<std::string, Family> families;

  [[nodiscard]] double value(const std::string& sample) const {
    for (const auto& [name, family] : families) {
      if (const auto at = family.samples.find(sample); at != family.samples.end()) return at->second;
    }
    ADD_FAILURE() << "no sample " << sample;
    return -1;
  }

  [[nodiscard]] static Exposition parse(const std::string& text) {
    Exposition out;
    EXPECT_TRUE(text.empty() || text.back() == '\n');
    std::istringstream lines(text);
    std::string current;
    for (std::string line; std::getline(lines, line);) {
      SCOPED_TRACE(line);
      std::istringstream words(line);
      std::string hash, what, name;
      if (line.starts_with("# ")) {
        words >> hash >> what >> name;
        std::string rest;
        std::getline(words >> std::ws, rest);
        if (what == "HELP") {
          EXPECT_FALSE(out.families.contains(name)) << "a family in two places";
          EXPECT_FALSE(rest.empty());
          out.families[name].help = rest;
          current = name;
        } else {
          EXPECT_EQ(what, "TYPE");
          EXPECT_EQ(name, current) << "TYPE follows HELP";
          EXPECT_TRUE(rest == "counter" || rest == "gauge" || rest == "histogram");
          EXPECT_EQ(rest == "counter", name.ends_with("_total"));
          out.families[name].type = rest;
        }
        continue;
      }
      const std::size_t space = line.rfind(' ');
      if (space == std::string::npos) {
        ADD_FAILURE() << "no value";
        continue;
      }
      const std::string sample = line.substr(0, space);
      const std::string base = sample.substr(0, sample.find('{'));
      EXPECT_TRUE(base == current ||
                  (out.families[current].type == "histogram" &&
                   (base == current + "_bucket" || base == current + "_sum" || base == current + "_count")))
          << "not of the family " << current;
      check_labels(sample);
      std::size_t used = 0;
      const double v = std::stod(line.substr(space + 1), &used);
      EXPECT_EQ(used, line.size() - space - 1);
      EXPECT_GE(v, 0);
      EXPECT_TRUE(out.families[current].samples.emplace(sample, v).second) << "the same sample twice";
    }
    for (const auto& [name, family] : out.families) {
      if (family.type == "histogram") check_histogram(name, family);
    }
    return out;
  }

 private:
  // name="value"[,...] with escapes.
  static void check_labels(const std::string& sample) {
    const std::size_t open = sample.find('{');
    if (open == std::string::npos) return;
    ASSERT_EQ(sample.back(), '}');
    std::set<std::string> names;
    std::size_t at = open + 1;
    while (at < sample.size() - 1) {
      const std::size_t equals = sample.find('=', at);
      ASSERT_NE(equals, std::string::npos);
      const std::string name = sample.substr(at, equals - at);
      EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
      EXPECT_TRUE(names.insert(name).second) << name << " twice";
      at = equals + 1;
      ASSERT_EQ(sample[at], '"');
      for (++at; sample[at] != '"'; ++at) {
        ASSERT_LT(at, sample.size() - 1);
        if (sample[at] != '\\') continue;
        ASSERT_NE(std::string("\\\"n").find(sample[++at]), std::string::npos);
      }
      ++at;
      if (sample[at] == ',') ++at;
    }
  }

  // Buckets rise with their limits, the last is +Inf and as high as the count.
  static void check_histogram(const std::string& name, const Family& family) {
    std::map<std::string, std::map<double, double>> buckets;  // by labels but le
    for (const auto& [sample, v] : family.samples) {
      if (!sample.starts_with(name + "_bucket{")) continue;
      const std::size_t le = sample.find(",le=\"");
      ASSERT_NE(le, std::string::npos) << sample;
      const std::string labels = sample.substr(name.size() + 7, le - name.size() - 7) + "}";
      const std::string limit = sample.substr(le + 5, sample.rfind('"') - le - 5);
      buckets[labels][limit == "+Inf" ? HUGE_VAL : std::stod(limit)] = v;
    }
    EXPECT_EQ(buckets.empty(), family.samples.empty()) << name;
    for (const auto& [labels, by_limit] : buckets) {
      double below = 0;
      for (const auto& [limit, v] : by_limit) {
        EXPECT_GE(v, below) << labels << " le=" << limit;
        below = v;
      }
      EXPECT_EQ(by_limit.rbegin()->first, HUGE_VAL) << labels;
      const auto count = family.samples.find(name + "_count" + labels);
      ASSERT_NE(count, family.samples.end()) << labels;
      EXPECT_EQ(count->second, below) << labels;
      const auto sum = family.samples.find(name + "_sum" + labels);
      ASSERT_NE(sum, family.samples.end()) << labels;
      EXPECT_EQ(sum->second > 0, below > 0) << labels;
    }
  }
};

}  // namespace iwarp::gateway::test
