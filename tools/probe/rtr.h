// The Ready-To-Receive message of `iwarp probe`, and what a responder says to it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "tools/probe/answer.h"
#include "tools/probe/question.h"
#include "tools/probe/raw_frame.h"

namespace iwarp::tools::probe {

// The form that both sides named, Read before Write as only that is answered; kNone: the Reply does not accept, there
// is no common form, or one that may not be sent (a Send would take a receive of the ULP; Markers are not made).
[[nodiscard]] mpa::Rtr rtr_to_send(const Question& question, const RawFrame& reply);
// The same of what both sides said, the answer being one that accepts.
[[nodiscard]] mpa::Rtr rtr_to_send(const mpa::EnhancedData& ours, const mpa::EnhancedData& theirs);
// The DDP segment. Precondition: form is kWrite or kRead.
[[nodiscard]] std::vector<std::byte> rtr_segment(mpa::Rtr form);
// What a segment says about it that came since; nullopt: nothing.
[[nodiscard]] std::optional<RtrResult> rtr_answer(mpa::Rtr form, ConstBytes segment);
// The FPDU on the wire. Precondition: form is kWrite or kRead.
[[nodiscard]] std::vector<std::byte> rtr_fpdu(mpa::Rtr form, bool crc);
// What the octets that came since the RTR say about it; nullopt: nothing yet. `octets` is not changed.
[[nodiscard]] std::optional<RtrResult> rtr_answer(mpa::Rtr form, bool crc, MutBytes octets);

}  // namespace iwarp::tools::probe
