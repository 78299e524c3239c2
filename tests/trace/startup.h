// MPA startup frames for tests of the trace.
#pragma once

#include "iwarp/mpa/startup_frame.h"
#include "tests/support/hex.h"

namespace iwarp::trace {

inline test::Bytes to_bytes(const mpa::StartupFrame& frame) {
  test::Bytes out(frame.size());
  frame.write_to(out);
  return out;
}
inline test::Bytes request(bool crc, bool markers = false) {
  mpa::StartupFrame f;
  f.crc = crc;
  f.markers = markers;
  return to_bytes(f);
}
inline test::Bytes reply(bool crc, bool reject = false) {
  mpa::StartupFrame f;
  f.is_reply = true;
  f.crc = crc;
  f.reject = reject;
  return to_bytes(f);
}

}  // namespace iwarp::trace
