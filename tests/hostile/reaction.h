// The closed vocabulary of reactions: what a victim may do about a broken rule, in words that cases.tsv, the runner and
// the table of results share.
#pragma once

#include <string>
#include <string_view>

#include "iwarp/base/error.h"

namespace iwarp::hostile {

// One of
//   term L/E/C    a Terminate with that layer, error type and code (hexadecimal), then the end of TCP
//   err_chunk     RDMA_ERROR ERR_CHUNK of that xid, and the connection goes on
//   err_vers      RDMA_ERROR ERR_VERS of that xid, and the connection goes on
//   garbage_args  an RPC Reply GARBAGE_ARGS of that xid, and the connection goes on
//   close         FIN or RST without a Terminate before it
//   reject        an MPA Reply with R=1, then the end of TCP
//   ignore        nothing, or what a peer without fault gets; and the connection goes on
// Over SCTP "connection" is a DDP Stream Session, a Terminate is followed by that of the session, close is the shutdown
// of the association in order, reject is a Reject, and there are
//   session terminate    the Terminate of the session, without one of RDMAP before it; another session of the
//                        association is served, or, where there is none, the association is shut down
//   enhanced reject      an Enhanced Reject, and another session is served
//   association aborted  an ABORT of SCTP
// And
//   n/a: reason   no peer can break this rule on the wire, or what it concerns is not built: nothing is run
// A runner that sees anything else says so in other words, which match none of these.
using Reaction = std::string;

inline constexpr const char* kErrChunk = "err_chunk";
inline constexpr const char* kErrVers = "err_vers";
inline constexpr const char* kGarbageArgs = "garbage_args";
inline constexpr const char* kClose = "close";
inline constexpr const char* kReject = "reject";
inline constexpr const char* kIgnore = "ignore";
inline constexpr const char* kSessionTerminate = "session terminate";
inline constexpr const char* kEnhancedReject = "enhanced reject";
inline constexpr const char* kAssociationAborted = "association aborted";

// "term 1/2/5"
[[nodiscard]] Reaction term(const TerminateCode& code);
// Whether `reaction` is of the list above.
[[nodiscard]] bool in_vocabulary(std::string_view reaction);
[[nodiscard]] bool not_applicable(std::string_view reaction);

}  // namespace iwarp::hostile
