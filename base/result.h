// Result<T>: a value or the Error that kept us from it. C++20 has no std::expected; this is the one substitute in the
// project. As there, value() checks and throws, `*` and `->` are for whoever has looked.
#pragma once

#include <utility>
#include <variant>

#include "iwarp/base/error.h"
#include "iwarp/base/error_code.h"

namespace iwarp {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose, `return value;`
  Result(Error error) : v_(std::in_place_index<1>, error) {}  // NOLINT: implicit on purpose, `return Error{...};`

  [[nodiscard]] bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Throws std::system_error, which tells the error, when there is no value.
  [[nodiscard]] T& value() & { return check(), *std::get_if<0>(&v_); }
  [[nodiscard]] const T& value() const& { return check(), *std::get_if<0>(&v_); }
  [[nodiscard]] T&& value() && { return check(), std::move(*std::get_if<0>(&v_)); }
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
  [[nodiscard]] T* operator->() { return &std::get<0>(v_); }
  [[nodiscard]] const T* operator->() const { return &std::get<0>(v_); }
  [[nodiscard]] const Error& error() const { return std::get<1>(v_); }

 private:
  void check() const {
    if (!ok()) throw_error(error());
  }

  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(error), ok_(false) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  // Throws std::system_error, which tells the error, when there is one.
  void value() const {
    if (!ok_) throw_error(error_);
  }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace iwarp
