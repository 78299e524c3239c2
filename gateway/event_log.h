// What peers do, told in the log. They decide how often they do it, so each kind of line has a limit of its own: the
// next line of a kind says how many were left out before it, and the counters count all. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "iwarp/base/time.h"
#include "iwarp/gateway/log_limit.h"
#include "iwarp/gateway/stats.h"

namespace iwarp::gateway {

// A line that a peer can cause, besides refusals. 1,000 a minute of kEstablished and kClosed, which scripts read; five
// a second of each other kind.
enum class LogKind : std::uint8_t {
  kEstablished,  // a client is being served
  kClosed,       // and no longer
  kPeerClosed,   // one side has ended, the other gets what is complete
  kClosing,      // an error ends the connection
  kDropped,      // duplicates and late messages
  kUnusable,     // messages answered with an error, or not at all
  kFailedCall,   // a Call without a Reply
  kBackward,     // an RPC of the back channel that failed
  kSourcePort,   // the port towards the server is not the one wanted
  kMemory,       // a message waits for memory
  kSiwCrc,       // a peer with siw's CRC fault
};
inline constexpr std::size_t kLogKinds = 11;

// How much of each kind is written: by all listeners of the process together.
class LogLimits {
 public:
  LogLimits();
  // Tells what was left out and not told yet.
  ~LogLimits();
  LogLimits(const LogLimits&) = delete;
  LogLimits& operator=(const LogLimits&) = delete;

  // As LogLimit::admit().
  [[nodiscard]] std::optional<std::uint64_t> admit(LogKind kind, TimePoint now) {
    const std::lock_guard lock(mu_);
    return limits_[static_cast<std::size_t>(kind)].admit(now);
  }
  [[nodiscard]] std::optional<std::uint64_t> admit(RefuseReason why, TimePoint now) {
    const std::lock_guard lock(mu_);
    return refusals_[static_cast<std::size_t>(why)].admit(now);
  }

 private:
  std::mutex mu_;
  std::array<LogLimit, kLogKinds> limits_;
  std::array<LogLimit, kRefuseReasons> refusals_;
};

class EventLog {
 public:
  // `stats` must outlive this object. `name`: of the listener, with which its lines begin; empty: they do not.
  explicit EventLog(Stats& stats, std::shared_ptr<LogLimits> limits = std::make_shared<LogLimits>(),
                    const std::string& name = {});
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void set_name(const std::string& name);

  // A client that is not served: counted, and told. `line` says who and why. `now` never goes backwards.
  void refused(RefuseReason why, const std::string& line, TimePoint now);

  // An ordinary event, or one that an operator may want to look into.
  void info(LogKind kind, const std::string& line, TimePoint now);
  void warn(LogKind kind, const std::string& line, TimePoint now);

 private:
  [[nodiscard]] std::string prefix() const;

  Stats& stats_;
  std::shared_ptr<LogLimits> limits_;
  mutable std::mutex mu_;
  std::string prefix_;  // guarded by it
};

}  // namespace iwarp::gateway
