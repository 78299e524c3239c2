// What all answers together say about a responder, for people: a value for each thing that may keep two stacks from
// talking. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/probe/judgement.h"

namespace iwarp::tools::probe {

struct Fact {
  std::string_view name;  // "crc", "ird_ord", ...
  std::string value;
};
// "not known" where the question that would tell was not asked, or got no connection.
[[nodiscard]] std::vector<Fact> summarise(std::span<const Record> records);

}  // namespace iwarp::tools::probe
