#include "tests/hostile/case_list.h"

#include <fstream>
#include <ostream>
#include <stdexcept>

namespace iwarp::hostile {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == '\t') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.requirement << ' ' << c.script << " of " << c.role;
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<Case> out;
  for (std::string line; std::getline(in, line);) {
    const auto columns = split(line);
    if (columns.size() != 5) throw std::runtime_error(path + ": not five columns: " + line);
    out.push_back({columns[0], columns[1], columns[2], columns[3], columns[4]});
  }
  return out;
}

const Case& as_gateway(const std::vector<Case>& all, const Case& wanted) {
  for (const Case& c : all) {
    if (c.role == "gateway" && c.requirement == wanted.requirement && c.script == wanted.script) return c;
  }
  return wanted;
}

}  // namespace iwarp::hostile
