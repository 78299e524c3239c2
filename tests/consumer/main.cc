// Uses the installed package as a whole, headers and libraries.
#include <cstdio>
#include <cstring>

#include "iwarp/base/error.h"
#include "iwarp/mpa/crc32c.h"

int main() {
  const iwarp::Error error = iwarp::make_error(iwarp::Errc::kCrcMismatch);
  std::printf("%s: %s (CRC-32C by %s)\n", iwarp::name(error.code), error.why,
              iwarp::mpa::crc32c_is_accelerated() ? "ISA-L" : "table");
  return std::strcmp(iwarp::name(error.code), "crc_mismatch") == 0 ? 0 : 1;
}
