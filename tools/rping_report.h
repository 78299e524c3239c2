// What `iwarp rping` says at the end: how long the pings took, and how the connection went. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "iwarp/cm/description.h"
#include "iwarp/mpa/policy.h"
#include "iwarp/stream/connection.h"

namespace iwarp::tools::rping {

// Times of whole pings: from the client's first message to the server's last.
class RoundTrips {
 public:
  void add(std::chrono::nanoseconds took);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Microseconds; 0 without a ping. The deviation is that of these pings, not an estimate for others.
  [[nodiscard]] double min() const { return min_; }
  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double max() const { return max_; }
  [[nodiscard]] double deviation() const;
  // "RTT min 35.1 us, avg 41.0 us, max 1.23 ms, stddev 7.2 us"
  [[nodiscard]] std::string to_string() const;

 private:
  std::uint64_t count_ = 0;
  double min_ = 0, max_ = 0, mean_ = 0, squares_ = 0;
};

// "35.1 us", "1.23 ms" or "2.50 s"
[[nodiscard]] std::string duration_text(double microseconds);
// "3 pings", "1 ping" and, when `wanted` is not 0, "3 of 10 pings"
[[nodiscard]] std::string pings_text(std::uint64_t done, std::uint64_t wanted);
// Who ended it, and how: "the server closed the connection", "the connection to the server was lost: ...". `when`, such
// as " after 3 pings", stands before the cause.
[[nodiscard]] std::string end_text(const stream::Disconnected& how, const std::string& other_side,
                                   const std::string& when = {});

struct Report {
  std::string role;  // "client", "server"
  std::string peer;
  std::optional<mpa::Negotiated> negotiated{};  // none: no connection was made
  bool sctp = false;                            // in place of MPA over TCP
  std::uint64_t pings = 0;                      // that were finished
  std::uint64_t wanted = 0;                     // 0: as many as there will be
  std::optional<std::uint32_t> size{};          // octets of each; a server leaves that to its client
  RoundTrips round_trips{};                     // a client's
  std::string end{};                            // name of the cause, such as "peer_closed"
  std::string error{};                          // empty: none
  bool interrupted = false;
};

// "10 pings of 64 octets, RTT min ..."; of a server "10 pings answered".
[[nodiscard]] std::string summary(const Report& report);
[[nodiscard]] nlohmann::ordered_json to_json(const Report& report);

}  // namespace iwarp::tools::rping
