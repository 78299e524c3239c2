#include "iwarp/trace/line.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace iwarp::trace {
namespace {

void append(std::string& out, const char* format, auto... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  out += text;
}

}  // namespace

Pdu::Pdu(std::string_view name) : text_(name) {
  text_ += '(';
}

std::string& Pdu::name(std::string_view field) {
  if (!std::exchange(empty_, false)) text_ += ", ";
  text_ += field;
  return text_ += '=';
}

Pdu& Pdu::number(std::string_view field, std::uint64_t value) {
  append(name(field), "%" PRIu64, value);
  return *this;
}

Pdu& Pdu::hex(std::string_view field, std::uint64_t value) {
  append(name(field), "0x%" PRIx64, value);
  return *this;
}

Pdu& Pdu::octets(std::string_view field, ConstBytes value, std::size_t max) {
  std::string& out = name(field);
  for (const std::byte b : value.first(std::min(max, value.size()))) append(out, "%02x", std::to_integer<unsigned>(b));
  if (value.size() > max) out += "...";
  return *this;
}

Pdu& Pdu::text(std::string_view field, std::string_view value) {
  std::string& out = name(field);
  out += '"';
  for (const char c : value) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') {
      append(out, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  out += '"';
  return *this;
}

Pdu& Pdu::word(std::string_view field, std::string_view value) {
  name(field) += value;
  return *this;
}

void Lines::add(Duration at, Direction direction, std::string_view layer, std::string_view pdu) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(at).count();
  std::string line;
  append(line, "%" PRId64 ".%03d ", static_cast<std::int64_t>(us / 1000), static_cast<int>(us % 1000));
  line += connection_;
  line += direction == Direction::kTx ? " tx " : " rx ";
  line += layer;
  line += ' ';
  line += pdu;
  lines_.push_back(std::move(line));
}

std::vector<std::string> Lines::take() {
  return std::exchange(lines_, {});
}

}  // namespace iwarp::trace
