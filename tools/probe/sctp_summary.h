// What all answers together say about a passive DDP/SCTP peer, for people. Pure.
#pragma once

#include <span>
#include <vector>

#include "tools/probe/sctp_judgement.h"
#include "tools/probe/summary.h"

namespace iwarp::tools::probe {

// "not known" where the question that would tell was not asked, or got no association.
[[nodiscard]] std::vector<Fact> summarise(std::span<const SctpRecord> records);

}  // namespace iwarp::tools::probe
