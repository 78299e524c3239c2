#include "iwarp/base/error.h"

#include <array>
#include <cstddef>

namespace iwarp {
namespace {

struct Row {
  Errc code;
  const char* name;
  Condition condition;
  std::optional<TerminateCode> tell_peer;
  const char* why;
};

constexpr auto kNo = std::nullopt;
constexpr std::optional<TerminateCode> t(std::uint8_t l, std::uint8_t e, std::uint8_t c) {
  return TerminateCode{l, e, c};
}

using enum Condition;
constexpr std::array kRows = {
    Row{Errc::kOk, "ok", kNone, kNo, "no error"},
    Row{Errc::kMalformedStartupFrame, "malformed_startup_frame", kHandshakeFailed, kNo, "malformed MPA startup frame"},
    Row{Errc::kUnsupportedRevision, "unsupported_revision", kHandshakeFailed, kNo, "unsupported MPA revision"},
    Row{Errc::kPrivateDataTooLong, "private_data_too_long", kHandshakeFailed, kNo,
        "MPA private data longer than allowed"},
    Row{Errc::kMarkersRefused, "markers_refused", kHandshakeFailed, kNo,
        "peer demands MPA Markers but policy forbids them"},
    Row{Errc::kCrcRefused, "crc_refused", kHandshakeFailed, kNo, "peer requires CRC but policy forbids it"},
    Row{Errc::kStartupTimeout, "startup_timeout", kHandshakeFailed, kNo,
        "peer did not complete the MPA startup in time"},
    Row{Errc::kPeerRejected, "peer_rejected", kPeerRefused, kNo, "peer rejected the connection"},
    // req: RFC6581-8-2 RFC6581-8-4 RFC6581-9.1-14
    Row{Errc::kInsufficientIrd, "insufficient_ird", kHandshakeFailed, t(2, 0, 6), "insufficient IRD resources"},
    // req: RFC6581-8-2 RFC6581-8-5
    Row{Errc::kNoMatchingRtr, "no_matching_rtr", kHandshakeFailed, t(2, 0, 7), "no matching RTR option"},
    // req: RFC6581-8-3 RFC6581-11-2
    Row{Errc::kStartupLocal, "startup_local", kHandshakeFailed, t(2, 0, 5), "local failure during MPA startup"},
    Row{Errc::kConnectionModel, "connection_model", kHandshakeFailed, kNo, "MPA Reply does not match the Request"},
    Row{Errc::kCrcMismatch, "crc_mismatch", kProtocolViolation, t(2, 0, 2), "FPDU CRC mismatch"},
    Row{Errc::kFpduLength, "fpdu_length", kProtocolViolation, t(2, 0, 3), "ULPDU shorter than its headers"},
    Row{Errc::kMarkerMismatch, "marker_mismatch", kProtocolViolation, t(2, 0, 3),
        "MPA Marker does not point to the start of its FPDU"},
    Row{Errc::kConnectionLost, "connection_lost", kDisconnected, t(2, 0, 1), "TCP connection lost"},
    Row{Errc::kDdpVersionTagged, "ddp_version_tagged", kProtocolViolation, t(1, 1, 4),
        "invalid DDP version in a tagged segment"},
    Row{Errc::kDdpVersionUntagged, "ddp_version_untagged", kProtocolViolation, t(1, 2, 6),
        "invalid DDP version in an untagged segment"},
    Row{Errc::kTaggedInvalidStag, "tagged_invalid_stag", kProtocolViolation, t(1, 1, 0),
        "tagged segment names an invalid STag"},
    Row{Errc::kTaggedBounds, "tagged_bounds", kProtocolViolation, t(1, 1, 1),
        "tagged segment leaves the registered range"},
    Row{Errc::kTaggedNotAssociated, "tagged_not_associated", kProtocolViolation, t(1, 1, 2),
        "STag of a tagged segment belongs to another stream or protection domain"},
    Row{Errc::kTaggedWrap, "tagged_wrap", kProtocolViolation, t(1, 1, 3), "tagged offset plus length wraps"},
    Row{Errc::kUntaggedInvalidQn, "untagged_invalid_qn", kProtocolViolation, t(1, 2, 1),
        "untagged segment names an unknown queue"},
    Row{Errc::kUntaggedNoBuffer, "untagged_no_buffer", kProtocolViolation, t(1, 2, 2),
        "no buffer posted for an untagged message"},
    Row{Errc::kUntaggedMsnRange, "untagged_msn_range", kProtocolViolation, t(1, 2, 3),
        "message sequence number out of range"},
    Row{Errc::kUntaggedInvalidMo, "untagged_invalid_mo", kProtocolViolation, t(1, 2, 4),
        "message offset out of order or outside the buffer"},
    Row{Errc::kUntaggedTooLong, "untagged_too_long", kProtocolViolation, t(1, 2, 5),
        "untagged message longer than its buffer"},
    Row{Errc::kDdpCatastrophic, "ddp_catastrophic", kProtocolViolation, t(1, 0, 0), "local catastrophic DDP error"},
    Row{Errc::kRdmapVersion, "rdmap_version", kProtocolViolation, t(0, 2, 5), "invalid RDMAP version"},
    Row{Errc::kRdmapOpcode, "rdmap_opcode", kProtocolViolation, t(0, 2, 6), "unexpected RDMAP opcode"},
    Row{Errc::kReadInvalidStag, "read_invalid_stag", kProtocolViolation, t(0, 1, 0),
        "RDMA Read Request names an invalid source STag"},
    Row{Errc::kReadBounds, "read_bounds", kProtocolViolation, t(0, 1, 1),
        "RDMA Read Request leaves the registered range"},
    Row{Errc::kReadAccess, "read_access", kProtocolViolation, t(0, 1, 2),
        "RDMA Read Request of memory without remote read access"},
    Row{Errc::kReadNotAssociated, "read_not_associated", kProtocolViolation, t(0, 1, 3),
        "source STag belongs to another stream or protection domain"},
    Row{Errc::kReadWrap, "read_wrap", kProtocolViolation, t(0, 1, 4), "RDMA Read source offset plus size wraps"},
    Row{Errc::kCannotInvalidate, "cannot_invalidate", kProtocolViolation, t(0, 1, 9),
        "STag cannot be invalidated by this peer"},
    Row{Errc::kUnexpectedReadResponse, "unexpected_read_response", kProtocolViolation, t(0, 2, 6),
        "RDMA Read Response that matches no outstanding Read"},
    Row{Errc::kMalformedReadRequest, "malformed_read_request", kProtocolViolation, t(0, 2, 0xFF),
        "RDMA Read Request of impossible length"},
    Row{Errc::kMalformedImmediate, "malformed_immediate", kProtocolViolation, t(0, 2, 0xFF),
        "Immediate Data of other than 8 octets"},  // req: RFC7306-6.1-3 RFC7306-8.1-1
    Row{Errc::kMalformedAtomic, "malformed_atomic", kProtocolViolation, t(0, 2, 0xFF),
        "Atomic Request or Response of impossible length or content"},
    Row{Errc::kMisalignedAtomic, "misaligned_atomic", kProtocolViolation, t(0, 2, 7),  // req: RFC7306-8.2-7
        "Atomic on an address that is no multiple of 8"},
    Row{Errc::kRdmapCatastrophic, "rdmap_catastrophic", kProtocolViolation, t(0, 2, 7),
        "catastrophic RDMAP error on this stream"},
    Row{Errc::kLocalProtection, "local_protection", kLocalMisuse, t(0, 0, 0),
        "local buffer of a work request is not registered for this use"},
    Row{Errc::kInvalidArgument, "invalid_argument", kLocalMisuse, kNo, "invalid argument"},
    Row{Errc::kQueueFull, "queue_full", kLocalMisuse, kNo, "queue is full"},
    Row{Errc::kNotConnected, "not_connected", kLocalMisuse, kNo, "not connected"},
    Row{Errc::kFlushed, "flushed", kDisconnected, kNo, "connection ended before the operation completed"},
    Row{Errc::kRemoteTerminate, "remote_terminate", kPeerRefused, kNo, "peer sent a Terminate"},
    Row{Errc::kPeerClosed, "peer_closed", kDisconnected, kNo, "peer closed the connection"},
    Row{Errc::kTimeout, "timeout", kDisconnected, kNo, "timed out"},
    Row{Errc::kResource, "resource", kSystemFailure, kNo, "out of resources"},
    Row{Errc::kSystem, "system", kSystemFailure, kNo, "system call failed"},
    Row{Errc::kMalformedRpc, "malformed_rpc", kProtocolViolation, kNo, "malformed ONC RPC message"},
    Row{Errc::kRecordTooLong, "record_too_long", kProtocolViolation, kNo, "RPC record longer than allowed"},
    Row{Errc::kRecordTooShort, "record_too_short", kProtocolViolation, kNo,
        "RPC record too short for an xid and a direction"},
    Row{Errc::kEmptyFragments, "empty_fragments", kProtocolViolation, kNo, "too many empty fragments in an RPC record"},
    Row{Errc::kAborted, "aborted", kDisconnected, kNo, "ended by the local application"},
    Row{Errc::kConnectionRefused, "connection_refused", kSystemFailure, kNo,
        "connection refused: nothing listens there"},
    // None of them has a Terminate code of its own: layer 2 has those of MPA only. req: RFC6580-3.3-1
    Row{Errc::kAdaptation, "adaptation", kHandshakeFailed, kNo, "peer's SCTP adaptation is not DDP"},
    Row{Errc::kSessionControl, "session_control", kProtocolViolation, kNo,
        "malformed DDP Stream Session Control message"},
    Row{Errc::kSessionSequence, "session_sequence", kProtocolViolation, kNo,
        "message out of the legal sequence of a DDP Stream Session"},
    Row{Errc::kDdpSsn, "ddp_ssn", kProtocolViolation, kNo, "impossible DDP-SSN"},
};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].code) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(Errc::kLast) + 1;
}
static_assert(rows_are_in_order(), "kRows must list every Errc in order");

const Row& row(Errc code) {
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

Error make_error(Errc code) {
  return {code, row(code).tell_peer, row(code).why};
}
Error make_error(Errc code, const char* why) {
  return {code, row(code).tell_peer, why};
}
Condition condition(Errc code) {
  return row(code).condition;
}
const char* name(Errc code) {
  return row(code).name;
}

}  // namespace iwarp
