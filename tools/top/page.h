// What `iwarp top` reads: a gateway's page of metrics, as numbers by listener and program.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iwarp::tools::top {

// Upper limit in seconds (infinite for the last), and how many are at or below it.
using Histogram = std::map<double, double>;

struct Program {
  double calls = 0, replies = 0, failed = 0, outstanding = 0;
  double call_bytes = 0, reply_bytes = 0;
  Histogram latency{};
};

struct Listener {
  std::string name, direction, local, backend;
  std::map<std::string, double> rdma_bytes{};  // by "send in", "send out", "write in", ...
  std::map<std::string, double> by_version{};  // connections since the start: by "1", "2", "2005"
  double connections = 0, refused = 0, given_up = 0, crc_faults = 0;
  double credits_granted = 0, credits_used = 0, registered_bytes = 0;
  std::map<std::string, Program> programs{};
};

struct Page {
  std::string version;
  double limit_bytes = 0;  // 0: none
  std::vector<Listener> listeners{};

  // Nullptr: there is none.
  [[nodiscard]] const Listener* find(const Listener& like) const;
};

// Unknown metrics are left out. Nothing: this is no page of an iwarp gateway.
[[nodiscard]] std::optional<Page> parse_page(std::string_view text);

// The value below which the part `q` (0..1) lies of what has come between two readings, by linear interpolation within
// a bucket; infinite when it lies in the last. Nothing: none has come.
[[nodiscard]] std::optional<double> quantile(const Histogram& now, const Histogram& before, double q);

}  // namespace iwarp::tools::top
