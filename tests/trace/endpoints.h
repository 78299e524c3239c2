// Two ends of a connection, for tests of packets.
#pragma once

#include "iwarp/trace/packet.h"
#include "tests/support/hex.h"

namespace iwarp::trace {

inline Endpoint endpoint(const char* address, std::uint16_t port) {
  Endpoint e;
  const test::Bytes b = test::hex(address);
  std::copy(b.begin(), b.end(), e.address.begin());
  e.port = port;
  return e;
}
inline const Endpoint kClient4 = endpoint("00000000 00000000 0000ffff 0a000001", 4000);
inline const Endpoint kServer4 = endpoint("00000000 00000000 0000ffff 0a000002", 7174);
inline const Endpoint kClient6 = endpoint("fe800000 00000000 00000000 00000001", 4000);
inline const Endpoint kServer6 = endpoint("fe800000 00000000 00000000 00000002", 7174);

}  // namespace iwarp::trace
