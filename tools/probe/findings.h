// What `iwarp probe` finds fault with, as text and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iwarp/base/bytes.h"
#include "tools/probe/rules.h"

namespace iwarp::tools::probe {

struct Deviation {
  Rule rule;
  std::string what;  // seen on this connection
};
using Deviations = std::vector<Deviation>;

// From what is more than advice, which is what the RFC says with SHOULD: MUST, MUST NOT and what the text states
// (spec).
[[nodiscard]] bool is_grave(const Deviation& deviation);
[[nodiscard]] std::size_t grave(std::span<const Deviations> of_all);
// The same advice is given once.
void drop_repeated_advice(std::span<Deviations> of_all);

// "none", "6 deviations, 1 piece of advice"
[[nodiscard]] std::string counted(std::span<const Deviations> of_all);
// Two lines for each, which begin with the name of its question.
[[nodiscard]] std::string listed(std::string_view question, const Deviations& deviations);
[[nodiscard]] nlohmann::ordered_json to_json(const Deviations& deviations);

// The word, and blanks up to `width`, at least one.
[[nodiscard]] std::string padded(std::string_view word, std::size_t width);
// The first 32 octets.
[[nodiscard]] std::string hex(ConstBytes octets);
// "1 question", "2 questions"
[[nodiscard]] std::string count_of(std::size_t n, const std::string& what);

}  // namespace iwarp::tools::probe
