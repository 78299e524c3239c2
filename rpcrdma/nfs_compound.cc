#include "iwarp/rpcrdma/nfs_compound.h"

#include <array>

namespace iwarp::rpcrdma {
namespace {

struct OpSchema {
  std::uint32_t op;
  std::string_view arguments;
  std::string_view results;  // of status NFS4_OK; an operation that failed is the last of its COMPOUND
};

constexpr std::array kOps = {
    OpSchema{3, "w", "ww"},                                                     // ACCESS
    OpSchema{4, "ws", "s"},                                                     // CLOSE
    OpSchema{5, "dw", "d"},                                                     // COMMIT
    OpSchema{6, "{5=o;3=ww;4=ww;*=}oA", "cb"},                                  // CREATE
    OpSchema{7, "d", ""},                                                       // DELEGPURGE
    OpSchema{8, "s", ""},                                                       // DELEGRETURN
    OpSchema{9, "b", "A"},                                                      // GETATTR
    OpSchema{10, "", "o"},                                                      // GETFH
    OpSchema{11, "o", "c"},                                                     // LINK
    OpSchema{12, "wwdd{1=wswdo;0=sw}", "s"},                                    // LOCK
    OpSchema{13, "wdddo", ""},                                                  // LOCKT
    OpSchema{14, "wwsdd", "s"},                                                 // LOCKU
    OpSchema{15, "o", ""},                                                      // LOOKUP
    OpSchema{16, "", ""},                                                       // LOOKUPP
    OpSchema{17, "A", ""},                                                      // NVERIFY
    OpSchema{18, "wwwdo{1={0=A;1=A;2=d;3=dA};*=}{0=o;1=w;2=so;3=o;4=;5=s;6=}",  // OPEN
             "scwb{0=;1=swwwwo;2=sw{1=d;2=ww}wwwo;3={1=w;2=w;*=}}"},
    OpSchema{19, "w", ""},                          // OPENATTR
    OpSchema{20, "sw", "s"},                        // OPEN_CONFIRM
    OpSchema{21, "swww", "s"},                      // OPEN_DOWNGRADE
    OpSchema{22, "o", ""},                          // PUTFH
    OpSchema{23, "", ""},                           // PUTPUBFH
    OpSchema{24, "", ""},                           // PUTROOTFH
    OpSchema{25, "sdw", "wo"},                      // READ
    OpSchema{26, "ddwwb", "d<doA>w"},               // READDIR
    OpSchema{27, "", "o"},                          // READLINK
    OpSchema{28, "o", "c"},                         // REMOVE
    OpSchema{29, "oo", "cc"},                       // RENAME
    OpSchema{30, "d", ""},                          // RENEW
    OpSchema{31, "", ""},                           // RESTOREFH
    OpSchema{32, "", ""},                           // SAVEFH
    OpSchema{33, "o", "[{6=oww;*=}]"},              // SECINFO
    OpSchema{34, "sA", "b"},                        // SETATTR
    OpSchema{35, "dowoow", "dd"},                   // SETCLIENTID
    OpSchema{36, "dd", ""},                         // SETCLIENTID_CONFIRM
    OpSchema{37, "A", ""},                          // VERIFY
    OpSchema{38, "sdwo", "wwd"},                    // WRITE
    OpSchema{39, "do", ""},                         // RELEASE_LOCKOWNER
    OpSchema{40, "w[{0=;1=wowwb;6=woo}]", ""},      // BACKCHANNEL_CTL
    OpSchema{41, "sww", "sww"},                     // BIND_CONN_TO_SESSION
    OpSchema{42, "dow{0=;1=bb;2=bb[o][o]ww}[oot]",  // EXCHANGE_ID
             "dww{0=;1=bb;2=bbwwww[o]}doo[oot]"},
    OpSchema{43, "dwwwwwwwwbwwwwwwbw[{0=;1=wowwb;6=woo}]", "swwwwwwwwbwwwwwwb"},  // CREATE_SESSION
    OpSchema{44, "s", ""},                                                        // DESTROY_SESSION
    OpSchema{45, "s", ""},                                                        // FREE_STATEID
    OpSchema{46, "wbttbb", "{0=dsbbb;1=w}"},                                      // GET_DIR_DELEGATION
    OpSchema{47, "swwb", "wob"},                                                  // GETDEVICEINFO
    OpSchema{48, "wwdd", "dd[s]w"},                                               // GETDEVICELIST
    OpSchema{49, "ddws{1=d;0=}{1=t;0=}wo", "{1=d;0=}"},                           // LAYOUTCOMMIT
    OpSchema{50, "wwwdddsw", "ws[ddwwo]"},                                        // LAYOUTGET
    OpSchema{51, "www{1=ddso;*=}", "{1=s;0=}"},                                   // LAYOUTRETURN
    OpSchema{52, "w", "[{6=oww;*=}]"},                                            // SECINFO_NO_NAME
    OpSchema{53, "swwww", "swwwww"},                                              // SEQUENCE
    OpSchema{54, "oo", "o"},                                                      // SET_SSV
    OpSchema{55, "[s]", "b"},                                                     // TEST_STATEID
    OpSchema{56, "w{4=;6=;1=w}",                                                  // WANT_DELEGATION
             "{0=;1=swwwwo;2=sw{1=d;2=ww}wwwo;3={1=w;2=w;*=}}"},
    OpSchema{57, "d", ""},                                  // DESTROY_CLIENTID
    OpSchema{58, "w", ""},                                  // RECLAIM_COMPLETE
    OpSchema{59, "sdd", ""},                                // ALLOCATE
    OpSchema{60, "ssdddww[{1=o;2=o;3=oo}]", "[s]dwdww"},    // COPY
    OpSchema{61, "s{1=o;2=o;3=oo}", "ts[{1=o;2=o;3=oo}]"},  // COPY_NOTIFY
    OpSchema{62, "sdd", ""},                                // DEALLOCATE
    OpSchema{63, "sddb", "b"},                              // IO_ADVISE
    OpSchema{64, "dds[sww]", ""},                           // LAYOUTERROR
    OpSchema{65, "ddsddddswo", ""},                         // LAYOUTSTATS
    OpSchema{66, "s", ""},                                  // OFFLOAD_CANCEL
    OpSchema{67, "s", "db"},                                // OFFLOAD_STATUS
    OpSchema{68, "sdw", "w[{0=do;1=dd;*=}]"},               // READ_PLUS
    OpSchema{69, "sdw", "wd"},                              // SEEK
    OpSchema{70, "swddddwdo", "[s]dwd"},                    // WRITE_SAME
    OpSchema{71, "ssddd", ""},                              // CLONE
    OpSchema{72, "o", "o"},                                 // GETXATTR
    OpSchema{73, "woo", "c"},                               // SETXATTR
    OpSchema{74, "dw", "d[o]w"},                            // LISTXATTRS
    OpSchema{75, "o", "c"},                                 // REMOVEXATTR
};
constexpr std::uint32_t kFirstOp = kOps.front().op;

// Index just behind the bracket that closes the one at `open`. Parentheses of all kinds nest.
constexpr std::size_t behind_group(std::string_view schema, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == '[' || c == '<' || c == '{') ++depth;
    if (c == ']' || c == '>' || c == '}') --depth;
    if (depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

// The arm of a union body such as "0=;1=swo;*=" for `discriminant`. False if there is none.
constexpr bool find_arm(std::string_view arms, std::uint32_t discriminant, std::string_view& arm) {
  std::size_t at = 0;
  while (at < arms.size()) {
    const bool any = arms[at] == '*';
    std::uint32_t key = 0;
    std::size_t start = at;
    for (; arms[start] != '='; ++start) {
      if (!any) key = key * 10 + static_cast<std::uint32_t>(arms[start] - '0');
    }
    ++start;
    std::size_t end = start;
    while (end < arms.size() && arms[end] != ';') {
      const bool group = arms[end] == '[' || arms[end] == '<' || arms[end] == '{';
      end = group ? behind_group(arms, end) : end + 1;
    }
    if (any || key == discriminant) {
      arm = arms.substr(start, end - start);
      return true;
    }
    at = end + 1;
  }
  return false;
}

constexpr bool well_formed(std::string_view schema) {
  int depth = 0;
  for (const char c : schema) {
    if (std::string_view("wdsobAtc[]<>{}=;*0123456789").find(c) == std::string_view::npos) return false;
    if (c == '[' || c == '<' || c == '{') ++depth;
    if (c == ']' || c == '>' || c == '}') --depth;
    if (depth < 0) return false;
  }
  return depth == 0;
}

constexpr bool table_is_sound() {
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].op != kFirstOp + i) return false;
    if (!well_formed(kOps[i].arguments) || !well_formed(kOps[i].results)) return false;
  }
  return true;
}
static_assert(table_is_sound(), "kOps must list consecutive operations with balanced schemas");

void skip_opaque(ReadCursor& in) {
  const auto length = in.be<std::uint32_t>();
  in.skip(length);
  in.skip((4 - length % 4) % 4);
}

void skip_words(ReadCursor& in) {
  const std::size_t count = in.be<std::uint32_t>();
  in.skip(count > in.remaining() / 4 ? in.remaining() + 1 : count * 4);
}

bool skip_array(ReadCursor& in, std::string_view element) {
  const auto count = in.be<std::uint32_t>();
  if (!in.ok() || count > in.remaining() / 4) return false;  // no element is shorter than a word
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!skip_xdr(in, element)) return false;
  }
  return true;
}

bool skip_list(ReadCursor& in, std::string_view element) {
  for (;;) {
    const auto more = in.be<std::uint32_t>();
    if (!in.ok() || more > 1) return false;
    if (more == 0) return true;
    if (!skip_xdr(in, element)) return false;
  }
}

bool skip_union(ReadCursor& in, std::string_view arms) {
  const auto discriminant = in.be<std::uint32_t>();
  std::string_view arm;
  return in.ok() && find_arm(arms, discriminant, arm) && skip_xdr(in, arm);
}

const OpSchema* find_op(std::uint32_t op) {
  const std::size_t index = op - kFirstOp;
  return op >= kFirstOp && index < kOps.size() ? &kOps[index] : nullptr;
}

}  // namespace

bool skip_xdr(ReadCursor& in, std::string_view schema) {
  for (std::size_t i = 0; i < schema.size() && in.ok();) {
    const char c = schema[i];
    if (c == '[' || c == '<' || c == '{') {
      const std::size_t behind = behind_group(schema, i);
      const std::string_view body = schema.substr(i + 1, behind - i - 2);
      const bool fine = c == '[' ? skip_array(in, body) : c == '<' ? skip_list(in, body) : skip_union(in, body);
      if (!fine) return false;
      i = behind;
      continue;
    }
    switch (c) {
      case 'w':
        in.skip(4);
        break;
      case 'd':
        in.skip(8);
        break;
      case 's':
        in.skip(16);
        break;
      case 't':
        in.skip(12);
        break;
      case 'c':
        in.skip(20);
        break;
      case 'o':
        skip_opaque(in);
        break;
      case 'b':
        skip_words(in);
        break;
      case 'A':
        skip_words(in);
        skip_opaque(in);
        break;
      default:
        return false;
    }
    ++i;
  }
  return in.ok();
}

bool skip_arguments(ReadCursor& in, std::uint32_t op) {
  const OpSchema* schema = find_op(op);
  return schema != nullptr && skip_xdr(in, schema->arguments);
}

bool skip_results(ReadCursor& in, std::uint32_t op) {
  const OpSchema* schema = find_op(op);
  return schema != nullptr && skip_xdr(in, schema->results);
}

}  // namespace iwarp::rpcrdma
