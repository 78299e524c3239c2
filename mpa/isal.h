// How ISA-L is reached. Here it is linked; who cannot link it, as it may be missing where the program runs, puts a
// source that defines isal_crc() before this library: dropin/verbs/isal.cc does.
#pragma once

namespace iwarp::mpa {

// crc32_iscsi(): buffer, octets, register before; the register behind them. It does neither inversion.
using IsalCrc = unsigned int (*)(unsigned char*, int, unsigned int);

// Null: there is no ISA-L. Thread-safe, and the same at each call.
[[nodiscard]] IsalCrc isal_crc();

}  // namespace iwarp::mpa
