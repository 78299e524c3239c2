// Command line flags for connection policy, the same wherever a connection is made or accepted. What is not said is
// as the profile has it, or else as the command.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/policy.h"
#include "iwarp/stream/connection.h"
#include "tools/profile_flag.h"

namespace iwarp::tools {

class PolicyFlags {
 public:
  // Whether the peer-to-peer model is asked for at first, or only when the peer will not do without.
  enum class First : std::uint8_t { kPeerToPeer, kClientServer };
  // `ird_ord`: default of --ird and --ord.
  void add(CLI::App& app, std::uint16_t ird_ord, First first = First::kPeerToPeer);
  // After parsing. Throws CLI::ValidationError when the flags contradict each other.
  [[nodiscard]] mpa::Policy policy() const;
  // What of it DDP over SCTP has as well: IRD, ORD, RTR and the connection model, which is client and server unless
  // --p2p was given. Throws CLI::ValidationError when a flag of MPA's was given.
  [[nodiscard]] mpa::Policy policy_for_sctp() const;
  void apply(stream::Options& options) const;
  [[nodiscard]] stream::MpaOptions mpa() const;  // that part alone, of a connection

 private:
  // Of the command.
  First first_ = First::kPeerToPeer;
  std::uint16_t usual_ird_ord_ = 32;
  // What was said.
  ProfileFlag profile_;
  std::optional<unsigned> revision_;
  std::optional<std::string> crc_, markers_, rtr_, fpdu_;
  std::optional<bool> peer_to_peer_, early_wake_;
  std::optional<std::uint16_t> ird_, ord_;
};

}  // namespace iwarp::tools
