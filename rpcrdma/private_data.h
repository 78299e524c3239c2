// Connection private data of RPC-over-RDMA version 1 (RFC 8797): inline sizes and remote invalidation, exchanged once
// per connection inside the private data of the connection manager (for iWARP: of the MPA startup frames). Pure; the
// values of one connection say nothing about the next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "iwarp/base/bytes.h"

namespace iwarp::rpcrdma {

// Octets: 0-3 format identifier f6 ab 0e 18 | 4 version 1 | 5 reserved (7 bits), R | 6 send size | 7 receive size. A
// size code v means (v + 1) * 1024. The default value is what a peer without private data is taken to have sent.
struct PrivateData {
  static constexpr std::uint32_t kMagic = 0xf6ab0e18;  // format identifier
  static constexpr std::size_t kSize = 8;              // octets
  static constexpr std::uint32_t kMinBytes = 1024;     // smallest size that can be said
  static constexpr std::uint32_t kMaxBytes = 262144;   // largest size that can be said

  bool remote_invalidation = false;         // R: Send with Invalidate may name *any* STag this peer exposes
  std::uint32_t send_bytes = kMinBytes;     // largest RDMA Send this peer transmits
  std::uint32_t receive_bytes = kMinBytes;  // largest message its posted Receives take

  // Looks for the identifier at every octet offset of what the connection manager delivered; nullopt when it is absent,
  // truncated or of another version.
  [[nodiscard]] static std::optional<PrivateData> find(ConstBytes private_data);
  // The same, but then with the defaults: never fails.
  [[nodiscard]] static PrivateData parse(ConstBytes private_data) { return find(private_data).value_or(PrivateData{}); }
  // The 8 octets to send. Sizes are rounded down to 1024 and clamped to what can be said, so never more is promised
  // than held; below 1024 is our bug.
  [[nodiscard]] std::array<std::byte, kSize> encode() const;
  // For logs.
  [[nodiscard]] std::string to_string() const;

  friend constexpr bool operator==(const PrivateData&, const PrivateData&) = default;
};

// What one connection may use, the same at both ends. "Call" and "Reply" are those of the forward direction; for
// backward RPCs they swap (RFC 8167 s4.2).
struct ConnectionLimits {
  std::uint32_t call_inline_bytes = PrivateData::kMinBytes;   // client to server: header plus payload
  std::uint32_t reply_inline_bytes = PrivateData::kMinBytes;  // server to client
  bool remote_invalidation = false;                           // both sides set R

  friend constexpr bool operator==(const ConnectionLimits&, const ConnectionLimits&) = default;
};

// The limits of a connection whose ends have sent these.
[[nodiscard]] ConnectionLimits negotiate(const PrivateData& client, const PrivateData& server);

}  // namespace iwarp::rpcrdma
