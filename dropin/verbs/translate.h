// Between the vocabulary of libibverbs and that of iwarp::verbs: pure functions over values. What returns an int
// returns 0 or the errno value that the verb owes its caller. Thread-safe.
#pragma once

#include <infiniband/verbs.h>

#include "iwarp/base/error.h"
#include "iwarp/ddp/access.h"
#include "iwarp/rdmap/work_request.h"
#include "iwarp/verbs/async_event.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/queue_pair_state.h"

namespace iwarp::dropin {

// What a queue pair was made with, as far as it bears on what is posted.
struct SendRules {
  bool all_signaled = false;    // ibv_qp_init_attr::sq_sig_all
  bool rfc7306 = false;         // agreed with the peer: the core sends Immediate Data and Atomics
  bool send_immediate = false;  // likewise Sends with Immediate
};

// As a number, for the application may have put any there.
[[nodiscard]] int opcode_of(const ibv_send_wr& wr);
// Whether an opcode of ibv_wr_opcode, or any number, is one that both ends have to agree on.
[[nodiscard]] bool needs_agreement(int opcode);

// `out` is `in`. EOPNOTSUPP: an operation that iWARP has not, or that was not agreed on. EINVAL: more pieces than
// rdmap::kMaxSge, inline data for what has none. 32 bits of immediate data are the less significant half of RFC 7306's.
[[nodiscard]] int to_send_wr(const ibv_send_wr& in, const SendRules& rules, rdmap::SendWr& out);
// Likewise of the receive queue. EINVAL: too many pieces.
[[nodiscard]] int to_recv_wr(const ibv_recv_wr& in, rdmap::RecvWr& out);
// `out` has `count` pieces. EINVAL: too many.
[[nodiscard]] int to_sges(const ibv_sge* pieces, int count, rdmap::SgeList& out);

// The completion as ibv_poll_cq() tells it. The peer's number is not known to iWARP: src_qp is 0.
[[nodiscard]] ibv_wc to_wc(const verbs::Completion& in);
// Of a completion. Every cause has one.
[[nodiscard]] ibv_wc_status to_wc_status(Errc code);
// What is owed to the caller of a verb that failed so. Every cause has one; of kOk 0.
[[nodiscard]] int to_errno(Errc code);

// Rights of a region, of enum ibv_access_flags. EINVAL: unknown flags, or the peer may write and the owner not.
// EOPNOTSUPP: on-demand paging. MW_BIND gives no right of its own; HUGETLB and the optional ones
// (relaxed ordering) change nothing.
[[nodiscard]] int to_access(unsigned flags, ddp::Access& out);

// The state as ibv_query_qp() tells it; `before`: what kInit is called, as one state of the core is several of verbs.
[[nodiscard]] ibv_qp_state to_qp_state(verbs::QueuePairState state, ibv_qp_state before);
// The event as ibv_get_async_event() tells it.
[[nodiscard]] ibv_event_type to_event_type(verbs::AsyncEventType type);

}  // namespace iwarp::dropin
