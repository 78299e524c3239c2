// Errors as std::error_code, for exceptions, Asio and whoever speaks no other language. Errc is an error code of the
// category "iwarp", Condition an error condition; where std::errc has a name for the same thing (timed_out,
// operation_canceled, connection_refused, connection_reset, not_connected, invalid_argument), a code equals that, too.
//
// A code made from an Error keeps its text: message() gives it. Such codes have categories of their own, of the same
// name, so compare a code with an Errc, a Condition or a std::errc, and not with another code. Thread-safe.
#pragma once

#include <system_error>
#include <type_traits>

#include "iwarp/base/error.h"

template <>
struct std::is_error_code_enum<iwarp::Errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<iwarp::Condition> : std::true_type {};

namespace iwarp {

// The category of Errc, "iwarp".
[[nodiscard]] const std::error_category& error_category() noexcept;
// The category of Condition, "iwarp condition".
[[nodiscard]] const std::error_category& condition_category() noexcept;

// With the standard text of the code. No error for kOk.
[[nodiscard]] std::error_code make_error_code(Errc code) noexcept;
// With the text of `error`. Without memory for that: with the standard text of its code.
[[nodiscard]] std::error_code make_error_code(const Error& error) noexcept;
// Lets a std::error_code be compared with a Condition.
[[nodiscard]] std::error_condition make_error_condition(Condition condition) noexcept;

// Whatever the text. A code without an error equals kOk.
[[nodiscard]] bool operator==(const std::error_code& code, Errc errc) noexcept;

// Throws std::system_error.
[[noreturn]] void throw_error(const Error& error);

}  // namespace iwarp
