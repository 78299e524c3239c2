#include "tools/nearest_key.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace iwarp::tools {
namespace {

// Letters to change, add or leave out.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_key(const std::string& wrong, const std::vector<std::string>& keys) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (const std::string& key : keys) {
    if (const std::size_t d = distance(wrong, key); d < std::min(least, key.size())) {
      least = d;
      best = key;
    }
  }
  return best;
}

}  // namespace iwarp::tools
