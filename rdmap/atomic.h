// Atomic Operations of RFC 7306 s5: both headers, and what FetchAdd and CmpSwap do to memory.
#pragma once

#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"
#include "iwarp/rdmap/work_request.h"

namespace iwarp::rdmap {

// AOpCode, Figure 5; all others are reserved or unassigned. req: RFC7306-5.2.1-12 RFC7306-5.2.1-13 RFC7306-10.1-1
enum class AtomicCode : std::uint8_t { kFetchAdd = 0, kCmpSwap = 2 };

// Figure 4: 0 reserved(28 bits), AOpCode(4) | 4 Request Identifier | 8 Remote STag | 12 Remote TO | 20 Add or Swap Data
// | 28 Add or Swap Mask | 36 Compare Data | 44 Compare Mask, 52 octets.
struct AtomicRequest {
  static constexpr std::size_t kSize = 52;

  std::uint8_t code = 0;  // as received: see known()
  std::uint32_t id = 0;
  Stag stag{};
  std::uint64_t to = 0;
  AtomicOperands operands{};

  // Whether `code` is one of AtomicCode. req: RFC7306-5-4 RFC7306-5.2.1-3
  [[nodiscard]] bool known() const;
  // nullopt unless `in` is exactly kSize octets.
  [[nodiscard]] static std::optional<AtomicRequest> parse(ConstBytes in);
  void write_to(std::span<std::byte, kSize> out) const;
  friend bool operator==(const AtomicRequest&, const AtomicRequest&) = default;
};

// Figure 6: 0 Original Request Identifier | 4 Original Remote Data Value, 12 octets.
struct AtomicResponse {
  static constexpr std::size_t kSize = 12;

  std::uint32_t id = 0;
  std::uint64_t original = 0;

  // nullopt unless `in` is exactly kSize octets.
  [[nodiscard]] static std::optional<AtomicResponse> parse(ConstBytes in);
  void write_to(std::span<std::byte, kSize> out) const;
  friend bool operator==(const AtomicResponse&, const AtomicResponse&) = default;
};

// The value that takes the place of `original`. Precondition: request.known().
[[nodiscard]] std::uint64_t apply(const AtomicRequest& request, std::uint64_t original);
// Does that to memory in the octet order of this machine, as one step for all that access the same 64 bits through
// std::atomic_ref, here or in other threads and processes. Gives the value that was there. Preconditions:
// request.known(), and `target` is 8 octets at an address that is a multiple of 8.
[[nodiscard]] std::uint64_t execute(const AtomicRequest& request, MutBytes target);

}  // namespace iwarp::rdmap
