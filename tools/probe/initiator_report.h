// The report of `iwarp probe --listen` about an initiator, as text and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/probe/encounter.h"
#include "tools/probe/findings.h"
#include "tools/probe/report.h"
#include "tools/probe/summary.h"

namespace iwarp::tools::probe {

struct InitiatorReport {
  std::string peer;  // the address of the one that came first
  std::vector<Encounter> encounters;
  std::vector<Deviations> deviations;  // of each encounter
};

[[nodiscard]] InitiatorReport make_report(std::vector<Encounter> encounters);
[[nodiscard]] Verdict verdict(const InitiatorReport& report);
// What a question brought.
[[nodiscard]] std::string line(const Encounter& encounter);
// "not known" where no encounter tells.
[[nodiscard]] std::vector<Fact> summarise(const InitiatorReport& report);
[[nodiscard]] std::string conclusion(const InitiatorReport& report);
[[nodiscard]] nlohmann::ordered_json to_json(const InitiatorReport& report);

}  // namespace iwarp::tools::probe
