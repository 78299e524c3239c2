// Uses a single layer of the installed package: the CRC-32C of "123456789" is a well-known number.
#include <cstdio>
#include <span>

#include "iwarp/mpa/crc32c.h"

int main() {
  const char digits[] = "123456789";
  const std::uint32_t crc = iwarp::mpa::crc32c(std::as_bytes(std::span(digits)).first(9));
  std::printf("crc32c %08x\n", static_cast<unsigned>(crc));
  return crc == 0xE3069283u ? 0 : 1;
}
