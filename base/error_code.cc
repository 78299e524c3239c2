#include "iwarp/base/error_code.h"

#include <atomic>
#include <new>
#include <optional>
#include <string>

namespace iwarp {
namespace {

Errc errc_of(int value) {
  return value < 0 || value > static_cast<int>(Errc::kLast) ? Errc::kInvalidArgument : static_cast<Errc>(value);
}

// What the standard calls the same thing.
std::optional<std::errc> generic(Errc code) {
  switch (code) {
    case Errc::kTimeout:
    case Errc::kStartupTimeout:
      return std::errc::timed_out;
    case Errc::kAborted:
      return std::errc::operation_canceled;
    case Errc::kPeerRejected:
    case Errc::kConnectionRefused:
      return std::errc::connection_refused;
    case Errc::kConnectionLost:
      return std::errc::connection_reset;
    case Errc::kNotConnected:
      return std::errc::not_connected;
    case Errc::kInvalidArgument:
      return std::errc::invalid_argument;
    default:
      return std::nullopt;
  }
}

class Category final : public std::error_category {
 public:
  // `text`: of all its codes; null: the standard text of each.
  explicit Category(const char* text) : text_(text) {}
  [[nodiscard]] const char* name() const noexcept override { return "iwarp"; }
  [[nodiscard]] std::string message(int value) const override {
    return text_ != nullptr ? text_ : make_error(errc_of(value)).why;
  }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    if (const auto standard = generic(errc_of(value))) return *standard;
    return condition(errc_of(value));
  }
  using std::error_category::equivalent;
  [[nodiscard]] bool equivalent(int value, const std::error_condition& to) const noexcept override {
    return to == make_error_condition(condition(errc_of(value))) || to == default_error_condition(value);
  }
  [[nodiscard]] const char* text() const { return text_; }

 private:
  const char* text_;
};

class ConditionCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "iwarp condition"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<Condition>(value)) {
      case Condition::kNone:
        return "no error";
      case Condition::kHandshakeFailed:
        return "connection setup failed";
      case Condition::kProtocolViolation:
        return "protocol violation";
      case Condition::kPeerRefused:
        return "refused by the peer";
      case Condition::kDisconnected:
        return "disconnected";
      case Condition::kLocalMisuse:
        return "wrong use of the library";
      case Condition::kSystemFailure:
        return "failure of the local system";
    }
    return "unknown";
  }
};

// The texts that were asked for, as long as the process lives: texts are static, so these are few.
struct Text {
  explicit Text(const char* text) : category(text) {}
  Category category;
  const Text* next = nullptr;
};
std::atomic<const Text*> texts{nullptr};

const std::error_category& category_with(const char* text) noexcept {
  const Text* head = texts.load(std::memory_order_acquire);
  for (const Text* t = head; t != nullptr; t = t->next) {
    if (t->category.text() == text) return t->category;
  }
  Text* const made = new (std::nothrow) Text(text);
  if (made == nullptr) return error_category();
  made->next = head;
  while (!texts.compare_exchange_weak(made->next, made, std::memory_order_acq_rel, std::memory_order_acquire)) {
  }
  return made->category;
}

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category it(nullptr);
  return it;
}

const std::error_category& condition_category() noexcept {
  static const ConditionCategory it;
  return it;
}

std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

std::error_code make_error_code(const Error& error) noexcept {
  if (error.why == make_error(error.code).why || *error.why == '\0') return make_error_code(error.code);
  return {static_cast<int>(error.code), category_with(error.why)};
}

std::error_condition make_error_condition(Condition condition) noexcept {
  return {static_cast<int>(condition), condition_category()};
}

bool operator==(const std::error_code& code, Errc errc) noexcept {
  if (errc == Errc::kOk) return !code;
  return code.value() == static_cast<int>(errc) && dynamic_cast<const Category*>(&code.category()) != nullptr;
}

void throw_error(const Error& error) {
  throw std::system_error(make_error_code(error));
}

}  // namespace iwarp
