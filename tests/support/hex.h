// Byte literals for tests: annotated hex in, hex out.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iwarp::test {

using Bytes = std::vector<std::byte>;

// hex("4d50 4120 | 00") gives the octets; blanks, newlines, '|' and ':' only separate. Throws on anything else: that is
// a broken test.
inline Bytes hex(std::string_view text) {
  Bytes out;
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '|' || c == ':') continue;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) throw std::invalid_argument("bad hex");
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<std::byte>(high * 16 + digit));
      high = -1;
    }
  }
  if (high >= 0) throw std::invalid_argument("odd number of hex digits");
  return out;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[std::to_integer<unsigned>(b) >> 4];
    out += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// n octets that differ from their neighbours: 0, 7, 14, ... plus `first`.
inline Bytes pattern(std::size_t n, unsigned first = 0) {
  Bytes out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>((first + i * 7) & 0xFF);
  return out;
}

}  // namespace iwarp::test
