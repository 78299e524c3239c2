#include "tools/connection_log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "tools/log_format.h"

namespace iwarp::tools {

void set_up_logging(const std::string& command, bool verbose) {
  auto logger = spdlog::stderr_color_mt("iwarp");
  logger->set_formatter(log_formatter(command));
  logger->flush_on(spdlog::level::info);
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void log_established(const llp::Connection& connection) {
  spdlog::info("established {}", connection.to_string());
}

void log_closed(const llp::Connection& connection, const stream::Disconnected& how) {
  const std::size_t columns = spdlog::should_log(spdlog::level::debug) ? SIZE_MAX : cm::kEndColumns;
  const cm::EndFacts facts = connection.facts();
  spdlog::log(cm::unremarkable_end(facts.initiator, how) ? spdlog::level::info : spdlog::level::warn, "closed {}",
              cm::describe_end(facts, how, columns));
}

void log_failed(const std::string& peer, const Error& error) {
  // Their texts say all.
  if (error.code == Errc::kSystem || error.code == Errc::kConnectionRefused)
    return spdlog::error("connect failed peer={}: {}", peer, error.why);
  spdlog::error("connect failed peer={} reason={}: {}", peer, name(error.code), error.why);
}

}  // namespace iwarp::tools
