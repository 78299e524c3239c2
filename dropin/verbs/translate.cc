#include "dropin/verbs/translate.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

namespace iwarp::dropin {
namespace {

// Octets of immediate data: as on the wire there, a number here.
std::uint64_t from_immediate(__be32 immediate) {
  return ntohl(immediate);
}
__be32 to_immediate(std::uint64_t immediate) {
  return htonl(static_cast<std::uint32_t>(immediate));
}

ibv_wc_opcode to_wc_opcode(const verbs::Completion& c) {
  using rdmap::WcOp;
  switch (c.op) {
    case WcOp::kSend:
      return IBV_WC_SEND;
    case WcOp::kWrite:
      return IBV_WC_RDMA_WRITE;
    case WcOp::kRead:
      return IBV_WC_RDMA_READ;
    case WcOp::kRecv:
      return c.has_immediate && !c.sent_immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    case WcOp::kFetchAdd:
      return IBV_WC_FETCH_ADD;
    case WcOp::kCmpSwap:
      return IBV_WC_COMP_SWAP;
    case WcOp::kLocalInvalidate:
      return IBV_WC_LOCAL_INV;
    case WcOp::kDrain:
      return IBV_WC_DRIVER1;
  }
  return IBV_WC_SEND;
}

}  // namespace

int opcode_of(const ibv_send_wr& wr) {
  int opcode = 0;
  std::memcpy(&opcode, &wr.opcode, sizeof opcode);
  return opcode;
}

bool needs_agreement(int opcode) {
  return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

int to_sges(const ibv_sge* pieces, int count, rdmap::SgeList& out) {
  if (count < 0 || static_cast<std::size_t>(count) > rdmap::kMaxSge) return EINVAL;
  rdmap::SgeList list;
  for (int i = 0; i < count; ++i) {
    (void)list.add({.address = reinterpret_cast<std::byte*>(pieces[i].addr),
                    .length = pieces[i].length,
                    .lkey = Stag{pieces[i].lkey}});
  }
  out = list;
  return 0;
}

int to_recv_wr(const ibv_recv_wr& in, rdmap::RecvWr& out) {
  out.wr_id = in.wr_id;
  return to_sges(in.sg_list, in.num_sge, out.sges);
}

int to_send_wr(const ibv_send_wr& in, const SendRules& rules, rdmap::SendWr& out) {
  using rdmap::SendOp;
  out.remote_stag = {};
  out.local_stag = {};
  out.remote_to = 0;
  out.immediate = 0;
  out.wr_id = in.wr_id;
  bool rdma = false, atomic = false, sends = false;
  switch (opcode_of(in)) {
    case IBV_WR_SEND:
      out.op = SendOp::kSend;
      sends = true;
      break;
    case IBV_WR_SEND_WITH_INV:
      out.op = SendOp::kSendInvalidate;
      out.remote_stag = Stag{in.invalidate_rkey};
      sends = true;
      break;
    case IBV_WR_RDMA_WRITE:
      out.op = SendOp::kWrite;
      rdma = true;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      if (!rules.rfc7306) return EOPNOTSUPP;
      out.op = SendOp::kWriteImmediate;
      out.immediate = from_immediate(in.imm_data);
      rdma = sends = true;
      break;
    case IBV_WR_SEND_WITH_IMM:  // RFC 7306 has no such message: its Immediate Data is one of its own
      if (!rules.send_immediate) return EOPNOTSUPP;
      out.op = SendOp::kSendImmediate;
      out.immediate = from_immediate(in.imm_data);
      sends = true;
      break;
    case IBV_WR_RDMA_READ:
      out.op = SendOp::kRead;
      rdma = true;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      if (!rules.rfc7306) return EOPNOTSUPP;
      out.op = SendOp::kCmpSwap;
      out.atomic = {.data = in.wr.atomic.swap, .mask = ~std::uint64_t{0}, .compare = in.wr.atomic.compare_add};
      atomic = true;
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      if (!rules.rfc7306) return EOPNOTSUPP;
      out.op = SendOp::kFetchAdd;
      out.atomic = {.data = in.wr.atomic.compare_add};
      atomic = true;
      break;
    case IBV_WR_LOCAL_INV:
      out.op = SendOp::kLocalInvalidate;
      out.local_stag = Stag{in.invalidate_rkey};
      break;
    case IBV_WR_BIND_MW:
    case IBV_WR_TSO:
    case IBV_WR_DRIVER1:
    case IBV_WR_ATOMIC_WRITE:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
  if (rdma) {
    out.remote_stag = Stag{in.wr.rdma.rkey};
    out.remote_to = in.wr.rdma.remote_addr;
  } else if (atomic) {
    out.remote_stag = Stag{in.wr.atomic.rkey};
    out.remote_to = in.wr.atomic.remote_addr;
  }
  out.inline_data = (in.send_flags & IBV_SEND_INLINE) != 0;
  if (out.inline_data && !rdmap::may_be_inline(out.op)) return EINVAL;
  out.signaled = rules.all_signaled || (in.send_flags & IBV_SEND_SIGNALED) != 0;
  out.fence = (in.send_flags & IBV_SEND_FENCE) != 0;
  out.solicited = sends && (in.send_flags & IBV_SEND_SOLICITED) != 0;
  return to_sges(in.sg_list, out.op == SendOp::kLocalInvalidate ? 0 : in.num_sge, out.sges);
}

ibv_wc to_wc(const verbs::Completion& in) {
  ibv_wc wc{};
  wc.wr_id = in.wr_id;
  wc.status = to_wc_status(in.status);
  wc.opcode = to_wc_opcode(in);
  wc.vendor_err = static_cast<std::uint32_t>(in.status);
  wc.byte_len = in.byte_len;
  wc.qp_num = in.qp_number;
  if (in.op != rdmap::WcOp::kRecv || in.status != Errc::kOk) return wc;
  if (in.has_immediate) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = to_immediate(in.immediate);
  } else if (in.invalidated) {
    wc.wc_flags = IBV_WC_WITH_INV;
    wc.invalidated_rkey = static_cast<std::uint32_t>(in.invalidated_stag);
  }
  return wc;
}

ibv_wc_status to_wc_status(Errc code) {
  switch (code) {
    case Errc::kOk:
      return IBV_WC_SUCCESS;
    case Errc::kFlushed:
    case Errc::kPeerClosed:
    case Errc::kAborted:
      return IBV_WC_WR_FLUSH_ERR;
    case Errc::kLocalProtection:
      return IBV_WC_LOC_PROT_ERR;
    case Errc::kUntaggedTooLong:
      return IBV_WC_LOC_LEN_ERR;
    case Errc::kInvalidArgument:
    case Errc::kNotConnected:
      return IBV_WC_LOC_QP_OP_ERR;
    // What the peer has done to memory here.
    case Errc::kTaggedInvalidStag:
    case Errc::kTaggedBounds:
    case Errc::kTaggedNotAssociated:
    case Errc::kTaggedWrap:
    case Errc::kReadInvalidStag:
    case Errc::kReadBounds:
    case Errc::kReadAccess:
    case Errc::kReadNotAssociated:
    case Errc::kReadWrap:
    case Errc::kCannotInvalidate:
      return IBV_WC_LOC_ACCESS_ERR;
    case Errc::kUntaggedNoBuffer:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case Errc::kRemoteTerminate:
      return IBV_WC_REM_OP_ERR;
    case Errc::kConnectionLost:
    case Errc::kStartupTimeout:
    case Errc::kTimeout:
    case Errc::kConnectionRefused:
      return IBV_WC_RETRY_EXC_ERR;
    case Errc::kDdpCatastrophic:
    case Errc::kRdmapCatastrophic:
      return IBV_WC_FATAL_ERR;
    // What is not as the protocols have it.
    case Errc::kMalformedStartupFrame:
    case Errc::kUnsupportedRevision:
    case Errc::kPrivateDataTooLong:
    case Errc::kMarkersRefused:
    case Errc::kCrcRefused:
    case Errc::kInsufficientIrd:
    case Errc::kNoMatchingRtr:
    case Errc::kConnectionModel:
    case Errc::kCrcMismatch:
    case Errc::kFpduLength:
    case Errc::kMarkerMismatch:
    case Errc::kDdpVersionTagged:
    case Errc::kDdpVersionUntagged:
    case Errc::kUntaggedInvalidQn:
    case Errc::kUntaggedMsnRange:
    case Errc::kUntaggedInvalidMo:
    case Errc::kRdmapVersion:
    case Errc::kRdmapOpcode:
    case Errc::kUnexpectedReadResponse:
    case Errc::kMalformedReadRequest:
    case Errc::kMalformedImmediate:
    case Errc::kMalformedAtomic:
    case Errc::kMisalignedAtomic:
    case Errc::kAdaptation:
    case Errc::kSessionControl:
    case Errc::kSessionSequence:
    case Errc::kDdpSsn:
      return IBV_WC_BAD_RESP_ERR;
    case Errc::kPeerRejected:
      return IBV_WC_REM_ABORT_ERR;
    case Errc::kStartupLocal:
    case Errc::kQueueFull:
    case Errc::kResource:
    case Errc::kSystem:
    case Errc::kMalformedRpc:
    case Errc::kRecordTooLong:
    case Errc::kRecordTooShort:
    case Errc::kEmptyFragments:
      return IBV_WC_GENERAL_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

int to_errno(Errc code) {
  if (code == Errc::kQueueFull || code == Errc::kResource) return ENOMEM;
  if (code == Errc::kNotConnected) return ENOTCONN;
  if (code == Errc::kLocalProtection) return EFAULT;
  if (code == Errc::kTimeout || code == Errc::kStartupTimeout) return ETIMEDOUT;
  if (code == Errc::kConnectionRefused) return ECONNREFUSED;
  switch (condition(code)) {
    case Condition::kNone:
      return 0;
    case Condition::kPeerRefused:
      return ECONNREFUSED;
    case Condition::kDisconnected:
      return ECONNRESET;
    case Condition::kHandshakeFailed:
    case Condition::kProtocolViolation:
      return EPROTO;
    case Condition::kLocalMisuse:
      return EINVAL;
    case Condition::kSystemFailure:
      return EIO;
  }
  return EIO;
}

int to_access(unsigned flags, ddp::Access& out) {
  constexpr unsigned kKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                              IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
  if ((flags & ~kKnown) != 0) return EINVAL;
  const auto has = [flags](unsigned which) { return (flags & which) != 0; };
  if (has(IBV_ACCESS_ON_DEMAND)) return EOPNOTSUPP;
  if (has(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !has(IBV_ACCESS_LOCAL_WRITE)) return EINVAL;
  out = ddp::Access::kLocalRead;
  if (has(IBV_ACCESS_LOCAL_WRITE)) out = out | ddp::Access::kLocalWrite;
  if (has(IBV_ACCESS_REMOTE_WRITE)) out = out | ddp::Access::kRemoteWrite;
  if (has(IBV_ACCESS_REMOTE_READ)) out = out | ddp::Access::kRemoteRead;
  if (has(IBV_ACCESS_REMOTE_ATOMIC)) out = out | ddp::Access::kRemoteAtomic;
  return 0;
}

ibv_qp_state to_qp_state(verbs::QueuePairState state, ibv_qp_state before) {
  switch (state) {
    case verbs::QueuePairState::kInit:
      return before;
    case verbs::QueuePairState::kRtr:
      return IBV_QPS_RTR;
    case verbs::QueuePairState::kRts:
      return IBV_QPS_RTS;
    case verbs::QueuePairState::kSqDrain:
      return IBV_QPS_SQD;
    case verbs::QueuePairState::kError:
      return IBV_QPS_ERR;
  }
  return IBV_QPS_UNKNOWN;
}

ibv_event_type to_event_type(verbs::AsyncEventType type) {
  switch (type) {
    case verbs::AsyncEventType::kSrqLimitReached:
      return IBV_EVENT_SRQ_LIMIT_REACHED;
    case verbs::AsyncEventType::kQpFatal:
      return IBV_EVENT_QP_FATAL;
    case verbs::AsyncEventType::kLastWqeReached:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case verbs::AsyncEventType::kCqOverflow:
      return IBV_EVENT_CQ_ERR;
  }
  return IBV_EVENT_DEVICE_FATAL;
}

}  // namespace iwarp::dropin
