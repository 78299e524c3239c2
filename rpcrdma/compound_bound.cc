#include "iwarp/rpcrdma/compound_bound.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/xdr_padding.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::size_t kOpAndStatus = 8;
constexpr std::size_t kStateid = 16;
constexpr std::size_t kChangeInfo = 20;
constexpr std::size_t kOpaqueLimit = 1024;  // NFS4_OPAQUE_LIMIT
constexpr std::size_t kFileHandle = 4 + 128;
constexpr std::size_t kBitmap = 4 + 8 * 4;  // 256 attributes; minor version 2 has 83
constexpr std::size_t kName = 4 + kMaxNameBytes;
// LOCK4denied: offset, length, type, owner. The longest of LOCK's results, and LOCKT's only one.
constexpr std::size_t kLockDenied = 8 + 8 + 4 + 8 + 4 + kOpaqueLimit;
// open_write_delegation4, longer than the others: stateid, recall, space limit, one ACE.
constexpr std::size_t kDelegation = 4 + kStateid + 4 + 12 + 12 + kName;
constexpr std::size_t kChannelAttributes = 6 * 4 + 8;

struct OpBound {
  std::uint32_t op;
  std::size_t result;  // most octets behind the status, of any status
};

// Not here: what follows from the arguments, below, and what has no bound.
constexpr std::array kOps = {
    OpBound{3, 8},                                                    // ACCESS
    OpBound{4, kStateid},                                             // CLOSE
    OpBound{5, 8},                                                    // COMMIT
    OpBound{6, kChangeInfo + kBitmap},                                // CREATE
    OpBound{7, 0},                                                    // DELEGPURGE
    OpBound{8, 0},                                                    // DELEGRETURN
    OpBound{10, kFileHandle},                                         // GETFH
    OpBound{11, kChangeInfo},                                         // LINK
    OpBound{12, kLockDenied},                                         // LOCK
    OpBound{13, kLockDenied},                                         // LOCKT
    OpBound{14, kStateid},                                            // LOCKU
    OpBound{15, 0},                                                   // LOOKUP
    OpBound{16, 0},                                                   // LOOKUPP
    OpBound{17, 0},                                                   // NVERIFY
    OpBound{18, kStateid + kChangeInfo + 4 + kBitmap + kDelegation},  // OPEN
    OpBound{19, 0},                                                   // OPENATTR
    OpBound{20, kStateid},                                            // OPEN_CONFIRM
    OpBound{21, kStateid},                                            // OPEN_DOWNGRADE
    OpBound{22, 0},                                                   // PUTFH
    OpBound{23, 0},                                                   // PUTPUBFH
    OpBound{24, 0},                                                   // PUTROOTFH
    OpBound{28, kChangeInfo},                                         // REMOVE
    OpBound{29, 2 * kChangeInfo},                                     // RENAME
    OpBound{30, 0},                                                   // RENEW
    OpBound{31, 0},                                                   // RESTOREFH
    OpBound{32, 0},                                                   // SAVEFH
    OpBound{34, kBitmap},                                             // SETATTR, whatever its status
    OpBound{36, 0},                                                   // SETCLIENTID_CONFIRM
    OpBound{37, 0},                                                   // VERIFY
    OpBound{38, 16},                                                  // WRITE
    OpBound{39, 0},                                                   // RELEASE_LOCKOWNER
    OpBound{40, 0},                                                   // BACKCHANNEL_CTL
    OpBound{41, 24},                                                  // BIND_CONN_TO_SESSION
    OpBound{43, 16 + 8 + 2 * kChannelAttributes},                     // CREATE_SESSION
    OpBound{44, 0},                                                   // DESTROY_SESSION
    OpBound{45, 0},                                                   // FREE_STATEID
    OpBound{46, 4 + 8 + kStateid + 3 * kBitmap},                      // GET_DIR_DELEGATION
    OpBound{49, 12},                                                  // LAYOUTCOMMIT
    OpBound{51, 4 + kStateid},                                        // LAYOUTRETURN
    OpBound{53, 36},                                                  // SEQUENCE
    OpBound{56, 4 + kDelegation},                                     // WANT_DELEGATION
    OpBound{57, 0},                                                   // DESTROY_CLIENTID
    OpBound{58, 0},                                                   // RECLAIM_COMPLETE
    OpBound{59, 0},                                                   // ALLOCATE
    OpBound{60, 4 + kStateid + 8 + 4 + 8 + 8},                        // COPY
    OpBound{62, 0},                                                   // DEALLOCATE
    OpBound{63, kBitmap},                                             // IO_ADVISE
    OpBound{64, 0},                                                   // LAYOUTERROR
    OpBound{65, 0},                                                   // LAYOUTSTATS
    OpBound{66, 0},                                                   // OFFLOAD_CANCEL
    OpBound{67, 8 + 8},                                               // OFFLOAD_STATUS
    OpBound{69, 12},                                                  // SEEK
    OpBound{70, 4 + kStateid + 8 + 4 + 8},                            // WRITE_SAME
    OpBound{71, 0},                                                   // CLONE
    OpBound{73, kChangeInfo},                                         // SETXATTR
    OpBound{75, kChangeInfo},                                         // REMOVEXATTR
};

// Most octets of each attribute, by number; 0: no bound, or not known.
constexpr std::array<std::uint16_t, 83> kAttributes = [] {
  std::array<std::uint16_t, 83> out{};
  for (const unsigned word :
       {1, 2, 5, 6, 7, 9, 10, 11, 13, 14, 15, 16, 17, 18, 25, 26, 28, 29, 33, 34, 35, 46, 65, 66, 76, 77, 79, 82}) {
    out[word] = 4;
  }
  // Those with two words, and rawdev. mode_set_masked, mode_umask and time_*_set cannot be read.
  for (const unsigned two : {3, 4, 20, 21, 22, 23, 27, 30, 31, 38, 39, 40, 41, 42, 43, 44, 45, 55, 73, 78})
    out[two] = 8;
  for (const unsigned time : {47, 49, 50, 51, 52, 53, 56, 57}) out[time] = 12;
  for (const unsigned pair : {8, 60}) out[pair] = 16;  // fsid, change_policy
  for (const unsigned bitmap : {0, 75}) out[bitmap] = kBitmap;
  out[19] = kFileHandle;
  out[36] = out[37] = kName;  // owner, owner_group
  return out;
}();

// Operations with a count of octets that their result may have: what precedes it in the arguments, what follows. A
// server that could not keep to it gives an error.
struct CountedOp {
  std::uint32_t op;
  std::string_view before, behind;
};
constexpr std::array kCounted = {
    CountedOp{26, "ddw", "b"},     // READDIR: maxcount
    CountedOp{47, "sw", "b"},      // GETDEVICEINFO
    CountedOp{50, "wwwddds", ""},  // LAYOUTGET
    CountedOp{68, "sd", ""},       // READ_PLUS, with a few words for each segment
    CountedOp{74, "d", ""},        // LISTXATTRS
};

constexpr std::uint32_t kGetattr = 9;
constexpr std::uint32_t kTestStateid = 55;

// What an NFSv4.0 client's ACL, or the locations of a file system, take: more than Linux lets either have.
constexpr std::size_t kAttributesGuess = 64 * 1024;
// Operations that change nothing and whose results, attributes apart, have a bound: ACCESS, GETATTR, GETFH, LOOKUP,
// LOOKUPP, NVERIFY, PUTFH, PUTPUBFH, PUTROOTFH, RESTOREFH, SAVEFH, VERIFY. req: RFC8267-6.2.1-1
constexpr std::array<std::uint32_t, 12> kLooking = {3, 9, 10, 15, 16, 17, 22, 23, 24, 31, 32, 37};

// The result of GETATTR, from the bitmap of what is asked for; `others` is for all those together that have no bound.
std::optional<std::size_t> attributes_bound(ReadCursor& in, std::optional<std::size_t> others) {
  const auto words = in.be<std::uint32_t>();
  if (!in.ok() || words > in.remaining() / 4) return std::nullopt;
  std::size_t sum = kBitmap + 4;
  bool all_known = true;
  for (std::uint32_t word = 0; word < words; ++word) {
    const auto asked = in.be<std::uint32_t>();
    for (std::size_t bit = 0; bit < 32; ++bit) {
      if ((asked >> bit & 1) == 0) continue;
      const std::size_t number = std::size_t{word} * 32 + bit;
      const bool known = number < kAttributes.size() && kAttributes[number] != 0;
      all_known = all_known && known;
      if (known) sum += kAttributes[number];
    }
  }
  if (all_known) return sum;
  if (!others) return std::nullopt;
  return sum + *others;
}

// The result of `op`; moves `in` behind its arguments. `path_bytes`: of the longest path, or 0.
std::optional<std::size_t> result_bound(ReadCursor& in, std::uint32_t op, std::uint32_t path_bytes = 0) {
  if (op == kGetattr) return attributes_bound(in, std::nullopt);
  if (op == static_cast<std::uint32_t>(NfsOp::kRead)) {
    if (!skip_xdr(in, "sd")) return std::nullopt;
    const std::size_t count = in.be<std::uint32_t>();
    return 4 + 4 + (count + 3) / 4 * 4;  // never more than asked for (RFC 7530 s16.23)
  }
  if (op == static_cast<std::uint32_t>(NfsOp::kReadlink) && path_bytes > 0) {
    return 4 + static_cast<std::size_t>(padded(path_bytes));  // it has no arguments
  }
  if (op == kTestStateid) {
    ReadCursor count = in;
    const std::size_t stateids = count.be<std::uint32_t>();
    if (!skip_arguments(in, op)) return std::nullopt;
    return 4 + 4 * stateids;  // a status each
  }
  const auto* counted = std::find_if(kCounted.begin(), kCounted.end(), [op](const CountedOp& o) { return o.op == op; });
  if (counted != kCounted.end()) {
    if (!skip_xdr(in, counted->before)) return std::nullopt;
    const auto count = in.be<std::uint32_t>();
    if (!skip_xdr(in, counted->behind)) return std::nullopt;
    return counted_bound(count);
  }
  const auto* found = std::find_if(kOps.begin(), kOps.end(), [op](const OpBound& o) { return o.op == op; });
  if (found == kOps.end() || !skip_arguments(in, op)) return std::nullopt;
  return found->result;
}

struct Compound {
  std::uint32_t minor_version = 0;
  std::uint32_t operations = 0;
  std::size_t head = 0;  // octets of COMPOUND4res in front of the results
};

std::optional<Compound> read_head(ReadCursor& in) {
  const std::size_t tag = in.be<std::uint32_t>();  // comes back as it is
  in.skip(tag);
  in.skip((4 - tag % 4) % 4);
  Compound out;
  out.minor_version = in.be<std::uint32_t>();
  out.operations = in.be<std::uint32_t>();
  if (!in.ok() || out.minor_version > 2 || out.operations > in.remaining() / 4) return std::nullopt;
  out.head = 4 + 4 + (tag + 3) / 4 * 4 + 4;
  return out;
}

}  // namespace

std::optional<std::size_t> compound_reply_bound(ReadCursor in, std::uint32_t path_bytes) {
  const auto compound = read_head(in);
  if (!compound) return std::nullopt;
  std::size_t sum = compound->head;
  for (std::uint32_t i = 0; i < compound->operations; ++i) {
    const auto op = in.be<std::uint32_t>();
    const auto result = result_bound(in, op, path_bytes);
    if (!result || !in.ok()) return std::nullopt;
    sum += kOpAndStatus + *result;
  }
  return sum;
}

std::optional<std::size_t> compound_reply_guess(ReadCursor in) {
  const auto compound = read_head(in);
  if (!compound || compound->minor_version != 0) return std::nullopt;
  std::size_t sum = compound->head;
  bool asks = false;
  for (std::uint32_t i = 0; i < compound->operations; ++i) {
    const auto op = in.be<std::uint32_t>();
    if (std::find(kLooking.begin(), kLooking.end(), op) == kLooking.end()) return std::nullopt;
    const auto result = op == kGetattr ? attributes_bound(in, kAttributesGuess) : result_bound(in, op);
    if (!result || !in.ok()) return std::nullopt;
    asks = asks || *result >= kAttributesGuess;
    sum += kOpAndStatus + *result;
  }
  if (!asks) return std::nullopt;
  return sum;
}

}  // namespace iwarp::rpcrdma
