// --llp and --sctp-packet, the same wherever a connection is made or accepted.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "iwarp/llp/lower_layer.h"

namespace iwarp::tools {

class LlpFlags {
 public:
  void add(CLI::App& app, const std::string& group);
  [[nodiscard]] llp::Kind kind() const { return *llp::kind_named(llp_); }
  [[nodiscard]] llp::SctpOptions sctp() const {
    return {.packet_bytes = packet_.value_or(llp::SctpOptions{}.packet_bytes)};
  }
  // After parsing. Throws CLI::ValidationError where this build has no SCTP, or --sctp-packet is no default and goes
  // without it.
  void check() const;

 private:
  std::string llp_ = "tcp";
  std::optional<std::uint16_t> packet_;
};

}  // namespace iwarp::tools
