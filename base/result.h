// Result<T>: a value or the Error that kept us from it. C++20 has no std::expected; this is the one substitute in the
// project. As there, value() checks and throws, `*` and `->` are for whoever has looked.
#pragma once

#include <utility>
#include <variant>

#include "iwarp/base/error.h"
#include "iwarp/base/error_code.h"

namespace iwarp {

// A value of type T or the Error in its place: true when there is a value.
template <class T>
class [[nodiscard]] Result {
 public:
  // Holds a value.
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose, `return value;`
  // Holds an error. Precondition: its code is not kOk.
  Result(Error error) : v_(std::in_place_index<1>, error) {}  // NOLINT: implicit on purpose, `return Error{...};`

  // Whether there is a value.
  [[nodiscard]] bool ok() const { return v_.index() == 0; }
  // As ok().
  explicit operator bool() const { return ok(); }
  // Throws std::system_error, which tells the error, when there is no value.
  [[nodiscard]] T& value() & { return check(), *std::get_if<0>(&v_); }
  [[nodiscard]] const T& value() const& { return check(), *std::get_if<0>(&v_); }
  [[nodiscard]] T&& value() && { return check(), std::move(*std::get_if<0>(&v_)); }
  // The value, or `otherwise` where there is an error.
  template <class U>
  [[nodiscard]] T value_or(U&& otherwise) const& {
    return ok() ? **this : static_cast<T>(std::forward<U>(otherwise));
  }
  template <class U>
  [[nodiscard]] T value_or(U&& otherwise) && {
    return ok() ? *std::move(*this) : static_cast<T>(std::forward<U>(otherwise));
  }
  // Precondition of these: ok(); of error(): !ok(). A breach is a bug of the caller and throws std::bad_variant_access.
  [[nodiscard]] T& operator*() & { return std::get<0>(v_); }
  [[nodiscard]] const T& operator*() const& { return std::get<0>(v_); }
  [[nodiscard]] T&& operator*() && { return std::get<0>(std::move(v_)); }
  // As `*`.
  [[nodiscard]] T* operator->() { return &std::get<0>(v_); }
  [[nodiscard]] const T* operator->() const { return &std::get<0>(v_); }
  // What kept it from a value. Precondition: !ok().
  [[nodiscard]] const Error& error() const { return std::get<1>(v_); }

 private:
  void check() const {
    if (!ok()) throw_error(error());
  }

  std::variant<T, Error> v_;
};

// Success, or the Error in its place.
template <>
class [[nodiscard]] Result<void> {
 public:
  // Success.
  Result() = default;
  // Holds an error. Precondition: its code is not kOk.
  Result(Error error) : error_(error), ok_(false) {}  // NOLINT: implicit on purpose

  // Whether there is no error.
  [[nodiscard]] bool ok() const { return ok_; }
  // As ok().
  explicit operator bool() const { return ok_; }
  // Throws std::system_error, which tells the error, when there is one.
  void value() const {
    if (!ok_) throw_error(error_);
  }
  // The error, or kOk.
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace iwarp
