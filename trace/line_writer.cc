#include "iwarp/trace/line_writer.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace iwarp::trace {
namespace {

using std::chrono::microseconds;

std::string milliseconds_text(Duration d) {
  const auto us = std::chrono::duration_cast<microseconds>(d).count();
  char text[64];
  std::snprintf(text, sizeof text, "%" PRId64 ".%03d", static_cast<std::int64_t>(us / 1000),
                static_cast<int>(us % 1000));
  return text;
}

std::string utc_text(Duration since_1970) {
  const auto us = std::chrono::duration_cast<microseconds>(since_1970);
  const auto day = std::chrono::floor<std::chrono::days>(us);
  const std::chrono::year_month_day date{std::chrono::sys_days(day)};
  const std::chrono::hh_mm_ss<microseconds> of_day(us - day);
  char text[96];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day.hours().count()), static_cast<int>(of_day.minutes().count()),
                static_cast<int>(of_day.seconds().count()), static_cast<int>(of_day.subseconds().count()));
  return text;
}

// As much of a list of words as fits, "[a b ...]"; empty if nothing does.
std::string cut_list(const Field& f, std::size_t room) {
  constexpr std::string_view kRest = " ...]";
  if (f.kind != Field::Kind::kList || f.value.find('[', 1) != std::string::npos) return {};
  const std::string whole = f.str();
  if (room < kRest.size()) return {};
  const std::size_t blank = whole.rfind(' ', room - kRest.size());
  if (blank == std::string::npos) return {};
  return whole.substr(0, blank).append(kRest);
}

// "Name(...)" in at most `room` columns, if the first field and a "..." fit into them.
std::string pdu_text(const Pdu& pdu, std::size_t room) {
  constexpr std::string_view kMore = ", ...)";
  std::string whole = pdu.str();
  if (whole.size() <= room || pdu.fields().size() < 2) return whole;
  std::string out = std::string(pdu.name()) + '(' + pdu.fields().front().str();
  for (std::size_t i = 1; i < pdu.fields().size(); ++i) {
    const Field& f = pdu.fields()[i];
    const std::size_t taken = out.size() + 2 + kMore.size();
    const std::string text = f.str();
    if (taken + text.size() > room) {
      const std::string part = taken < room ? cut_list(f, room - taken) : std::string();
      if (!part.empty()) out.append(", ").append(part);
      break;
    }
    out.append(", ").append(text);
  }
  return out.append(kMore);
}

std::string_view color_of(const Record& r) {
  if (r.error) return "\x1b[1;31m";
  if (r.layer == "rpc") return "\x1b[32m";
  if (r.layer == "rpcrdma") return "\x1b[36m";
  if (r.layer == "rdmap") return "\x1b[34m";
  if (r.layer == "mpa" || r.layer == "sctp") return "\x1b[35m";
  return "\x1b[2m";
}

}  // namespace

std::string LineWriter::time(Duration at) {
  switch (style_.time) {
    case TimeStyle::kRelative:
      break;
    case TimeStyle::kAbsolute:
      return utc_text(style_.start + at);
    case TimeStyle::kDelta:
      return milliseconds_text(at - std::exchange(last_, at));
  }
  return milliseconds_text(at);
}

std::string LineWriter::line(const Record& r) {
  std::string out = time(r.when.at);
  out.append(1, ' ').append(r.connection).append(r.direction == Direction::kTx ? " tx " : " rx ");
  const std::size_t columns = out.size() + r.layer.size() + 1;
  const std::size_t room = style_.columns == 0        ? std::string::npos
                           : style_.columns > columns ? style_.columns - columns
                                                      : 0;
  std::string text(r.layer);
  text.append(1, ' ').append(pdu_text(r.pdu, room));
  return style_.color ? out.append(color_of(r)).append(text).append("\x1b[0m") : out.append(text);
}

}  // namespace iwarp::trace
