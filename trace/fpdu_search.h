// Finds where FPDUs begin in bytes whose beginning is unknown: after a loss, or in a capture that started too late. A
// passive observer's guess, of no use to a receiver (RFC 5044 has Markers for that).
#pragma once

#include <cstddef>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp::trace {

struct FpduSearch {
  std::size_t skip = 0;     // octets that cannot be the start of an FPDU
  bool found = false;       // an FPDU starts behind them; false: the rest is undecided, come back with more
  std::optional<bool> crc;  // whether CRCs are in use, when found
};

// What is accepted: an FPDU whose CRC is right (unless `crc` is known to be off), or, without CRC, three in a row whose
// DDP and RDMAP headers are plausible. `at_end`: no more will come, so any number of them that fill the bytes will do.
// Asks for at most three FPDUs of the largest size.
[[nodiscard]] FpduSearch find_fpdu(ConstBytes bytes, std::optional<bool> crc, bool at_end);

}  // namespace iwarp::trace
