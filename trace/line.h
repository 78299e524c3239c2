// Lines of a trace (grammar: docs/TRACE.md):  <ms> <conn> rx|tx <layer> <PDU>(field=value, ...)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/time.h"

namespace iwarp::trace {

// As seen by the end whose connection is traced. In a capture by a third party that end is the TCP client.
enum class Direction : std::uint8_t { kTx, kRx };
[[nodiscard]] constexpr Direction opposite(Direction d) {
  return d == Direction::kTx ? Direction::kRx : Direction::kTx;
}
[[nodiscard]] constexpr std::size_t index(Direction d) {
  return static_cast<std::size_t>(d);
}

// Builds "Name(field=value, ...)".
class Pdu {
 public:
  explicit Pdu(std::string_view name);
  Pdu& number(std::string_view field, std::uint64_t value);
  Pdu& hex(std::string_view field, std::uint64_t value);  // 0x1f
  // 1f00ab; at most `max` octets, then "...".
  Pdu& octets(std::string_view field, ConstBytes value, std::size_t max = 64);
  // In double quotes; what is no printable ASCII, '"' and '\' come out as \xHH, so that a line stays a line.
  Pdu& text(std::string_view field, std::string_view value);
  Pdu& word(std::string_view field, std::string_view value);  // as it is
  [[nodiscard]] std::string str() const { return text_ + ')'; }

 private:
  std::string& name(std::string_view field);

  std::string text_;
  bool empty_ = true;
};

// The lines of one connection, kept until they are taken.
class Lines {
 public:
  explicit Lines(std::string connection) : connection_(std::move(connection)) {}
  // `at`: since the start of the trace.
  void add(Duration at, Direction direction, std::string_view layer, std::string_view pdu);
  [[nodiscard]] std::vector<std::string> take();

 private:
  std::string connection_;
  std::vector<std::string> lines_;
};

}  // namespace iwarp::trace
