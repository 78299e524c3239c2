// Big-endian codecs: the one file that knows about octet order. Never lay a struct over received bytes: read fields
// through these.
#pragma once

#include <array>
#include <concepts>
#include <cstring>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp {

// Reads a big-endian integer from exactly the first sizeof(T) bytes of `in`. Precondition: in.size() >= sizeof(T).
template <std::unsigned_integral T>
[[nodiscard]] constexpr T load_be(ConstBytes in) {
  T v{};
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    if constexpr (sizeof(T) == 1) {
      v = std::to_integer<T>(in[i]);
    } else {
      v = static_cast<T>(static_cast<T>(v << 8) | std::to_integer<T>(in[i]));
    }
  }
  return v;
}

// Writes `v` big-endian into the first sizeof(T) bytes of `out`. Precondition: out.size() >= sizeof(T).
template <std::unsigned_integral T>
constexpr void store_be(MutBytes out, T v) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[sizeof(T) - 1 - i] = static_cast<std::byte>(v & 0xFF);
    if constexpr (sizeof(T) > 1) v = static_cast<T>(v >> 8);
  }
}

// N bytes whose presence was proved once by of(); fields are then read at compile-time offsets, so a wrong offset does
// not compile.
template <std::size_t N>
struct FixedView {
  std::span<const std::byte, N> b;  // those bytes

  // The first N bytes of `in`; nullopt when there are fewer.
  [[nodiscard]] static constexpr std::optional<FixedView> of(ConstBytes in) {
    if (in.size() < N) return std::nullopt;
    return FixedView{in.first<N>()};
  }
  // The field of type T at offset Off.
  template <std::unsigned_integral T, std::size_t Off>
  [[nodiscard]] constexpr T be() const {
    static_assert(Off + sizeof(T) <= N, "field lies outside the header");
    return load_be<T>(b.template subspan<Off, sizeof(T)>());
  }
};

// The writing twin of FixedView: a frame of exactly N bytes, every field at a compile-time offset.
template <std::size_t N>
struct FixedWriter {
  std::span<std::byte, N> b;  // those bytes

  // Writes the field at offset Off.
  template <std::size_t Off, std::unsigned_integral T>
  constexpr void be(T v) {
    static_assert(Off + sizeof(T) <= N, "field lies outside the header");
    store_be<T>(b.template subspan<Off, sizeof(T)>(), v);
  }
};

// Bounds-checking reader for variable data. After the first failure every further read fails and ok() is false; values
// read then are 0.
class ReadCursor {
 public:
  // Begins at in[0]. `in` must live as long as this object and what take() gives.
  explicit constexpr ReadCursor(ConstBytes in) : rest_(in) {}

  // The next integer; 0 and !ok() when too few bytes are left.
  template <std::unsigned_integral T>
  constexpr T be() {
    if (!ok_ || rest_.size() < sizeof(T)) {
      ok_ = false;
      return T{};
    }
    const T v = load_be<T>(rest_);
    rest_ = rest_.subspan(sizeof(T));
    return v;
  }
  // The next n bytes as a view into the input; empty and !ok() when there are fewer.
  constexpr ConstBytes take(std::size_t n) {
    if (!ok_ || rest_.size() < n) {
      ok_ = false;
      return {};
    }
    const ConstBytes v = rest_.first(n);
    rest_ = rest_.subspan(n);
    return v;
  }
  // As take(), and the bytes are not wanted.
  constexpr void skip(std::size_t n) { (void)take(n); }
  // No read has failed.
  [[nodiscard]] constexpr bool ok() const { return ok_; }
  // Bytes that are left; 0 when !ok().
  [[nodiscard]] constexpr std::size_t remaining() const { return ok_ ? rest_.size() : 0; }
  // The bytes that are left, unread; empty when !ok().
  [[nodiscard]] constexpr ConstBytes rest() const { return ok_ ? rest_ : ConstBytes{}; }

 private:
  ConstBytes rest_;
  bool ok_ = true;
};

// Bounds-checking writer. A write that does not fit writes nothing and makes ok() false for good.
class WriteCursor {
 public:
  // Begins at out[0]. `out` must live as long as this object.
  explicit constexpr WriteCursor(MutBytes out) : out_(out) {}

  // Writes an integer.
  template <std::unsigned_integral T>
  constexpr void be(T v) {
    if (MutBytes room = claim(sizeof(T)); !room.empty()) store_be<T>(room, v);
  }
  // Copies bytes.
  void bytes(ConstBytes in) {
    if (MutBytes room = claim(in.size()); !room.empty()) std::memcpy(room.data(), in.data(), in.size());
  }
  // Every write has fitted.
  [[nodiscard]] constexpr bool ok() const { return ok_; }
  // Bytes written so far.
  [[nodiscard]] constexpr std::size_t written() const { return used_; }

 private:
  constexpr MutBytes claim(std::size_t n) {
    if (!ok_ || out_.size() - used_ < n) {
      ok_ = false;
      return {};
    }
    used_ += n;
    return out_.subspan(used_ - n, n);
  }

  MutBytes out_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

}  // namespace iwarp
