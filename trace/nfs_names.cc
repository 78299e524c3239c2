#include "iwarp/trace/nfs_names.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace iwarp::trace {
namespace {

struct Named {
  std::uint32_t value;
  std::string_view name;
};

constexpr bool ascending(const auto& table) {
  return std::is_sorted(table.begin(), table.end(), [](const Named& a, const Named& b) { return a.value < b.value; });
}

// Empty if there is none.
std::string_view find(const auto& table, std::uint32_t value) {
  const auto it =
      std::lower_bound(table.begin(), table.end(), value, [](const Named& n, std::uint32_t v) { return n.value < v; });
  return it != table.end() && it->value == value ? it->name : std::string_view();
}

constexpr std::uint32_t kFirstOp = 3;
constexpr std::uint32_t kIllegal = 10044;

// nfs_opnum4: RFC 7531, RFC 5662, RFC 7863, RFC 8276.
constexpr std::array<std::string_view, 73> kOps = {"ACCESS",
                                                   "CLOSE",
                                                   "COMMIT",
                                                   "CREATE",
                                                   "DELEGPURGE",
                                                   "DELEGRETURN",
                                                   "GETATTR",
                                                   "GETFH",
                                                   "LINK",
                                                   "LOCK",
                                                   "LOCKT",
                                                   "LOCKU",
                                                   "LOOKUP",
                                                   "LOOKUPP",
                                                   "NVERIFY",
                                                   "OPEN",
                                                   "OPENATTR",
                                                   "OPEN_CONFIRM",
                                                   "OPEN_DOWNGRADE",
                                                   "PUTFH",
                                                   "PUTPUBFH",
                                                   "PUTROOTFH",
                                                   "READ",
                                                   "READDIR",
                                                   "READLINK",
                                                   "REMOVE",
                                                   "RENAME",
                                                   "RENEW",
                                                   "RESTOREFH",
                                                   "SAVEFH",
                                                   "SECINFO",
                                                   "SETATTR",
                                                   "SETCLIENTID",
                                                   "SETCLIENTID_CONFIRM",
                                                   "VERIFY",
                                                   "WRITE",
                                                   "RELEASE_LOCKOWNER",
                                                   "BACKCHANNEL_CTL",
                                                   "BIND_CONN_TO_SESSION",
                                                   "EXCHANGE_ID",
                                                   "CREATE_SESSION",
                                                   "DESTROY_SESSION",
                                                   "FREE_STATEID",
                                                   "GET_DIR_DELEGATION",
                                                   "GETDEVICEINFO",
                                                   "GETDEVICELIST",
                                                   "LAYOUTCOMMIT",
                                                   "LAYOUTGET",
                                                   "LAYOUTRETURN",
                                                   "SECINFO_NO_NAME",
                                                   "SEQUENCE",
                                                   "SET_SSV",
                                                   "TEST_STATEID",
                                                   "WANT_DELEGATION",
                                                   "DESTROY_CLIENTID",
                                                   "RECLAIM_COMPLETE",
                                                   "ALLOCATE",
                                                   "COPY",
                                                   "COPY_NOTIFY",
                                                   "DEALLOCATE",
                                                   "IO_ADVISE",
                                                   "LAYOUTERROR",
                                                   "LAYOUTSTATS",
                                                   "OFFLOAD_CANCEL",
                                                   "OFFLOAD_STATUS",
                                                   "READ_PLUS",
                                                   "SEEK",
                                                   "WRITE_SAME",
                                                   "CLONE",
                                                   "GETXATTR",
                                                   "SETXATTR",
                                                   "LISTXATTRS",
                                                   "REMOVEXATTR"};

// nfs_cb_opnum4: RFC 7531, RFC 5662, RFC 7863.
constexpr std::array<std::string_view, 13> kCallbackOps = {
    "CB_GETATTR",    "CB_RECALL",          "CB_LAYOUTRECALL",         "CB_NOTIFY",
    "CB_PUSH_DELEG", "CB_RECALL_ANY",      "CB_RECALLABLE_OBJ_AVAIL", "CB_RECALL_SLOT",
    "CB_SEQUENCE",   "CB_WANTS_CANCELLED", "CB_NOTIFY_LOCK",          "CB_NOTIFY_DEVICEID",
    "CB_OFFLOAD"};

// nfsstat of version 2 and nfsstat3 (RFC 1094 s2.3.1, RFC 1813 s2.6), mountstat3 (RFC 1813 s5.1.5).
constexpr std::array kOldStatus = {Named{1, "PERM"},          Named{2, "NOENT"},        Named{5, "IO"},
                                   Named{6, "NXIO"},          Named{13, "ACCES"},       Named{17, "EXIST"},
                                   Named{18, "XDEV"},         Named{19, "NODEV"},       Named{20, "NOTDIR"},
                                   Named{21, "ISDIR"},        Named{22, "INVAL"},       Named{27, "FBIG"},
                                   Named{28, "NOSPC"},        Named{30, "ROFS"},        Named{31, "MLINK"},
                                   Named{63, "NAMETOOLONG"},  Named{66, "NOTEMPTY"},    Named{69, "DQUOT"},
                                   Named{70, "STALE"},        Named{71, "REMOTE"},      Named{99, "WFLUSH"},
                                   Named{10001, "BADHANDLE"}, Named{10002, "NOT_SYNC"}, Named{10003, "BAD_COOKIE"},
                                   Named{10004, "NOTSUPP"},   Named{10005, "TOOSMALL"}, Named{10006, "SERVERFAULT"},
                                   Named{10007, "BADTYPE"},   Named{10008, "JUKEBOX"}};
static_assert(ascending(kOldStatus));

// nfsstat4: RFC 7863, RFC 8276.
constexpr std::array kStatus4 = {Named{1, "PERM"},
                                 Named{2, "NOENT"},
                                 Named{5, "IO"},
                                 Named{6, "NXIO"},
                                 Named{13, "ACCESS"},
                                 Named{17, "EXIST"},
                                 Named{18, "XDEV"},
                                 Named{20, "NOTDIR"},
                                 Named{21, "ISDIR"},
                                 Named{22, "INVAL"},
                                 Named{27, "FBIG"},
                                 Named{28, "NOSPC"},
                                 Named{30, "ROFS"},
                                 Named{31, "MLINK"},
                                 Named{63, "NAMETOOLONG"},
                                 Named{66, "NOTEMPTY"},
                                 Named{69, "DQUOT"},
                                 Named{70, "STALE"},
                                 Named{10001, "BADHANDLE"},
                                 Named{10003, "BAD_COOKIE"},
                                 Named{10004, "NOTSUPP"},
                                 Named{10005, "TOOSMALL"},
                                 Named{10006, "SERVERFAULT"},
                                 Named{10007, "BADTYPE"},
                                 Named{10008, "DELAY"},
                                 Named{10009, "SAME"},
                                 Named{10010, "DENIED"},
                                 Named{10011, "EXPIRED"},
                                 Named{10012, "LOCKED"},
                                 Named{10013, "GRACE"},
                                 Named{10014, "FHEXPIRED"},
                                 Named{10015, "SHARE_DENIED"},
                                 Named{10016, "WRONGSEC"},
                                 Named{10017, "CLID_INUSE"},
                                 Named{10018, "RESOURCE"},
                                 Named{10019, "MOVED"},
                                 Named{10020, "NOFILEHANDLE"},
                                 Named{10021, "MINOR_VERS_MISMATCH"},
                                 Named{10022, "STALE_CLIENTID"},
                                 Named{10023, "STALE_STATEID"},
                                 Named{10024, "OLD_STATEID"},
                                 Named{10025, "BAD_STATEID"},
                                 Named{10026, "BAD_SEQID"},
                                 Named{10027, "NOT_SAME"},
                                 Named{10028, "LOCK_RANGE"},
                                 Named{10029, "SYMLINK"},
                                 Named{10030, "RESTOREFH"},
                                 Named{10031, "LEASE_MOVED"},
                                 Named{10032, "ATTRNOTSUPP"},
                                 Named{10033, "NO_GRACE"},
                                 Named{10034, "RECLAIM_BAD"},
                                 Named{10035, "RECLAIM_CONFLICT"},
                                 Named{10036, "BADXDR"},
                                 Named{10037, "LOCKS_HELD"},
                                 Named{10038, "OPENMODE"},
                                 Named{10039, "BADOWNER"},
                                 Named{10040, "BADCHAR"},
                                 Named{10041, "BADNAME"},
                                 Named{10042, "BAD_RANGE"},
                                 Named{10043, "LOCK_NOTSUPP"},
                                 Named{10044, "OP_ILLEGAL"},
                                 Named{10045, "DEADLOCK"},
                                 Named{10046, "FILE_OPEN"},
                                 Named{10047, "ADMIN_REVOKED"},
                                 Named{10048, "CB_PATH_DOWN"},
                                 Named{10049, "BADIOMODE"},
                                 Named{10050, "BADLAYOUT"},
                                 Named{10051, "BAD_SESSION_DIGEST"},
                                 Named{10052, "BADSESSION"},
                                 Named{10053, "BADSLOT"},
                                 Named{10054, "COMPLETE_ALREADY"},
                                 Named{10055, "CONN_NOT_BOUND_TO_SESSION"},
                                 Named{10056, "DELEG_ALREADY_WANTED"},
                                 Named{10057, "BACK_CHAN_BUSY"},
                                 Named{10058, "LAYOUTTRYLATER"},
                                 Named{10059, "LAYOUTUNAVAILABLE"},
                                 Named{10060, "NOMATCHING_LAYOUT"},
                                 Named{10061, "RECALLCONFLICT"},
                                 Named{10062, "UNKNOWN_LAYOUTTYPE"},
                                 Named{10063, "SEQ_MISORDERED"},
                                 Named{10064, "SEQUENCE_POS"},
                                 Named{10065, "REQ_TOO_BIG"},
                                 Named{10066, "REP_TOO_BIG"},
                                 Named{10067, "REP_TOO_BIG_TO_CACHE"},
                                 Named{10068, "RETRY_UNCACHED_REP"},
                                 Named{10069, "UNSAFE_COMPOUND"},
                                 Named{10070, "TOO_MANY_OPS"},
                                 Named{10071, "OP_NOT_IN_SESSION"},
                                 Named{10072, "HASH_ALG_UNSUPP"},
                                 Named{10074, "CLIENTID_BUSY"},
                                 Named{10075, "PNFS_IO_HOLE"},
                                 Named{10076, "SEQ_FALSE_RETRY"},
                                 Named{10077, "BAD_HIGH_SLOT"},
                                 Named{10078, "DEADSESSION"},
                                 Named{10079, "ENCR_ALG_UNSUPP"},
                                 Named{10080, "PNFS_NO_LAYOUT"},
                                 Named{10081, "NOT_ONLY_OP"},
                                 Named{10082, "WRONG_CRED"},
                                 Named{10083, "WRONG_TYPE"},
                                 Named{10084, "DIRDELEG_UNAVAIL"},
                                 Named{10085, "REJECT_DELEG"},
                                 Named{10086, "RETURNCONFLICT"},
                                 Named{10087, "DELEG_REVOKED"},
                                 Named{10088, "PARTNER_NOTSUPP"},
                                 Named{10089, "PARTNER_NO_AUTH"},
                                 Named{10090, "UNION_NOTSUPP"},
                                 Named{10091, "OFFLOAD_DENIED"},
                                 Named{10092, "WRONG_LFS"},
                                 Named{10093, "BADLABEL"},
                                 Named{10094, "OFFLOAD_NO_REQS"},
                                 Named{10095, "NOXATTR"},
                                 Named{10096, "XATTR2BIG"}};
static_assert(ascending(kStatus4));

std::string with_prefix(std::string_view prefix, std::string_view name, std::uint32_t status) {
  if (name.empty()) return std::to_string(status);
  return std::string(prefix).append(name);
}

}  // namespace

std::string nfs4_op_name(std::uint32_t op, bool callback) {
  if (op == kIllegal) return callback ? "CB_ILLEGAL" : "ILLEGAL";
  if (op >= kFirstOp) {
    const std::size_t i = op - kFirstOp;
    if (!callback && i < kOps.size()) return std::string(kOps[i]);
    if (callback && i < kCallbackOps.size()) return std::string(kCallbackOps[i]);
  }
  return std::to_string(op);
}

std::string nfs_status_name(StatusKind kind, std::uint32_t status) {
  switch (kind) {
    case StatusKind::kNfs2:
      return status == 0 ? "NFS_OK" : with_prefix("NFSERR_", find(kOldStatus, status), status);
    case StatusKind::kNfs3:
      return status == 0 ? "NFS3_OK" : with_prefix("NFS3ERR_", find(kOldStatus, status), status);
    case StatusKind::kNfs4:
      return status == 0 ? "NFS4_OK" : with_prefix("NFS4ERR_", find(kStatus4, status), status);
    case StatusKind::kMount:
      return status == 0 ? "MNT3_OK" : with_prefix("MNT3ERR_", find(kOldStatus, status), status);
    case StatusKind::kNone:
      break;
  }
  return std::to_string(status);
}

}  // namespace iwarp::trace
