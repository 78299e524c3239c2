#include "iwarp/trace/rpc_names.h"

#include <array>
#include <span>
#include <string_view>

#include "iwarp/rpcrdma/nfs_binding.h"

namespace iwarp::trace {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::uint32_t kRpcbindProgram = 100000, kNlmProgram = 100021, kNsmProgram = 100024;

constexpr std::array<std::string_view, 18> kNfs2 = {"NULL", "GETATTR",    "SETATTR", "ROOT",   "LOOKUP",  "READLINK",
                                                    "READ", "WRITECACHE", "WRITE",   "CREATE", "REMOVE",  "RENAME",
                                                    "LINK", "SYMLINK",    "MKDIR",   "RMDIR",  "READDIR", "STATFS"};
constexpr std::array<std::string_view, 22> kNfs3 = {"NULL",   "GETATTR", "SETATTR",  "LOOKUP", "ACCESS",  "READLINK",
                                                    "READ",   "WRITE",   "CREATE",   "MKDIR",  "SYMLINK", "MKNOD",
                                                    "REMOVE", "RMDIR",   "RENAME",   "LINK",   "READDIR", "READDIRPLUS",
                                                    "FSSTAT", "FSINFO",  "PATHCONF", "COMMIT"};
constexpr std::array<std::string_view, 2> kNfs4 = {"NULL", "COMPOUND"};
constexpr std::array<std::string_view, 2> kCallback = {"CB_NULL", "CB_COMPOUND"};
constexpr std::array<std::string_view, 8> kMount = {"NULL",    "MNT",    "DUMP",      "UMNT",
                                                    "UMNTALL", "EXPORT", "EXPORTALL", "PATHCONF"};
constexpr std::array<std::string_view, 24> kNlm = {"NULL",        "TEST",     "LOCK",     "CANCEL",     "UNLOCK",
                                                   "GRANTED",     "TEST_MSG", "LOCK_MSG", "CANCEL_MSG", "UNLOCK_MSG",
                                                   "GRANTED_MSG", "TEST_RES", "LOCK_RES", "CANCEL_RES", "UNLOCK_RES",
                                                   "GRANTED_RES", "",         "",         "",           "",
                                                   "SHARE",       "UNSHARE",  "NM_LOCK",  "FREE_ALL"};
constexpr std::array<std::string_view, 7> kNsm = {"NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"};
constexpr std::array<std::string_view, 5> kAcl = {"NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"};
constexpr std::array<std::string_view, 6> kPortmap = {"NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"};
constexpr std::array<std::string_view, 13> kRpcbind = {
    "NULL",        "SET",         "UNSET",       "GETADDR",  "DUMP",        "BCAST",  "GETTIME",
    "UADDR2TADDR", "TADDR2UADDR", "GETVERSADDR", "INDIRECT", "GETADDRLIST", "GETSTAT"};
constexpr std::array<std::string_view, 6> kAcceptStat = {"SUCCESS",      "PROG_UNAVAIL", "PROG_MISMATCH",
                                                         "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"};
constexpr std::array<std::string_view, 15> kAuthStat = {
    "AUTH_OK",       "AUTH_BADCRED",     "AUTH_REJECTEDCRED", "AUTH_BADVERF",           "AUTH_REJECTEDVERF",
    "AUTH_TOOWEAK",  "AUTH_INVALIDRESP", "AUTH_FAILED",       "AUTH_KERB_GENERIC",      "AUTH_TIMEEXPIRE",
    "AUTH_TKT_FILE", "AUTH_DECODE",      "AUTH_NET_ADDR",     "RPCSEC_GSS_CREDPROBLEM", "RPCSEC_GSS_CTXPROBLEM"};
constexpr std::array<std::string_view, 8> kFlavor = {"AUTH_NONE", "AUTH_SYS", "AUTH_SHORT", "AUTH_DH",
                                                     "",          "AUTH_RSA", "RPCSEC_GSS", "AUTH_TLS"};

std::string name_in(Names names, std::uint32_t number) {
  if (number < names.size() && !names[number].empty()) return std::string(names[number]);
  return std::to_string(number);
}

Names procedures(std::uint32_t program, std::uint32_t version) {
  if (is_callback_program(program)) return kCallback;
  switch (program) {
    case rpcrdma::kNfsProgram:
      return version == 2 ? Names(kNfs2) : version == 3 ? Names(kNfs3) : version == 4 ? Names(kNfs4) : Names();
    case kMountProgram:
      return kMount;
    case kNlmProgram:
      return kNlm;
    case kNsmProgram:
      return kNsm;
    case kNfsAclProgram:
      return kAcl;
    case kRpcbindProgram:
      return version == 2 ? Names(kPortmap) : Names(kRpcbind);
    default:
      return {};
  }
}

}  // namespace

std::string program_name(std::uint32_t program) {
  if (is_callback_program(program)) return "NFS_CB";
  switch (program) {
    case rpcrdma::kNfsProgram:
      return "NFS";
    case kMountProgram:
      return "MOUNT";
    case kNlmProgram:
      return "NLM";
    case kNsmProgram:
      return "NSM";
    case kNfsAclProgram:
      return "NFSACL";
    case kRpcbindProgram:
      return "RPCBIND";
    default:
      return std::to_string(program);
  }
}

std::string procedure_name(std::uint32_t program, std::uint32_t version, std::uint32_t procedure) {
  return name_in(procedures(program, version), procedure);
}

bool is_compound(std::uint32_t program, std::uint32_t version, std::uint32_t procedure) {
  if (procedure != 1) return false;
  return is_callback_program(program) || (program == rpcrdma::kNfsProgram && version == 4);
}

StatusKind status_kind(std::uint32_t program, std::uint32_t version, std::uint32_t procedure) {
  if (procedure == 0) return StatusKind::kNone;
  if (is_compound(program, version, procedure)) return StatusKind::kNfs4;
  if (program == rpcrdma::kNfsProgram && version == 3) return StatusKind::kNfs3;
  constexpr std::uint32_t kRoot = 3, kWritecache = 7;  // obsolete, without results
  if (program == rpcrdma::kNfsProgram && version == 2 && procedure != kRoot && procedure != kWritecache) {
    return StatusKind::kNfs2;
  }
  if (program == kNfsAclProgram) return version == 2 ? StatusKind::kNfs2 : StatusKind::kNfs3;
  if (program == kMountProgram && procedure == 1) return StatusKind::kMount;
  return StatusKind::kNone;
}

std::string accept_stat_name(std::uint32_t stat) {
  return name_in(kAcceptStat, stat);
}

std::string auth_stat_name(std::uint32_t stat) {
  return name_in(kAuthStat, stat);
}

std::string flavor_name(std::uint32_t flavor) {
  return name_in(kFlavor, flavor);
}

}  // namespace iwarp::trace
