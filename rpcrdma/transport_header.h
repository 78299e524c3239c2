// The RPC-over-RDMA transport header: chunk lists, error bodies, and the answer owed to a header that cannot be parsed.
// Version 1 (RFC 8166 section 4), version 2 (draft-cel-nfsv4-rpcrdma-version-two-00 section 4) and what the draft of
// 2005 (draft-ietf-nfsv4-rpcrdma-01) has beyond version 1, so far as Dialect allows them. Pure value types; no credits
// accounting, no RDMA. The RPC message behind the header is not looked at, except by xid_matches().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"
#include "iwarp/rpcrdma/small_vector.h"

namespace iwarp::rpcrdma {

inline constexpr std::uint32_t kVersion1 = 1;
inline constexpr std::uint32_t kVersion2 = 2;
// Every new connection carries messages of this size; larger ones need RFC 8797 private data, or version 2.
inline constexpr std::uint32_t kDefaultInlineBytes = 1024;
inline constexpr std::uint32_t kDefaultInlineBytes2 = 4096;  // of version 2. req: V2-2.3-1
// Header without any chunk: four fixed words and three absent lists.
inline constexpr std::size_t kMinHeaderBytes = 28;
inline constexpr std::size_t kErrChunkBytes = 20;
inline constexpr std::size_t kErrVersBytes = 28;
inline constexpr std::size_t kDoneBytes = 16;
// What ERR_CHUNK of the draft of 2005 carries behind its code. req: D2005-4.2-13
inline constexpr std::size_t kErrChunkExtraBytes = 32;

// rdma_proc, octets 12..15. The values of kMsg, kNomsg and kError hold in every protocol version; kOptional is of
// version 2, kMsgp and kDone of the draft of 2005.
// req: RFC8166-4.1.2-12 V2-4.2-11 V2-1-1 D2005-4.2-7
enum class Proc : std::uint32_t { kMsg = 0, kNomsg = 1, kMsgp = 2, kDone = 3, kError = 4, kOptional = 5 };
[[nodiscard]] const char* name(Proc proc);  // "RDMA_MSG"
// rpc_rdma_errcode, octets 16..19 of an RDMA_ERROR.
// req: RFC8166-4.1.2-9 V2-4.2-7 D2005-4.2-12
enum class HeaderError : std::uint32_t {
  kVers = 1,
  kChunk = 2,        // in version 2: RDMA_ERR_BAD_HEADER
  kInvalOption = 3,  // of version 2
};

// Plain segment, 16 octets: handle | length | offset (64 bits). Length 0 is an empty segment.
// req: RFC8166-4.1.2-1 V2-4.2-1
struct Segment {
  Stag handle{};
  std::uint32_t length = 0;  // octets
  std::uint64_t offset = 0;  // tagged offset of the first octet, to be used unchanged

  static constexpr std::size_t kSize = 16;
  friend constexpr bool operator==(const Segment&, const Segment&) = default;
};

// Read segment, 20 octets: position | segment. Segments of equal Position form one Read chunk; Position 0 holds the
// whole RPC message.
// req: RFC8166-4.1.2-2 V2-4.2-2
struct ReadSegment {
  std::uint32_t position = 0;  // octet offset in the *unreduced* RPC message, a multiple of 4
  Segment target{};

  static constexpr std::size_t kSize = 20;
  friend constexpr bool operator==(const ReadSegment&, const ReadSegment&) = default;
};

// Write chunk or Reply chunk: count word | count segments. A count of 0 is an *empty* chunk ("return this in line"); a
// chunk whose lengths are all 0 is *unused*. The two differ.
// req: RFC8166-4.1.2-4 RFC8166-3.4.6-7 V2-4.2-4
struct WriteChunk {
  SmallVector<Segment, 4> segments{};

  [[nodiscard]] bool is_empty() const { return segments.empty(); }
  // Octets of all segments together.
  [[nodiscard]] std::uint64_t length() const;
  [[nodiscard]] std::size_t encoded_size() const { return 4 + segments.size() * Segment::kSize; }
  friend bool operator==(const WriteChunk&, const WriteChunk&) = default;
};

using ReadList = SmallVector<ReadSegment, 4>;  // req: V2-4.2-3
// req: RFC8166-4.1.2-5 V2-4.2-5
using WriteList = SmallVector<WriteChunk, 1>;

// Octets of the Read chunk at `position`: the sum of its segments.
[[nodiscard]] std::uint64_t read_chunk_length(const ReadList& list, std::uint32_t position);

// Body of an RDMA_ERROR. The versions belong to kVers only.
// req: RFC8166-4.1.2-10 V2-4.2-8 V2-4.2-9
struct ErrorBody {
  HeaderError code = HeaderError::kChunk;
  std::uint32_t version_low = 0;
  std::uint32_t version_high = 0;

  friend constexpr bool operator==(const ErrorBody&, const ErrorBody&) = default;
};

// How an RDMA_MSGP is padded (draft of 2005, s3.5): opaque data longer than `threshold` octets begins at a multiple of
// `align` octets of the message.
struct Padding {
  std::uint32_t align = 0;
  std::uint32_t threshold = 0;

  friend constexpr bool operator==(const Padding&, const Padding&) = default;
};

// Body of an RDMA_OPTIONAL of version 2: what its type means other documents say, as whether an RPC message follows.
// req: V2-3.1-3 V2-3.1-4 V2-4.2-10
struct OptionBody {
  std::uint32_t type = 0;
  std::vector<std::byte> info{};  // octets, without their XDR padding

  friend bool operator==(const OptionBody&, const OptionBody&) = default;
};

// What an end understands beside version 1 of RFC 8166. The default: nothing.
struct Dialect {
  // Version 2 of the seed draft.
  bool version_2 = false;
  // RDMA_MSGP, RDMA_DONE and Read lists in Replies, of the draft of 2005.
  bool draft_2005 = false;

  [[nodiscard]] std::uint32_t highest() const { return version_2 ? kVersion2 : kVersion1; }
  friend constexpr bool operator==(const Dialect&, const Dialect&) = default;
};

// What a receiver accepts. Every count is compared with these and with the octets left before any loop or allocation;
// more is answered with ERR_CHUNK (RFC 8267 s6.4.2). Lower values than RFC 8267's (1 Write chunk, 16 segments) break
// NFS peers.
// req: RFC8267-6.4.2-2 RFC8267-6.4.2-3 RFC8267-6.4.2-4 RFC8267-6.4.2-5
struct Limits {
  std::size_t max_read_segments = 256;       // more than any peer puts into a 4096-octet Send
  std::size_t max_write_chunks = 16;         // an NFSv4 COMPOUND with more READs gets the rest in line or an error
  std::size_t max_segments_per_chunk = 256;  // one 4 KiB page a segment: 1 MiB
  Dialect dialect{};
};

// Why a header cannot be used, and what a *Responder* owes. A Requester, that is whoever expected a Reply, drops every
// such message silently, but an RDMA_OPTIONAL.
struct ParseError {
  enum class Answer : std::uint8_t {
    kDrop,      // say nothing; the Receive is posted again as for any message
    kErrVers,   // make_err_vers(xid, version, ...)
    kErrChunk,  // make_err_chunk(xid, version, ...); in version 2 it is called RDMA_ERR_BAD_HEADER
  };
  Answer answer = Answer::kDrop;
  std::uint32_t xid = 0;      // as received; meaningful unless kDrop
  std::uint32_t version = 0;  // as received; meaningful unless kDrop
  const char* why = "";       // static text
  bool done = false;          // it is an RDMA_DONE, and no Call or Reply that was damaged
  bool option = false;        // it is an RDMA_OPTIONAL: whoever receives it answers, a Requester as well

  friend constexpr bool operator==(const ParseError& a, const ParseError& b) {
    return a.answer == b.answer && a.xid == b.xid && a.version == b.version;
  }
};

struct ParsedHeader;
using ParseResult = std::variant<ParsedHeader, ParseError>;

// rdma_msg: xid | vers | credit | proc | body. The body is three optional lists (RDMA_MSG, RDMA_NOMSG), the same behind
// `padding` (RDMA_MSGP), `error` (RDMA_ERROR), `option` (RDMA_OPTIONAL) or nothing (RDMA_DONE).
// req: RFC8166-4.1.2-14 V2-4.2-12 V2-4.2-13 D2005-4.1-1 D2005-4.2-8
struct Header {
  std::uint32_t xid = 0;
  std::uint32_t version = kVersion1;  // req: RFC8166-4.2.2-1
  std::uint32_t credits = 0;          // requested in a Call, granted in a Reply
  Proc proc = Proc::kMsg;
  ReadList read_list{};
  WriteList write_list{};
  std::optional<WriteChunk> reply_chunk{};
  ErrorBody error{};    // of proc kError only
  Padding padding{};    // of proc kMsgp only
  OptionBody option{};  // of proc kOptional only
  // Of what is sent: RDMA_MSGP and RDMA_DONE may be, and ERR_CHUNK has the octets of the draft of 2005. Never parsed.
  bool draft_2005 = false;

  // Reads one received message. Well-formed RDMA_MSG, RDMA_NOMSG and RDMA_ERROR, and what limits.dialect adds, give a
  // header; everything else says which answer is due. RDMA_ERROR is never answered: undecodable ones give kDrop, and
  // ERR_VERS is decoded whatever its version field says. Trailing octets are ignored except as payload of RDMA_MSG,
  // RDMA_MSGP and RDMA_OPTIONAL. Form only: call check_call() or check_reply() next.
  [[nodiscard]] static ParseResult parse(ConstBytes message, const Limits& limits = {});
  // Octets write_to() needs.
  [[nodiscard]] std::size_t encoded_size() const;
  // Writes the header to the start of `out` and returns its size; 0 and nothing written if it does not fit or `proc` is
  // one that must not be sent (kMsgp and kDone without draft_2005, kOptional in version 1).
  [[nodiscard]] std::size_t write_to(MutBytes out) const;
  // One line for traces, e.g. "RDMA_MSG(xid=0x12, vers=1, credits=128, reads=[], writes=[[0x7:65536@0x0]], reply=-)".
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] bool has_chunks() const { return !read_list.empty() || !write_list.empty() || reply_chunk.has_value(); }

  friend bool operator==(const Header&, const Header&) = default;
};

struct ParsedHeader {
  Header header;
  // Where the RPC message of an RDMA_MSG, RDMA_MSGP or RDMA_OPTIONAL starts; may equal the message's size.
  std::size_t payload_offset = 0;
};

// Whether a parsed RDMA_MSG, RDMA_MSGP or RDMA_NOMSG can be a Call: its payload must be somewhere (RDMA_NOMSG needs a
// Position-Zero Read chunk, the others must not have one). The error's answer is owed to the peer.
[[nodiscard]] std::optional<ParseError> check_call(const Header& header);
// Whether it can be a Reply: no Read list, unless the dialect has it; RDMA_NOMSG needs a Reply chunk that holds
// something, or a Position-Zero Read chunk where it may have one. Failures are dropped.
[[nodiscard]] std::optional<ParseError> check_reply(const Header& header, const Dialect& dialect = {});
// Whether the RPC message `payload` starts with the header's xid; false also if it has no first word.
[[nodiscard]] bool xid_matches(const Header& header, ConstBytes payload);

// The answers to a bad request; xid and version are copied from it, whatever they are. `credits` is the grant in force.
[[nodiscard]] Header make_err_vers(std::uint32_t xid, std::uint32_t version, std::uint32_t credits,
                                   const Dialect& dialect = {});
[[nodiscard]] Header make_err_chunk(std::uint32_t xid, std::uint32_t version, std::uint32_t credits);
// To an RDMA_OPTIONAL of a type that is not known; of version 2. req: V2-3.1-5
[[nodiscard]] Header make_inval_option(std::uint32_t xid, std::uint32_t credits);
// The answer a ParseError asks for; nullopt for kDrop.
[[nodiscard]] std::optional<Header> make_answer(const ParseError& error, std::uint32_t credits,
                                                const Dialect& dialect = {});

}  // namespace iwarp::rpcrdma
