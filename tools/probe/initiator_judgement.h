// How an initiator deviates from the RFCs: a pure function of what it sent, what it was answered, and what it did then.
#pragma once

#include "tools/probe/encounter.h"
#include "tools/probe/findings.h"

namespace iwarp::tools::probe {

[[nodiscard]] Deviations judge(const Encounter& encounter);

}  // namespace iwarp::tools::probe
