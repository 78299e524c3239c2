#include "tools/rping_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace iwarp::tools::rping {

// Welford's way: a sum of squares would lose the small differences.
void RoundTrips::add(std::chrono::nanoseconds took) {
  const double us = static_cast<double>(took.count()) / 1000;
  min_ = count_ == 0 ? us : std::min(min_, us);
  max_ = std::max(max_, us);
  const double before = us - mean_;
  mean_ += before / static_cast<double>(++count_);
  squares_ += before * (us - mean_);
}

double RoundTrips::deviation() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

std::string RoundTrips::to_string() const {
  return "RTT min " + duration_text(min()) + ", avg " + duration_text(mean()) + ", max " + duration_text(max()) +
         ", stddev " + duration_text(deviation());
}

std::string duration_text(double microseconds) {
  if (microseconds < 1000) return fmt::format("{:.1f} us", microseconds);
  if (microseconds < 1e6) return fmt::format("{:.2f} ms", microseconds / 1e3);
  return fmt::format("{:.2f} s", microseconds / 1e6);
}

std::string pings_text(std::uint64_t done, std::uint64_t wanted) {
  if (wanted != 0) return fmt::format("{} of {} ping{}", done, wanted, wanted == 1 ? "" : "s");
  return fmt::format("{} ping{}", done, done == 1 ? "" : "s");
}

std::string end_text(const stream::Disconnected& how, const std::string& other_side, const std::string& when) {
  if (how.received)
    return "the " + other_side + " ended the connection" + when + ", with Terminate " + how.received->to_string();
  if (how.reason.code == Errc::kPeerClosed) return "the " + other_side + " closed the connection" + when;
  const bool lost = how.reason.code == Errc::kConnectionLost;
  return "the connection to the " + other_side + (lost ? " was lost" : " ended") + when + ": " + how.reason.why;
}

std::string summary(const Report& report) {
  if (report.role == "server") return pings_text(report.pings, 0) + " answered";
  std::string s = pings_text(report.pings, report.pings == report.wanted ? 0 : report.wanted);
  if (report.size) s += fmt::format(" of {} octets", *report.size);
  return report.round_trips.count() == 0 ? s : s + ", " + report.round_trips.to_string();
}

nlohmann::ordered_json to_json(const Report& r) {
  nlohmann::ordered_json j = {{"role", r.role}, {"peer", r.peer}, {"pings", r.pings}};
  j["wanted"] = r.wanted == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(r.wanted);
  if (r.size) j["size"] = *r.size;
  if (r.round_trips.count() != 0) {
    const RoundTrips& t = r.round_trips;
    j["rtt_us"] = {{"min", t.min()}, {"avg", t.mean()}, {"max", t.max()}, {"stddev", t.deviation()}};
  }
  if (r.negotiated) {
    const mpa::Negotiated& n = *r.negotiated;
    j["connection"] = {
        {"revision", n.revision},       {"enhanced", n.enhanced}, {"crc", n.crc}, {"peer_to_peer", n.peer_to_peer},
        {"rtr", enhanced::name(n.rtr)}, {"ird", n.ird},           {"ord", n.ord}};
    if (r.sctp) {  // it has no MPA
      j["connection"].erase("revision");
      j["connection"].erase("crc");
    }
    j["connection"]["llp"] = r.sctp ? "sctp" : "tcp";
  }
  j["end"] = r.end;
  j["interrupted"] = r.interrupted;
  j["error"] = r.error.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(r.error);
  return j;
}

}  // namespace iwarp::tools::rping
