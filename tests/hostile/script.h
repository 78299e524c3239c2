// A script: connects to a victim, behaves until it breaks one rule, and says what the victim did about it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/hostile/reaction.h"
#include "tests/hostile/target.h"

namespace iwarp::hostile {

struct Script {
  std::string_view name;
  Reaction (*run)(Target&);
};

// The scripts of a role, in the order of their files. Roles: "mpa responder", "mpa initiator", "rdma receiver", "rpc
// responder", "rpc requester". Empty for other words.
[[nodiscard]] std::vector<Script> scripts(std::string_view role);
[[nodiscard]] std::optional<Script> find_script(std::string_view role, std::string_view name);

// By file.
[[nodiscard]] std::span<const Script> mpa_responder_scripts();
[[nodiscard]] std::span<const Script> mpa_initiator_scripts();
[[nodiscard]] std::span<const Script> fpdu_scripts();
[[nodiscard]] std::span<const Script> ddp_scripts();
[[nodiscard]] std::span<const Script> rdmap_scripts();
[[nodiscard]] std::span<const Script> rdma_read_scripts();
[[nodiscard]] std::span<const Script> rfc7306_scripts();
[[nodiscard]] std::span<const Script> rpc_responder_scripts();
[[nodiscard]] std::span<const Script> rpc_chunk_scripts();
[[nodiscard]] std::span<const Script> rpc_requester_scripts();
[[nodiscard]] std::span<const Script> rpc_write_chunk_scripts();
[[nodiscard]] std::span<const Script> rpc_2005_responder_scripts();
[[nodiscard]] std::span<const Script> rpc_2005_requester_scripts();

}  // namespace iwarp::hostile
