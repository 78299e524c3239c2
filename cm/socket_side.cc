#include "iwarp/cm/socket_side.h"

#include <array>

namespace iwarp::cm {
namespace {

struct Row {
  Side from;
  SideInput on;
  Side to;
};
using enum Side;
constexpr std::array kRows = {
    Row{kReady, SideInput::kShort, kDry},        Row{kReadyArmed, SideInput::kShort, kDryArmed},
    Row{kReadyArmed, SideInput::kFired, kReady}, Row{kDry, SideInput::kWhole, kReady},
    Row{kDry, SideInput::kArm, kDryArmed},       Row{kDryArmed, SideInput::kWhole, kReadyArmed},
    Row{kDryArmed, SideInput::kFired, kReady},
};

}  // namespace

std::optional<Side> next(Side from, SideInput on) {
  for (const Row& row : kRows) {
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
