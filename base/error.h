// Errors of the whole stack: one Errc per cause, grouped by few conditions. An Error says what happened (code), what
// the peer must be told (tell_peer: layer, type and code of an RDMAP Terminate, RFC 5040 s4.8) and why, in words. Plain
// values, no allocation; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace iwarp {

// The three fields of the RDMAP Terminate Control that name an error. Written L/E/C in documents, e.g. 1/2/2.
struct TerminateCode {
  std::uint8_t layer = 0;  // 0 RDMAP, 1 DDP, 2 LLP (MPA)
  std::uint8_t type = 0;   // 4 bits
  std::uint8_t code = 0;   // 8 bits: what is wrong, within its layer and type

  friend constexpr bool operator==(const TerminateCode&, const TerminateCode&) = default;
};

// What happened, one for each cause; L/E/C is the Terminate that the peer is owed.
enum class Errc : std::uint8_t {
  kOk = 0,  // no error
  // --- MPA startup. Nothing is sent to the peer but a Reply with R=1 where noted; TCP is closed.
  kMalformedStartupFrame,  // wrong key, impossible length, bytes after the frame: close at once (RFC 5044 s7.1.2)
  kUnsupportedRevision,    // Rev is neither 1 nor 2
  kPrivateDataTooLong,     // PD_Length above 512 or above our limit
  kMarkersRefused,   // policy `markers refuse` met a peer that demands them: responder answers R=1, initiator closes
  kCrcRefused,       // policy `crc off` met a peer that requires CRC
  kStartupTimeout,   // the peer did not complete its startup frame, or its first FPDU, in time
  kPeerRejected,     // Reply with R=1
  kInsufficientIrd,  // initiator cannot raise its IRD to the Reply's ORD: Terminate 2/0/6
  kNoMatchingRtr,    // no common Ready-To-Receive form: Terminate 2/0/7
  kStartupLocal,     // local failure during startup without a code of its own: Terminate 2/0/5
  kConnectionModel,  // Reply does not answer like with like (S or A differs from the Request)
  // --- MPA full operation
  kCrcMismatch,     // no further FPDU is delivered, TCP stays open for the Terminate (RFC 5044 s8)
  kFpduLength,      // ULPDU too short for its DDP header: 2/0/3
  kMarkerMismatch,  // a Marker does not point to the start of its FPDU: 2/0/3
  kConnectionLost,  // RST, or FIN inside an FPDU: 2/0/1, can seldom be told
  // --- DDP
  kDdpVersionTagged,     // invalid DDP version in a tagged segment: 1/1/4
  kDdpVersionUntagged,   // invalid DDP version in an untagged segment: 1/2/6
  kTaggedInvalidStag,    // tagged segment names an invalid STag: 1/1/0
  kTaggedBounds,         // tagged segment leaves the registered range: 1/1/1
  kTaggedNotAssociated,  // STag of a tagged segment belongs to another stream or protection domain: 1/1/2
  kTaggedWrap,           // tagged offset plus length wraps: 1/1/3
  kUntaggedInvalidQn,    // untagged segment names an unknown queue: 1/2/1
  kUntaggedNoBuffer,     // no buffer posted for an untagged message: 1/2/2
  kUntaggedMsnRange,     // message sequence number out of range: 1/2/3
  kUntaggedInvalidMo,    // message offset out of order or outside the buffer: 1/2/4
  kUntaggedTooLong,      // untagged message longer than its buffer: 1/2/5
  kDdpCatastrophic,      // local catastrophic DDP error: 1/0/0
  // --- RDMAP
  kRdmapVersion,            // invalid RDMAP version: 0/2/5
  kRdmapOpcode,             // unexpected RDMAP opcode: 0/2/6
  kReadInvalidStag,         // RDMA Read Request names an invalid source STag: 0/1/0
  kReadBounds,              // RDMA Read Request leaves the registered range: 0/1/1
  kReadAccess,              // RDMA Read Request of memory without remote read access: 0/1/2
  kReadNotAssociated,       // source STag belongs to another stream or protection domain: 0/1/3
  kReadWrap,                // RDMA Read source offset plus size wraps: 0/1/4
  kCannotInvalidate,        // STag cannot be invalidated by this peer: 0/1/9
  kUnexpectedReadResponse,  // RDMA Read Response that matches no outstanding Read: 0/2/6
  kMalformedReadRequest,    // RDMA Read Request of impossible length: 0/2/FF
  kMalformedImmediate,      // Immediate Data that is not 8 octets long
  kMalformedAtomic,         // Atomic Request or Response of impossible length, or a Response to another Request
  kMisalignedAtomic,        // its address is no multiple of 8: 0/2/7, and memory is untouched (RFC 7306 s8.2)
  kRdmapCatastrophic,       // catastrophic RDMAP error on this stream: 0/2/7
  kLocalProtection,         // a local buffer of a work request is not (or no longer) registered: 0/0/0
  // --- local, nothing owed to the peer
  kInvalidArgument,    // of a call; the text says which
  kQueueFull,          // poll completions, then try again
  kNotConnected,       // not yet, or no longer
  kFlushed,            // the connection ended before the operation did
  kRemoteTerminate,    // the peer sent a Terminate
  kPeerClosed,         // orderly FIN between FPDUs
  kTimeout,            // a limit in time has passed
  kResource,           // out of memory, descriptors or table entries
  kSystem,             // a system call failed
  kMalformedRpc,       // head of an ONC RPC message that cannot be parsed
  kRecordTooLong,      // ONC RPC record (RFC 5531 s11) above the limit
  kRecordTooShort,     // ONC RPC record that cannot hold an xid and a direction
  kEmptyFragments,     // endless empty fragments in place of an ONC RPC record
  kAborted,            // ended by the local application
  kConnectionRefused,  // TCP: nothing listens there
  // --- DDP over SCTP. What a DDP Stream Session owes its peer is a Session Terminate (RFC 5043 s6.1).
  kAdaptation,       // the peer of an association has not indicated DDP: no DDP on it
  kSessionControl,   // malformed session control message
  kSessionSequence,  // a Data Chunk that fits no legal sequence of a session
  kDdpSsn,           // a DDP-SSN that was there already, or that messages still under way cannot explain
  kLast = kDdpSsn,   // not a cause: the greatest of them
};

// What an application usually branches on.
enum class Condition : std::uint8_t {
  kNone,
  kHandshakeFailed,
  kProtocolViolation,
  kPeerRefused,
  kDisconnected,
  kLocalMisuse,
  kSystemFailure
};

// An error, or none (kOk). A plain value: copying it allocates nothing.
struct Error {
  Errc code = Errc::kOk;                     // what happened
  std::optional<TerminateCode> tell_peer{};  // what the RFC wants the peer told, if anything
  const char* why = "";                      // static text, never null

  // True: there is one, as with std::error_code. The opposite of Result, which is true when all is well.
  [[nodiscard]] explicit operator bool() const { return code != Errc::kOk; }
  // `why`: for people; programs compare `code`.
  [[nodiscard]] const char* message() const { return why; }
  friend constexpr bool operator==(const Error& a, const Error& b) {
    return a.code == b.code && a.tell_peer == b.tell_peer;
  }
};

// The Error of a code with its standard text and Terminate code.
[[nodiscard]] Error make_error(Errc code);
// The same with a more precise text. `why` must have static lifetime.
[[nodiscard]] Error make_error(Errc code, const char* why);

// The group that a code belongs to; kNone for kOk.
[[nodiscard]] Condition condition(Errc code);
// Short identifier such as "crc_mismatch", for logs and JSON.
[[nodiscard]] const char* name(Errc code);

}  // namespace iwarp
