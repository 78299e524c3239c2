// CRC-32C (Castagnoli) as MPA uses it: RFC 5044 s4.4, RFC 3720 s12.1 and B.4. Not thread-safe per object; the free
// functions are.
//
// Trap: MPA fields are big-endian, but the CRC goes out least significant octet first. write_to() is the one place that
// knows this.
#pragma once

#include <cstdint>
#include <span>

#include "iwarp/base/bytes.h"

namespace iwarp::mpa {

// Octets of the CRC field of an FPDU.
inline constexpr std::size_t kCrcBytes = 4;

// A CRC over bytes that come in pieces; copying it forks the computation.
class Crc32c {
 public:
  // Adds the bytes that follow.
  void update(ConstBytes bytes);
  // The CRC of everything so far, as a number (check value of "123456789": 0xE3069283). Does not end the computation.
  [[nodiscard]] std::uint32_t value() const { return ~register_; }
  // The same in wire form, least significant octet first.
  void write_to(std::span<std::byte, kCrcBytes> out) const;

 private:
  std::uint32_t register_ = 0xFFFFFFFFu;
};

// CRC of one contiguous run of bytes, by the fastest implementation this CPU has.
[[nodiscard]] std::uint32_t crc32c(ConstBytes bytes);

// Reads a CRC field in wire form.
[[nodiscard]] std::uint32_t load_crc(std::span<const std::byte, kCrcBytes> field);

// The implementations, each usable alone so that tests can compare them. All give the same numbers.
[[nodiscard]] std::uint32_t crc32c_portable(ConstBytes bytes);  // slicing by 8, any CPU
[[nodiscard]] std::uint32_t crc32c_isal(ConstBytes bytes);  // ISA-L; correct everywhere, fast only where accelerated
// Whether crc32c() and Crc32c use ISA-L here. Constant for the life of the process.
[[nodiscard]] bool crc32c_is_accelerated();

}  // namespace iwarp::mpa
