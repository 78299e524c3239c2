// How a responder's answers deviate from the RFCs. Pure functions of what was sent and what came.
#pragma once

#include <span>

#include "tools/probe/answer.h"
#include "tools/probe/findings.h"
#include "tools/probe/question.h"
#include "tools/probe/raw_frame.h"

namespace iwarp::tools::probe {

struct Record {
  const Question* question = nullptr;
  Answer answer;
};

// What all answers together tell: without it a rejection or a close cannot be judged, for a ULP may reject anybody, and
// a responder without RFC 6581 closes on every enhanced Request.
struct Known {
  bool replies = false;              // some Reply came with the right Key
  bool enhanced = false;             // ... an enhanced one
  bool accepts = false;              // an enhanced Request with C=1, M=0 and no odd bits was accepted
  bool accepts_without_crc = false;  // the same with C=0
  // RTR forms that an accepting Reply ever named.
  bool names_send = false;
  bool names_write = false;
  bool names_read = false;
};
[[nodiscard]] Known learn(std::span<const Record> records);

[[nodiscard]] Deviations judge(const Record& record, const Known& known);

}  // namespace iwarp::tools::probe
