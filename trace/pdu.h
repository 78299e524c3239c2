// One message and its fields, as a trace shows them: "Name(field=value, ...)". Pure value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::trace {

// One field of a message.
struct Field {
  // How its value is written.
  enum class Kind : std::uint8_t {
    kNumber,        // decimal
    kHex,           // 0x1f
    kMilliseconds,  // decimal with three places; `number` holds microseconds
    kOctets,        // pairs of hexadecimal digits
    kText,          // in double quotes, see text()
    kWord,          // as it is; no blanks
    kList,          // "[a b]": words, or lists again, with a blank between each two
  };
  std::string_view name;     // static
  Kind kind = Kind::kWord;   // how the value is written
  std::uint64_t number = 0;  // of the first three kinds
  std::string value;         // as a line shows it, but without the quotes of kText

  // "name=value"
  [[nodiscard]] std::string str() const;
};

// Builds it field by field. Names are static text.
class Pdu {
 public:
  // A message without fields. `name` is static text.
  explicit Pdu(std::string_view name = {}) : name_(name) {}
  // Adds a decimal number.
  Pdu& number(std::string_view field, std::uint64_t value);
  // Adds a hexadecimal number, with 0x.
  Pdu& hex(std::string_view field, std::uint64_t value);
  Pdu& milliseconds(std::string_view field, std::int64_t microseconds);  // negative: 0
  // 1f00ab; at most `max` octets, then "...".
  Pdu& octets(std::string_view field, ConstBytes value, std::size_t max = 64);
  // What is no printable ASCII, '"' and '\' come out as \xHH, so that a line stays a line.
  Pdu& text(std::string_view field, std::string_view value);
  // Adds a word: no blanks.
  Pdu& word(std::string_view field, std::string value);
  Pdu& list(std::string_view field, std::string value);  // brackets included
  // In front of all fields.
  Pdu& first_number(std::string_view field, std::uint64_t value);

  // The message's name, such as "Send".
  [[nodiscard]] std::string_view name() const { return name_; }
  // The fields in their order.
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  // nullptr: there is none.
  [[nodiscard]] const Field* find(std::string_view field) const;
  // 0 if there is none.
  [[nodiscard]] std::uint64_t number_of(std::string_view field) const;
  // "Name(field=value, ...)"
  [[nodiscard]] std::string str() const;

 private:
  Pdu& add(std::string_view field, Field::Kind kind, std::uint64_t number, std::string value);

  std::string_view name_;
  std::vector<Field> fields_;
};

}  // namespace iwarp::trace
