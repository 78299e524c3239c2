// The receiving side of one untagged queue (RFC 5041 s4.3, s7.1): checks that a segment continues the message that is
// due and says where in its buffer the payload belongs. Knows nothing of what the buffers are.
//
// Over TCP segments arrive in the order sent, so exactly one message per queue is under way: another MSN, or an MO that
// leaves a gap or goes back, is refused (a gap would deliver octets that nobody sent). An LLP that reorders (SCTP)
// has its order restored below.
#pragma once

#include <optional>

#include "iwarp/base/result.h"
#include "iwarp/ddp/segment_header.h"

namespace iwarp::ddp {

class UntaggedReceiver {
 public:
  explicit UntaggedReceiver(Msn first = {}) : expected_(first) {}

  // Checks a segment of `payload_bytes`. `buffer_bytes` is the capacity of the buffer for the expected message, nullopt
  // when none is posted. Gives the offset where the payload goes. Nothing changes until commit().
  [[nodiscard]] Result<std::uint32_t> check(const UntaggedHeader& h, std::size_t payload_bytes,
                                            std::optional<std::uint64_t> buffer_bytes) const;
  // The checked segment was placed. Gives the message length when it was the last one.
  std::optional<std::uint32_t> commit(const UntaggedHeader& h, std::size_t payload_bytes);

  [[nodiscard]] Msn expected() const { return expected_; }

 private:
  Msn expected_{};
  std::uint32_t placed_ = 0;
};

}  // namespace iwarp::ddp
