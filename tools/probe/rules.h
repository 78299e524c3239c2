// The rules that `iwarp probe` holds a responder or an initiator to, by the ids of requirements/*.tsv. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace iwarp::tools::probe {

enum class Rule : std::uint8_t {
  kReplyKey,
  kReservedBits,
  kRevisionField,
  kPrivateDataLength,
  kPrivateDataLimit,
  kFpduBeforeOurs,
  kAnswerRequest,
  kPrivateDataBuffer,
  kUnknownRevision,
  kMarkers,
  kCrc,
  kFpduCrc,
  kIgnoreReserved,
  kTakeRevision1,
  kTakeUnenhanced,
  kAnswerEnhanced,
  kAnswerUnenhanced,
  kEnhancedRevision,
  kEnhancedData,
  kEchoPeerToPeer,
  kEchoClientServer,
  kNoFlagsWithoutA,
  kNameAForm,
  kNameOfferedForm,
  kOrdAtMostIrd,
  kIrdLeftToUlp,
  kOrdLeftToUlp,
  kReadRtrNeedsIrd,
  kTakeNamedRtr,
  kRpcReservedBits,
  // Of initiators.
  kRequestKey,
  kRequestRevision,
  kRequestReject,
  kWaitForReply,
  kOfferAForm,
  kSendNamedRtr,
  kRtrFirst,
  kTerminateWithoutForm,
  kCodeWithoutForm,
  kCloseWithoutForm,
  kOrdWithinReplyIrd,
  kCodeOfLowIrd,
  kGoOn,
  kLeaveAfterReject,
  kCloseOnWrongKey,
  kCloseOnWrongReply,
  // Over SCTP. What answers settle there (terms.h) is held to the rules above.
  kEqualStreams,
  kUnordered,
  kPpid,
  kMessageSsn,
  kControlForm,
  kFunctionCode,
  kControlDataLimit,
  kTerminateBare,
  kEnhancedAcceptData,
  kFirstSsn,
  kSsnCounts,
  kSsnGap,
  kLegalSequence,
  kEndUnknownCode,
  kAnswerInitiate,
  kLikeWithLike,
  kEnhancedReject,
  kTakePlain,
  kControlDataRoom,
  kOtherSessionsGoOn,
  kCount
};

struct RuleText {
  std::string_view id;
  std::string_view level;  // as in requirements/*.tsv
  std::string_view says;   // the duty of the peer
};

[[nodiscard]] const RuleText& text(Rule rule);
// "RFC 6581 s9.1" of "RFC6581-9.1-12".
[[nodiscard]] std::string section(std::string_view id);

}  // namespace iwarp::tools::probe
