#include "iwarp/gateway/connection_end.h"

#include <spdlog/spdlog.h>

#include <chrono>

namespace iwarp::gateway {

void tell_end(EventLog& log, Stats& stats, SiwCrcTrap& trap, const RdmaLink& connection,
              const stream::Disconnected& how, const boost::asio::ip::tcp::endpoint& tcp_peer) {
  stats.connection_ended(how.reason.code);
  const std::size_t columns = spdlog::should_log(spdlog::level::debug) ? SIZE_MAX : cm::kEndColumns;
  const std::string line =
      "closed " + cm::describe_end(connection.facts(), how, columns, "tcp_peer=" + cm::to_string(tcp_peer));
  const TimePoint now = std::chrono::steady_clock::now();
  cm::unremarkable_end(connection.initiator(), how) ? log.info(LogKind::kClosed, line, now)
                                                    : log.warn(LogKind::kClosed, line, now);
  if (!how.received || how.received->code != SiwCrcTrap::kTerminate) return;
  const auto address = connection.remote().address();
  const auto verdict = trap.ended(address, now);
  stats.crc_terminate(verdict != SiwCrcTrap::Verdict::kSingle);
  if (verdict == SiwCrcTrap::Verdict::kTell) log.warn(LogKind::kSiwCrc, explain_siw_crc_trap(address), now);
}

void tell_given_up(EventLog& log, Stats& stats, const RdmaLink& connection, EndReason why, const Error& error,
                   const boost::asio::ip::tcp::endpoint& tcp_peer) {
  stats.connection_given_up(why);
  log.warn(LogKind::kClosing,
           fmt::format("closing peer={} tcp_peer={} reason={} why=\"{}\"", cm::to_string(connection.remote()),
                       cm::to_string(tcp_peer), name(why), error.why),
           std::chrono::steady_clock::now());
}

}  // namespace iwarp::gateway
