#include "iwarp/gateway/refusals.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace iwarp::gateway {
namespace {

constexpr std::chrono::seconds kApart{1};

}  // namespace

void Refusals::add(RefuseReason why, const std::string& line, TimePoint now) {
  stats_.connection_refused(why);
  Told& told = told_[static_cast<std::size_t>(why)];
  if (told.last && now - *told.last < kApart) {
    ++told.left_out;
    return;
  }
  told.last = now;
  const auto level = why == RefuseReason::kBackendUnreachable ? spdlog::level::err : spdlog::level::warn;
  if (const auto left_out = std::exchange(told.left_out, 0); left_out > 0) {
    spdlog::log(level, "{} ({} more were refused for such reasons since the last such line)", line, left_out);
  } else {
    spdlog::log(level, "{}", line);
  }
}

}  // namespace iwarp::gateway
