#include "iwarp/gateway/refusals.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace iwarp::gateway {
namespace {

constexpr std::chrono::seconds kPeriod{1};
constexpr unsigned kLinesPerPeriod = 5;

}  // namespace

void Refusals::add(RefuseReason why, const std::string& line, TimePoint now) {
  stats_.connection_refused(why);
  Told& told = told_[static_cast<std::size_t>(why)];
  if (!told.since || now - *told.since >= kPeriod) {
    told.since = now;
    told.lines = 0;
  }
  if (told.lines == kLinesPerPeriod) {
    ++told.left_out;
    return;
  }
  ++told.lines;
  const auto level = why == RefuseReason::kBackendUnreachable ? spdlog::level::err : spdlog::level::warn;
  if (const auto left_out = std::exchange(told.left_out, 0); left_out > 0) {
    spdlog::log(level, "{} ({} more were refused for such reasons since the last such line)", line, left_out);
  } else {
    spdlog::log(level, "{}", line);
  }
}

}  // namespace iwarp::gateway
