#include "tools/connection_log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace iwarp::tools {

void set_up_logging(bool verbose) {
  auto logger = spdlog::stderr_color_mt("iwarp");
  logger->set_pattern("%H:%M:%S.%e %l %v");
  logger->flush_on(spdlog::level::info);
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void log_established(const cm::Connection& connection) { spdlog::info("established {}", connection.to_string()); }

void log_closed(const cm::Connection& connection, const stream::Disconnected& how) {
  std::string text = "closed peer=" + cm::to_string(connection.remote()) + " reason=" + name(how.reason.code) + " " + connection.counters().to_string();
  if (how.sent) text += " terminate_sent=\"" + how.sent->to_string() + "\"";
  if (how.received) text += " terminate_received=\"" + how.received->to_string() + "\"";
  const bool ordinary = how.reason.code == Errc::kPeerClosed || how.reason.code == Errc::kAborted;
  if (!ordinary) text += std::string(" why=\"") + how.reason.why + "\"";
  spdlog::log(ordinary ? spdlog::level::info : spdlog::level::warn, "{}", text);
}

void log_failed(const std::string& peer, const Error& error) { spdlog::error("connect failed peer={} reason={}: {}", peer, name(error.code), error.why); }

}  // namespace iwarp::tools
