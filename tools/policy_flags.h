// Command line flags for connection policy, the same wherever a connection is made or accepted.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/policy.h"

namespace iwarp::tools {

class PolicyFlags {
 public:
  // `ird_ord`: default of --ird and --ord.
  void add(CLI::App& app, std::uint16_t ird_ord);
  // After parsing. Throws CLI::ValidationError when the flags contradict each other.
  [[nodiscard]] mpa::Policy policy() const;
  [[nodiscard]] mpa::FpduPolicy fpdu() const;

 private:
  unsigned revision_ = 2;
  std::string crc_ = "on";
  bool peer_to_peer_ = true;
  std::string rtr_ = "write,read";
  std::uint16_t ird_ = 32;
  std::uint16_t ord_ = 32;
  std::string fpdu_ = "emss";
};

}  // namespace iwarp::tools
