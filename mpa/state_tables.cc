#include "iwarp/mpa/state_tables.h"

namespace iwarp::mpa {
namespace {

namespace initiator {
using S = InitiatorState;
using I = InitiatorInput;
struct Row {
  S from;
  I on;
  S to;
};
constexpr Row kRows[] = {
    {S::kWaitReply, I::kReplyAccepted, S::kFull},  // req: RFC5044-7.1.2-13, RFC5044-7.1.2-17
    // req: RFC5044-7.1.4.2-1
    {S::kWaitReply, I::kReplyRejected, S::kRejected},  // req: RFC5044-7.1.2-16  TCP stays open
    {S::kWaitReply, I::kReplyUnusable, S::kFailed},    // req: RFC6581-9.1-18, RFC6581-9.2-19
    {S::kWaitReply, I::kReplyMalformed, S::kFailed},   // req: RFC5044-7.1.2-14  TCP is closed
    {S::kWaitReply, I::kConnectionEnd, S::kFailed},
    {S::kWaitReply, I::kTimeout, S::kFailed},  // req: RFC5044-7.1.2-31
    {S::kWaitReply, I::kBadArgument, S::kFailed},
};
}  // namespace initiator

namespace responder {
using S = ResponderState;
using I = ResponderInput;
struct Row {
  S from;
  I on;
  S to;
};
constexpr Row kRows[] = {
    {S::kWaitRequest, I::kRequest, S::kDeciding},
    {S::kWaitRequest, I::kRequestRefused, S::kFailed},
    {S::kWaitRequest, I::kRequestMalformed, S::kFailed},  // req: RFC5044-7.1.2-4, RFC5044-7.1.3-2
    {S::kWaitRequest, I::kConnectionEnd, S::kFailed},
    {S::kWaitRequest, I::kTimeout, S::kFailed},  // req: RFC5044-7.1.2-26, RFC5044-7.1.2-31
    {S::kWaitRequest, I::kBadArgument, S::kFailed},
    {S::kDeciding, I::kAccept, S::kReplying},
    {S::kDeciding, I::kReject, S::kRejecting},
    {S::kDeciding, I::kEarlyBytes, S::kFailed},  // req: RFC5044-7.1.1-31
    {S::kDeciding, I::kConnectionEnd, S::kFailed},
    {S::kReplying, I::kReplySent, S::kFull},  // req: RFC5044-7.1.2-3
    {S::kReplying, I::kConnectionEnd, S::kFailed},
    {S::kRejecting, I::kReplySent, S::kRejected},  // req: RFC5044-7.1.2-7  TCP stays open
    {S::kRejecting, I::kConnectionEnd, S::kFailed},
};
}  // namespace responder

template <class Rows, class S, class I>
constexpr std::optional<S> find(const Rows& rows, S from, I on) {
  for (const auto& row : rows) {
    if (row.from == from && row.on == on) return row.to;
  }
  return std::nullopt;
}
static_assert(!find(initiator::kRows, InitiatorState::kFull, InitiatorInput::kReplyRejected));
static_assert(!find(responder::kRows, ResponderState::kWaitRequest,
                    ResponderInput::kReplySent));  // req: RFC5044-7.1.2-12

}  // namespace

std::optional<InitiatorState> next(InitiatorState from, InitiatorInput on) {
  return find(initiator::kRows, from, on);
}
std::optional<ResponderState> next(ResponderState from, ResponderInput on) {
  return find(responder::kRows, from, on);
}

const char* name(InitiatorState state) {
  switch (state) {
    case InitiatorState::kWaitReply:
      return "WaitReply";
    case InitiatorState::kFull:
      return "Full";
    case InitiatorState::kRejected:
      return "Rejected";
    case InitiatorState::kFailed:
      return "Failed";
  }
  return "?";
}

const char* name(InitiatorInput input) {
  switch (input) {
    case InitiatorInput::kReplyAccepted:
      return "ReplyAccepted";
    case InitiatorInput::kReplyRejected:
      return "ReplyRejected";
    case InitiatorInput::kReplyUnusable:
      return "ReplyUnusable";
    case InitiatorInput::kReplyMalformed:
      return "ReplyMalformed";
    case InitiatorInput::kConnectionEnd:
      return "ConnectionEnd";
    case InitiatorInput::kTimeout:
      return "Timeout";
    case InitiatorInput::kBadArgument:
      return "BadArgument";
  }
  return "?";
}

const char* name(ResponderState state) {
  switch (state) {
    case ResponderState::kWaitRequest:
      return "WaitRequest";
    case ResponderState::kDeciding:
      return "Deciding";
    case ResponderState::kReplying:
      return "Replying";
    case ResponderState::kRejecting:
      return "Rejecting";
    case ResponderState::kFull:
      return "Full";
    case ResponderState::kRejected:
      return "Rejected";
    case ResponderState::kFailed:
      return "Failed";
  }
  return "?";
}

const char* name(ResponderInput input) {
  switch (input) {
    case ResponderInput::kRequest:
      return "Request";
    case ResponderInput::kRequestRefused:
      return "RequestRefused";
    case ResponderInput::kRequestMalformed:
      return "RequestMalformed";
    case ResponderInput::kEarlyBytes:
      return "EarlyBytes";
    case ResponderInput::kAccept:
      return "Accept";
    case ResponderInput::kReject:
      return "Reject";
    case ResponderInput::kReplySent:
      return "ReplySent";
    case ResponderInput::kConnectionEnd:
      return "ConnectionEnd";
    case ResponderInput::kTimeout:
      return "Timeout";
    case ResponderInput::kBadArgument:
      return "BadArgument";
  }
  return "?";
}

}  // namespace iwarp::mpa
