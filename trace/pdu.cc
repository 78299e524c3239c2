#include "iwarp/trace/pdu.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace iwarp::trace {
namespace {

void append(std::string& out, const char* format, auto... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  out += text;
}

std::string formatted(const char* format, auto... values) {
  std::string out;
  append(out, format, values...);
  return out;
}

}  // namespace

std::string Field::str() const {
  std::string out(name);
  out += '=';
  return kind == Kind::kText ? out + '"' + value + '"' : out + value;
}

Pdu& Pdu::add(std::string_view field, Field::Kind kind, std::uint64_t number, std::string value) {
  fields_.push_back({field, kind, number, std::move(value)});
  return *this;
}

Pdu& Pdu::number(std::string_view field, std::uint64_t value) {
  return add(field, Field::Kind::kNumber, value, std::to_string(value));
}

Pdu& Pdu::first_number(std::string_view field, std::uint64_t value) {
  fields_.insert(fields_.begin(), {field, Field::Kind::kNumber, value, std::to_string(value)});
  return *this;
}

Pdu& Pdu::hex(std::string_view field, std::uint64_t value) {
  return add(field, Field::Kind::kHex, value, formatted("0x%" PRIx64, value));
}

Pdu& Pdu::milliseconds(std::string_view field, std::int64_t microseconds) {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0));
  return add(field, Field::Kind::kMilliseconds, us,
             formatted("%" PRIu64 ".%03u", us / 1000, static_cast<unsigned>(us % 1000)));
}

Pdu& Pdu::octets(std::string_view field, ConstBytes value, std::size_t max) {
  std::string out;
  for (const std::byte b : value.first(std::min(max, value.size()))) append(out, "%02x", std::to_integer<unsigned>(b));
  if (value.size() > max) out += "...";
  return add(field, Field::Kind::kOctets, 0, std::move(out));
}

Pdu& Pdu::text(std::string_view field, std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') {
      append(out, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return add(field, Field::Kind::kText, 0, std::move(out));
}

Pdu& Pdu::word(std::string_view field, std::string value) {
  return add(field, Field::Kind::kWord, 0, std::move(value));
}

Pdu& Pdu::list(std::string_view field, std::string value) {
  return add(field, Field::Kind::kList, 0, std::move(value));
}

const Field* Pdu::find(std::string_view field) const {
  const auto it = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.name == field; });
  return it == fields_.end() ? nullptr : &*it;
}

std::uint64_t Pdu::number_of(std::string_view field) const {
  const Field* f = find(field);
  return f == nullptr ? 0 : f->number;
}

std::string Pdu::str() const {
  std::string out(name_);
  out += '(';
  for (const Field& f : fields_) {
    if (&f != fields_.data()) out += ", ";
    out += f.str();
  }
  return out + ')';
}

}  // namespace iwarp::trace
