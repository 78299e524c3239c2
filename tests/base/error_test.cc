#include "iwarp/base/error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/support/covers.h"

namespace iwarp {
namespace {

// Written out a second time on purpose: what a peer is told and what an application branches on must not change by
// accident.
struct Row {
  Errc code;
  const char* name;
  Condition condition;
  const char* terminate;  // layer/type/code, or "-"
  const char* why;
};

using enum Condition;
constexpr Row kExpected[] = {
    {Errc::kOk, "ok", kNone, "-", "no error"},
    {Errc::kMalformedStartupFrame, "malformed_startup_frame", kHandshakeFailed, "-", "malformed MPA startup frame"},
    {Errc::kUnsupportedRevision, "unsupported_revision", kHandshakeFailed, "-", "unsupported MPA revision"},
    {Errc::kPrivateDataTooLong, "private_data_too_long", kHandshakeFailed, "-", "MPA private data longer than allowed"},
    {Errc::kMarkersRefused, "markers_refused", kHandshakeFailed, "-",
     "peer demands MPA Markers but policy forbids them"},
    {Errc::kCrcRefused, "crc_refused", kHandshakeFailed, "-", "peer requires CRC but policy forbids it"},
    {Errc::kStartupTimeout, "startup_timeout", kHandshakeFailed, "-", "peer did not complete the MPA startup in time"},
    {Errc::kPeerRejected, "peer_rejected", kPeerRefused, "-", "peer rejected the connection"},
    {Errc::kInsufficientIrd, "insufficient_ird", kHandshakeFailed, "2/0/6", "insufficient IRD resources"},
    {Errc::kNoMatchingRtr, "no_matching_rtr", kHandshakeFailed, "2/0/7", "no matching RTR option"},
    {Errc::kStartupLocal, "startup_local", kHandshakeFailed, "2/0/5", "local failure during MPA startup"},
    {Errc::kConnectionModel, "connection_model", kHandshakeFailed, "-", "MPA Reply does not match the Request"},
    {Errc::kCrcMismatch, "crc_mismatch", kProtocolViolation, "2/0/2", "FPDU CRC mismatch"},
    {Errc::kFpduLength, "fpdu_length", kProtocolViolation, "2/0/3", "ULPDU shorter than its headers"},
    {Errc::kMarkerMismatch, "marker_mismatch", kProtocolViolation, "2/0/3",
     "MPA Marker does not point to the start of its FPDU"},
    {Errc::kConnectionLost, "connection_lost", kDisconnected, "2/0/1", "TCP connection lost"},
    {Errc::kDdpVersionTagged, "ddp_version_tagged", kProtocolViolation, "1/1/4",
     "invalid DDP version in a tagged segment"},
    {Errc::kDdpVersionUntagged, "ddp_version_untagged", kProtocolViolation, "1/2/6",
     "invalid DDP version in an untagged segment"},
    {Errc::kTaggedInvalidStag, "tagged_invalid_stag", kProtocolViolation, "1/1/0",
     "tagged segment names an invalid STag"},
    {Errc::kTaggedBounds, "tagged_bounds", kProtocolViolation, "1/1/1", "tagged segment leaves the registered range"},
    {Errc::kTaggedNotAssociated, "tagged_not_associated", kProtocolViolation, "1/1/2",
     "STag of a tagged segment belongs to another stream or protection domain"},
    {Errc::kTaggedWrap, "tagged_wrap", kProtocolViolation, "1/1/3", "tagged offset plus length wraps"},
    {Errc::kUntaggedInvalidQn, "untagged_invalid_qn", kProtocolViolation, "1/2/1",
     "untagged segment names an unknown queue"},
    {Errc::kUntaggedNoBuffer, "untagged_no_buffer", kProtocolViolation, "1/2/2",
     "no buffer posted for an untagged message"},
    {Errc::kUntaggedMsnRange, "untagged_msn_range", kProtocolViolation, "1/2/3",
     "message sequence number out of range"},
    {Errc::kUntaggedInvalidMo, "untagged_invalid_mo", kProtocolViolation, "1/2/4",
     "message offset out of order or outside the buffer"},
    {Errc::kUntaggedTooLong, "untagged_too_long", kProtocolViolation, "1/2/5",
     "untagged message longer than its buffer"},
    {Errc::kDdpCatastrophic, "ddp_catastrophic", kProtocolViolation, "1/0/0", "local catastrophic DDP error"},
    {Errc::kRdmapVersion, "rdmap_version", kProtocolViolation, "0/2/5", "invalid RDMAP version"},
    {Errc::kRdmapOpcode, "rdmap_opcode", kProtocolViolation, "0/2/6", "unexpected RDMAP opcode"},
    {Errc::kReadInvalidStag, "read_invalid_stag", kProtocolViolation, "0/1/0",
     "RDMA Read Request names an invalid source STag"},
    {Errc::kReadBounds, "read_bounds", kProtocolViolation, "0/1/1", "RDMA Read Request leaves the registered range"},
    {Errc::kReadAccess, "read_access", kProtocolViolation, "0/1/2",
     "RDMA Read Request of memory without remote read access"},
    {Errc::kReadNotAssociated, "read_not_associated", kProtocolViolation, "0/1/3",
     "source STag belongs to another stream or protection domain"},
    {Errc::kReadWrap, "read_wrap", kProtocolViolation, "0/1/4", "RDMA Read source offset plus size wraps"},
    {Errc::kCannotInvalidate, "cannot_invalidate", kProtocolViolation, "0/1/9",
     "STag cannot be invalidated by this peer"},
    {Errc::kUnexpectedReadResponse, "unexpected_read_response", kProtocolViolation, "0/2/6",
     "RDMA Read Response that matches no outstanding Read"},
    {Errc::kMalformedReadRequest, "malformed_read_request", kProtocolViolation, "0/2/255",
     "RDMA Read Request of impossible length"},
    {Errc::kMalformedImmediate, "malformed_immediate", kProtocolViolation, "0/2/255",
     "Immediate Data of other than 8 octets"},
    {Errc::kMalformedAtomic, "malformed_atomic", kProtocolViolation, "0/2/255",
     "Atomic Request or Response of impossible length or content"},
    {Errc::kMisalignedAtomic, "misaligned_atomic", kProtocolViolation, "0/2/7",
     "Atomic on an address that is no multiple of 8"},
    {Errc::kRdmapCatastrophic, "rdmap_catastrophic", kProtocolViolation, "0/2/7",
     "catastrophic RDMAP error on this stream"},
    {Errc::kLocalProtection, "local_protection", kLocalMisuse, "0/0/0",
     "local buffer of a work request is not registered for this use"},
    {Errc::kInvalidArgument, "invalid_argument", kLocalMisuse, "-", "invalid argument"},
    {Errc::kQueueFull, "queue_full", kLocalMisuse, "-", "queue is full"},
    {Errc::kNotConnected, "not_connected", kLocalMisuse, "-", "not connected"},
    {Errc::kFlushed, "flushed", kDisconnected, "-", "connection ended before the operation completed"},
    {Errc::kRemoteTerminate, "remote_terminate", kPeerRefused, "-", "peer sent a Terminate"},
    {Errc::kPeerClosed, "peer_closed", kDisconnected, "-", "peer closed the connection"},
    {Errc::kTimeout, "timeout", kDisconnected, "-", "timed out"},
    {Errc::kResource, "resource", kSystemFailure, "-", "out of resources"},
    {Errc::kSystem, "system", kSystemFailure, "-", "system call failed"},
    {Errc::kMalformedRpc, "malformed_rpc", kProtocolViolation, "-", "malformed ONC RPC message"},
    {Errc::kRecordTooLong, "record_too_long", kProtocolViolation, "-", "RPC record longer than allowed"},
    {Errc::kRecordTooShort, "record_too_short", kProtocolViolation, "-",
     "RPC record too short for an xid and a direction"},
    {Errc::kEmptyFragments, "empty_fragments", kProtocolViolation, "-", "too many empty fragments in an RPC record"},
    {Errc::kAborted, "aborted", kDisconnected, "-", "ended by the local application"},
    {Errc::kConnectionRefused, "connection_refused", kSystemFailure, "-", "connection refused: nothing listens there"},
    {Errc::kAdaptation, "adaptation", kHandshakeFailed, "-", "peer's SCTP adaptation is not DDP"},
    {Errc::kSessionControl, "session_control", kProtocolViolation, "-", "malformed DDP Stream Session Control message"},
    {Errc::kSessionSequence, "session_sequence", kProtocolViolation, "-",
     "message out of the legal sequence of a DDP Stream Session"},
    {Errc::kDdpSsn, "ddp_ssn", kProtocolViolation, "-", "impossible DDP-SSN"},
};

std::string terminate_text(const Error& error) {
  if (!error.tell_peer) return "-";
  return std::to_string(error.tell_peer->layer) + "/" + std::to_string(error.tell_peer->type) + "/" +
         std::to_string(error.tell_peer->code);
}

TEST(ErrorTable, MapsEveryCode) {
  ASSERT_EQ(std::size(kExpected), static_cast<std::size_t>(Errc::kLast) + 1);
  for (std::size_t i = 0; i < std::size(kExpected); ++i) {
    const Row& row = kExpected[i];
    SCOPED_TRACE(row.name);
    EXPECT_EQ(static_cast<std::size_t>(row.code), i) << "rows in the order of Errc";
    const Error error = make_error(row.code);
    EXPECT_EQ(error.code, row.code);
    EXPECT_STREQ(name(row.code), row.name);
    EXPECT_EQ(condition(row.code), row.condition);
    EXPECT_EQ(terminate_text(error), row.terminate);
    EXPECT_STREQ(error.why, row.why);
  }
}

TEST(ErrorTable, NamesAreUniqueAndMachineReadable) {
  std::set<std::string> names;
  for (const Row& row : kExpected) {
    EXPECT_TRUE(names.insert(name(row.code)).second) << name(row.code);
    EXPECT_EQ(std::strspn(name(row.code), "abcdefghijklmnopqrstuvwxyz_0123456789"), std::strlen(name(row.code)));
  }
}

// Values registered by RFC 5040 s4.8, RFC 5044 s8 and RFC 6581 s8: layers 0 to 2, four bits of type.
TEST(ErrorTable, TerminateCodesFitTheirFields) {
  COVERS("RFC6580-3.3-1");
  for (const Row& row : kExpected) {
    const auto tell = make_error(row.code).tell_peer;
    if (!tell) continue;
    EXPECT_LE(tell->layer, 2) << row.name;
    EXPECT_LE(tell->type, tell->layer == 2 ? 0 : 2) << row.name;
  }
}

TEST(Error, TakesAMorePreciseText) {
  const Error precise = make_error(Errc::kCrcMismatch, "in frame 7");
  EXPECT_STREQ(precise.why, "in frame 7");
  EXPECT_EQ(precise, make_error(Errc::kCrcMismatch)) << "the text is for people, equality ignores it";
  EXPECT_FALSE(precise == make_error(Errc::kFpduLength));
}

}  // namespace
}  // namespace iwarp
