// The protocols beside NFS versions 2 and 3 (RFC 8267 s5): MOUNT, NLM, NSM and NFSACL. None has a DDP-eligible item, so
// none is in nfs_binding.h; here is how long their Replies can be. Functions of their arguments. Internal to rpcrdma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::rpcrdma {

// Most octets of the results of a procedure, behind the RPC header. Nothing: another program or version, or results
// without a limit, such as lists of mounts and exports, and ACLs.
[[nodiscard]] std::optional<std::size_t> auxiliary_results_bound(std::uint32_t program, std::uint32_t version,
                                                                 std::uint32_t procedure);

// For NFSACL GETACL, whose results have no limit: octets that hold what Linux and Solaris take for the longest.
// req: RFC8267-5.2-3
[[nodiscard]] std::optional<std::size_t> auxiliary_results_guess(std::uint32_t program, std::uint32_t version,
                                                                 std::uint32_t procedure);

}  // namespace iwarp::rpcrdma
