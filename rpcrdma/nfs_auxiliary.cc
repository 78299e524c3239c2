#include "iwarp/rpcrdma/nfs_auxiliary.h"

#include <algorithm>
#include <array>

namespace iwarp::rpcrdma {
namespace {

constexpr std::size_t kStatus = 4;
constexpr std::size_t kNetobj = 4 + 1024;                   // MAXNETOBJ_SZ
constexpr std::size_t kPostOpAttributes = 4 + 84;           // post_op_attr; attrstat's fattr of version 2 is shorter
constexpr std::size_t kLockResult = kNetobj + kStatus + 4;  // with the sequence of SHARE
// nlm_testres: exclusive, pid, owner, offset and length of 64 bits in version 4.
constexpr std::size_t kTestResult = kNetobj + kStatus + 4 + 4 + kNetobj + 8 + 8;
constexpr std::size_t kAclEntries = 1024;  // NFS_ACL_MAX_ENTRIES, of each of two lists
constexpr std::size_t kAcl = kStatus + kPostOpAttributes + 4 + 2 * (4 + 4 + 12 * kAclEntries);

constexpr std::uint32_t kNfsacl = 100227;
constexpr std::uint32_t kGetacl = 1;

struct Procedures {
  std::uint32_t program;
  std::uint32_t first_version, last_version;
  std::uint32_t first, last;  // procedures
  std::size_t results;        // most octets
};

// req: RFC8267-5-1
constexpr std::array kBounded = {
    // MOUNT: MNT of the old versions; UMNT and UMNTALL. DUMP, EXPORT and MNT of version 3, with its list of flavours,
    // have
    // no limit.
    Procedures{100005, 1, 2, 1, 1, kStatus + 32},
    Procedures{100005, 1, 3, 3, 4, 0},
    // NLM: TEST; LOCK, CANCEL, UNLOCK, GRANTED; the messages without an answer; SHARE, UNSHARE, NM_LOCK, FREE_ALL.
    Procedures{100021, 1, 1, 1, 1, kTestResult},
    Procedures{100021, 3, 4, 1, 1, kTestResult},
    Procedures{100021, 1, 1, 2, 15, kLockResult},
    Procedures{100021, 3, 4, 2, 15, kLockResult},
    Procedures{100021, 3, 4, 20, 23, kLockResult},
    // NSM: STAT, MON, UNMON, UNMON_ALL, SIMU_CRASH, NOTIFY.
    Procedures{100024, 1, 1, 1, 6, kStatus + 4},
    // NFSACL: SETACL; GETATTR and ACCESS of version 2.
    Procedures{kNfsacl, 2, 3, 2, 2, kStatus + kPostOpAttributes},
    Procedures{kNfsacl, 2, 2, 3, 4, kStatus + kPostOpAttributes + 4},
};

}  // namespace

std::optional<std::size_t> auxiliary_results_bound(std::uint32_t program, std::uint32_t version,
                                                   std::uint32_t procedure) {
  const auto* const found = std::find_if(kBounded.begin(), kBounded.end(), [&](const Procedures& p) {
    return p.program == program && p.first_version <= version && version <= p.last_version && p.first <= procedure &&
           procedure <= p.last;
  });
  if (found == kBounded.end()) return std::nullopt;
  return found->results;
}

std::optional<std::size_t> auxiliary_results_guess(std::uint32_t program, std::uint32_t version,
                                                   std::uint32_t procedure) {
  // Version 1 of RFC 8267 is what peers call 2 and 3, after those of NFS.
  if (program != kNfsacl || version < 1 || version > 3 || procedure != kGetacl) return std::nullopt;
  return kAcl;
}

}  // namespace iwarp::rpcrdma
