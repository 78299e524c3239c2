// What rdma_cm does otherwise where the device presents itself as RoCE.
#pragma once

#include <cstddef>
#include <vector>

#include "dropin/verbs/settings.h"
#include "iwarp/base/bytes.h"

namespace iwarp::dropin::rdmacm {

[[nodiscard]] inline bool presents_roce() {
  return settings().present == Present::kRoce;
}

// Octets of private data that InfiniBand's messages have for the program: it sees all of them, zeros behind its own.
inline constexpr std::size_t kRequestRoom = 56, kAnswerRoom = 196, kRejectionRoom = 148;

// What the program is shown of the peer's private data.
[[nodiscard]] inline std::vector<std::byte> as_presented(ConstBytes own, std::size_t room) {
  std::vector<std::byte> shown(own.begin(), own.end());
  if (presents_roce() && shown.size() < room) shown.resize(room);
  return shown;
}

}  // namespace iwarp::dropin::rdmacm
