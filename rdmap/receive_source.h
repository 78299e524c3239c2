// Where Receives come from that are not posted to one receive queue alone.
#pragma once

#include "iwarp/rdmap/work_request.h"

namespace iwarp::rdmap {

class ReceiveSource {
 public:
  // Moves the oldest Receive to `wr`: it is the caller's from here on. False, and nothing is changed: there is none.
  [[nodiscard]] virtual bool take(RecvWr& wr) = 0;

 protected:
  ~ReceiveSource() = default;
};

}  // namespace iwarp::rdmap
