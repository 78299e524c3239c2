// The report of `iwarp probe` about a responder, as text and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/probe/judgement.h"

namespace iwarp::tools::probe {

enum class Verdict : std::uint8_t {
  kHealthy,      // no deviation in what was asked
  kDeviations,   // more than advice
  kUnreachable,  // no TCP connection, from the beginning or from some question on
  kNoMpa,        // TCP connections, but nothing of MPA on them
  kRefused,      // MPA, and it rejects all that is asked of it
};
// "healthy", "deviations", "unreachable", "no_mpa", "refused"
[[nodiscard]] std::string_view name(Verdict verdict);

struct Report {
  std::string peer;
  bool mpa = false;           // it answered as an MPA responder does
  std::string not_mpa_why{};  // else: what it did instead
  std::vector<Record> records;
  std::vector<Deviations> deviations;  // of each record
};

// Judges the records.
[[nodiscard]] Report make_report(std::string peer, std::vector<Record> records);
[[nodiscard]] Verdict verdict(const Report& report);
// What a question brought, known as soon as it is answered.
[[nodiscard]] std::string line(const Record& record);
// What all of them together say.
[[nodiscard]] std::string conclusion(const Report& report);
[[nodiscard]] nlohmann::ordered_json to_json(const Report& report);

}  // namespace iwarp::tools::probe
