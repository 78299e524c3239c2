// Names of ONC RPC programs and of their procedures, as far as NFS over RDMA meets them: NFS, its callbacks, MOUNT,
// NLM, NSM, NFSACL, RPCBIND. A number without a name is given as digits. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "iwarp/trace/nfs_names.h"

namespace iwarp::trace {

inline constexpr std::uint32_t kMountProgram = 100005;
inline constexpr std::uint32_t kNfsAclProgram = 100227;

// NFSv4 clients choose the number of their callback program in the transient range (RFC 5531 s8.1).
[[nodiscard]] constexpr bool is_callback_program(std::uint32_t program) {
  return program >= 0x40000000 && program < 0x60000000;
}
[[nodiscard]] std::string program_name(std::uint32_t program);
[[nodiscard]] std::string procedure_name(std::uint32_t program, std::uint32_t version, std::uint32_t procedure);
// COMPOUND of NFS, CB_COMPOUND of its callbacks.
[[nodiscard]] bool is_compound(std::uint32_t program, std::uint32_t version, std::uint32_t procedure);
// What status the results of a procedure begin with.
[[nodiscard]] StatusKind status_kind(std::uint32_t program, std::uint32_t version, std::uint32_t procedure);

// accept_stat, auth_stat and the flavors of credentials (RFC 5531 s8, s9; RFC 2203; RFC 9289).
[[nodiscard]] std::string accept_stat_name(std::uint32_t stat);
[[nodiscard]] std::string auth_stat_name(std::uint32_t stat);
[[nodiscard]] std::string flavor_name(std::uint32_t flavor);

}  // namespace iwarp::trace
