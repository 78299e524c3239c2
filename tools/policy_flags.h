// Command line flags for connection policy, the same wherever a connection is made or accepted.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/policy.h"
#include "iwarp/stream/connection.h"

namespace iwarp::tools {

class PolicyFlags {
 public:
  // Whether the peer-to-peer model is asked for at first, or only when the peer will not do without.
  enum class First : std::uint8_t { kPeerToPeer, kClientServer };
  // `ird_ord`: default of --ird and --ord.
  void add(CLI::App& app, std::uint16_t ird_ord, First first = First::kPeerToPeer);
  // After parsing. Throws CLI::ValidationError when the flags contradict each other.
  [[nodiscard]] mpa::Policy policy() const;
  void apply(stream::Options& options) const;

 private:
  unsigned revision_ = 2;
  std::string crc_ = "on";
  std::string markers_ = "serve";
  First first_ = First::kPeerToPeer;
  std::optional<bool> peer_to_peer_;
  std::string rtr_ = "write,read";
  std::uint16_t ird_ = 32;
  std::uint16_t ord_ = 32;
  std::string fpdu_ = "emss";
  bool early_wake_ = true;
};

}  // namespace iwarp::tools
