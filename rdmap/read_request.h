// RDMA Read Request header (RFC 5040 s4.4, Figure 6): 0 SinkSTag | 4 SinkTO | 12 RDMARDSZ | 16 SrcSTag | 20 SrcTO, 28
// octets.
#pragma once

#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"

namespace iwarp::rdmap {

struct ReadRequest {
  static constexpr std::size_t kSize = 28;

  Stag sink_stag{};
  std::uint64_t sink_to = 0;
  std::uint32_t size = 0;
  Stag source_stag{};
  std::uint64_t source_to = 0;

  // nullopt unless `in` is exactly kSize octets: a Read Request has this header and no payload (Figure 5).
  [[nodiscard]] static std::optional<ReadRequest> parse(ConstBytes in);
  void write_to(std::span<std::byte, kSize> out) const;
  friend bool operator==(const ReadRequest&, const ReadRequest&) = default;
};

}  // namespace iwarp::rdmap
