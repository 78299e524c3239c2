// Result<T>: a value or the Error that kept us from it. C++20 has no std::expected; this is the one substitute in the
// project.
#pragma once

#include <utility>
#include <variant>

#include "iwarp/base/error.h"

namespace iwarp {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose, `return value;`
  Result(Error error) : v_(std::in_place_index<1>, error) {}  // NOLINT: implicit on purpose, `return Error{...};`

  [[nodiscard]] bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Precondition of value access: ok(); of error(): !ok(). A breach is our bug and throws std::bad_variant_access.
  [[nodiscard]] T& value() & { return std::get<0>(v_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(v_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const { return std::get<1>(v_); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(error), ok_(false) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace iwarp
