// The report of `iwarp probe --llp sctp`, as text and as JSON. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/probe/report.h"
#include "tools/probe/sctp_judgement.h"

namespace iwarp::tools::probe {

struct SctpReport {
  std::string peer;
  bool ddp = false;           // it answered as a DDP peer does
  std::string not_ddp_why{};  // else: what it did instead
  std::vector<SctpRecord> records;
  std::vector<Deviations> deviations;  // of each record
};

// Judges the records.
[[nodiscard]] SctpReport make_report(std::string peer, std::vector<SctpRecord> records);
// kNoMpa: SCTP, but no DDP over it.
[[nodiscard]] Verdict verdict(const SctpReport& report);
// Of kNoMpa "no_ddp", else as name().
[[nodiscard]] std::string_view sctp_name(Verdict verdict);
// What a question brought, known as soon as it is answered.
[[nodiscard]] std::string line(const SctpRecord& record);
// What all of them together say.
[[nodiscard]] std::string conclusion(const SctpReport& report);
[[nodiscard]] nlohmann::ordered_json to_json(const SctpReport& report);

}  // namespace iwarp::tools::probe
