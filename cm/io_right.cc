#include "iwarp/cm/io_right.h"

#include <array>

namespace iwarp::cm {
namespace {

using R = IoRight;
using Cell = std::optional<R>;
constexpr Cell kNo = std::nullopt;

// Of each right: a look, an ask, the holder sees, the holder leaves.
constexpr std::array<std::array<Cell, kIoRightInputs>, kIoRights> kTable = {{
    /* kFree  */ {R::kHeld, R::kHeld, kNo, kNo},
    /* kHeld  */ {kNo, R::kAsked, R::kHeld, R::kFree},
    /* kAsked */ {kNo, R::kAsked, R::kHeld, kNo},
}};

}  // namespace

std::optional<IoRight> next(IoRight from, IoRightInput on) {
  return kTable[static_cast<std::size_t>(from)][static_cast<std::size_t>(on)];
}

const char* name(IoRight right) {
  constexpr std::array<const char*, kIoRights> kNames = {"FREE", "HELD", "ASKED"};
  return kNames[static_cast<std::size_t>(right)];
}
const char* name(IoRightInput input) {
  constexpr std::array<const char*, kIoRightInputs> kNames = {"look", "ask", "see", "leave"};
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace iwarp::cm
