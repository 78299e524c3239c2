// The report of `iwarp probe`, as text and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tools/probe/judgement.h"

namespace iwarp::tools::probe {

struct Report {
  std::string peer;
  bool mpa = false;           // it answered as an MPA responder does
  std::string not_mpa_why{};  // else: what it did instead
  std::vector<Record> records;
  std::vector<std::vector<Deviation>> deviations;  // of each record
};

// Judges the records. The same advice is given once.
[[nodiscard]] Report make_report(std::string peer, std::vector<Record> records);
// Deviations from what is more than advice: MUST, MUST NOT and what the text states (spec).
[[nodiscard]] std::size_t grave(const Report& report);
[[nodiscard]] std::string to_text(const Report& report);
[[nodiscard]] nlohmann::ordered_json to_json(const Report& report);

}  // namespace iwarp::tools::probe
