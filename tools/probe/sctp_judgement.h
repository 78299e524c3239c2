// How the answers of a passive DDP/SCTP peer deviate from RFC 5043 and RFC 6581. Pure functions of what was sent and
// what came.
#pragma once

#include <span>

#include "tools/probe/findings.h"
#include "tools/probe/sctp_answer.h"
#include "tools/probe/sctp_question.h"

namespace iwarp::tools::probe {

struct SctpRecord {
  const SctpQuestion* question = nullptr;
  SctpAnswer answer{};
};

// What all answers together tell: without it a Terminate or silence cannot be judged, for a ULP may reject anybody, and
// a peer without RFC 6581 ends every enhanced session.
struct SctpKnown {
  bool answers = false;        // some session control message of a known Function Code came
  bool enhanced = false;       // ... with a code of RFC 6581
  bool accepts = false;        // an enhanced Initiate was accepted, with no private data that nobody knows
  bool accepts_plain = false;  // a plain one likewise
  enhanced::RtrForms names{};  // RTR forms that an accepting answer ever named
};
[[nodiscard]] SctpKnown learn(std::span<const SctpRecord> records);

// Whether DDP may be spoken there at all: the peer's INIT ACK has the adaptation indication of DDP.
[[nodiscard]] bool indicates_ddp(const SctpAnswer& answer);

[[nodiscard]] Deviations judge(const SctpRecord& record, const SctpKnown& known);

}  // namespace iwarp::tools::probe
