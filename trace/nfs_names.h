// Names of NFS version 4 operations and of the statuses of NFS and MOUNT, as the RFCs spell them. A number without a
// name is given as digits. Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace iwarp::trace {

// "READ", or with `callback` "CB_RECALL".
[[nodiscard]] std::string nfs4_op_name(std::uint32_t op, bool callback);

// Whose status a number is.
enum class StatusKind : std::uint8_t {
  kNone,  // the results begin with no status
  kNfs2,
  kNfs3,
  kNfs4,
  kMount,
};
// "NFS3ERR_NOENT"; 0 is "NFS3_OK".
[[nodiscard]] std::string nfs_status_name(StatusKind kind, std::uint32_t status);

}  // namespace iwarp::trace
