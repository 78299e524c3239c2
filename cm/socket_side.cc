#include "iwarp/cm/socket_side.h"

#include <array>

namespace iwarp::cm {
namespace {

struct SideRow {
  Side from;
  SideInput on;
  Side to;
};
using enum Side;
constexpr std::array kRows = {
    SideRow{kReady, SideInput::kShort, kDry},        SideRow{kReadyArmed, SideInput::kShort, kDryArmed},
    SideRow{kReadyArmed, SideInput::kFired, kReady}, SideRow{kDry, SideInput::kWhole, kReady},
    SideRow{kDry, SideInput::kArm, kDryArmed},       SideRow{kDryArmed, SideInput::kWhole, kReadyArmed},
    SideRow{kDryArmed, SideInput::kFired, kReady},
};

}  // namespace

std::optional<Side> next(Side from, SideInput on) {
  for (const SideRow& row : kRows) {
    if (row.from == from && row.on == on) return row.to;
  }
  return std::nullopt;
}

const char* name(Side side) {
  constexpr std::array<const char*, kSides> kNames = {"READY", "READY_ARMED", "DRY", "DRY_ARMED"};
  return kNames[static_cast<std::size_t>(side)];
}
const char* name(SideInput input) {
  constexpr std::array<const char*, kSideInputs> kNames = {"whole", "short", "arm", "fired"};
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace iwarp::cm
