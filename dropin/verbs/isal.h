// ISA-L for CRC-32C, which may be missing in the process of another program: it is loaded when the engine is made, and
// a table takes its place where that fails.
#pragma once

#include "iwarp/mpa/isal.h"

namespace iwarp::dropin {

// That library's crc32_iscsi(). Null: there is no such library, or it does not give the numbers of CRC-32C. It is never
// unloaded. Not to be called in a forked child of a program with threads.
[[nodiscard]] mpa::IsalCrc load_isal(const char* library);

}  // namespace iwarp::dropin
