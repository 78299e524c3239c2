#include "dropin/verbs/translate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace iwarp::dropin {
namespace {

using rdmap::SendOp;
using rdmap::WcOp;

ibv_send_wr request(ibv_wr_opcode op, unsigned flags = 0) {
  ibv_send_wr wr{};
  wr.wr_id = 0x1122334455667788;
  wr.opcode = op;
  wr.send_flags = flags;
  return wr;
}

constexpr SendRules kPlain{};
constexpr SendRules kRfc7306{.all_signaled = false, .rfc7306 = true};

TEST(TranslateSend, EveryOpcodeHasItsOperationOrItsErrno) {
  struct Row {
    ibv_wr_opcode op;
    int plain, rfc7306;  // errno
    SendOp to = SendOp::kSend;
  };
  constexpr std::array kRows = {
      Row{IBV_WR_RDMA_WRITE, 0, 0, SendOp::kWrite},
      Row{IBV_WR_RDMA_WRITE_WITH_IMM, EOPNOTSUPP, 0, SendOp::kWriteImmediate},
      Row{IBV_WR_SEND, 0, 0, SendOp::kSend},
      Row{IBV_WR_SEND_WITH_IMM, EOPNOTSUPP, EOPNOTSUPP},
      Row{IBV_WR_RDMA_READ, 0, 0, SendOp::kRead},
      Row{IBV_WR_ATOMIC_CMP_AND_SWP, EOPNOTSUPP, 0, SendOp::kCmpSwap},
      Row{IBV_WR_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP, 0, SendOp::kFetchAdd},
      Row{IBV_WR_LOCAL_INV, 0, 0, SendOp::kLocalInvalidate},
      Row{IBV_WR_BIND_MW, EOPNOTSUPP, EOPNOTSUPP},
      Row{IBV_WR_SEND_WITH_INV, 0, 0, SendOp::kSendInvalidate},
      Row{IBV_WR_TSO, EOPNOTSUPP, EOPNOTSUPP},
      Row{IBV_WR_DRIVER1, EOPNOTSUPP, EOPNOTSUPP},
      Row{IBV_WR_ATOMIC_WRITE, EOPNOTSUPP, EOPNOTSUPP},
  };
  std::set<int> known;
  for (const Row& row : kRows) {
    known.insert(row.op);
    rdmap::SendWr out;
    EXPECT_EQ(to_send_wr(request(row.op), kPlain, out), row.plain) << row.op;
    if (row.plain == 0) {
      EXPECT_EQ(out.op, row.to) << row.op;
    }
    EXPECT_EQ(to_send_wr(request(row.op), kRfc7306, out), row.rfc7306) << row.op;
    if (row.rfc7306 == 0) {
      EXPECT_EQ(out.op, row.to) << row.op;
      EXPECT_EQ(out.wr_id, 0x1122334455667788U);
    }
  }
  for (int op = 0; op < 64; ++op) {
    rdmap::SendWr out;
    EXPECT_EQ(needs_agreement(op), std::ranges::any_of(kRows,
                                                       [&](const Row& row) {
                                                         return row.op == op && row.plain == EOPNOTSUPP &&
                                                                (row.rfc7306 == 0 || op == IBV_WR_SEND_WITH_IMM);
                                                       }))
        << op;
    if (known.contains(op)) continue;
    ibv_send_wr in = request(IBV_WR_SEND);
    std::memcpy(&in.opcode, &op, sizeof op);  // as an application in C can
    EXPECT_EQ(to_send_wr(in, kPlain, out), EINVAL) << op;
  }
}

TEST(TranslateSend, ASendWithImmediateIsAgreedOnApart) {
  ibv_send_wr in = request(IBV_WR_SEND_WITH_IMM);
  in.imm_data = htonl(0xFFFEFDFC);
  in.send_flags = IBV_SEND_SOLICITED | IBV_SEND_INLINE;
  rdmap::SendWr out;
  ASSERT_EQ(to_send_wr(in, {.rfc7306 = true, .send_immediate = true}, out), 0);
  EXPECT_EQ(out.op, SendOp::kSendImmediate);
  EXPECT_EQ(out.immediate, 0xFFFEFDFCU);
  EXPECT_TRUE(out.solicited && out.inline_data);
}

TEST(TranslateSend, EveryCombinationOfFlagsIsKept) {
  for (const bool all_signaled : {false, true}) {
    for (unsigned flags = 0; flags < 32; ++flags) {
      for (const auto op : {IBV_WR_SEND, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_LOCAL_INV}) {
        const bool is_inline = (flags & IBV_SEND_INLINE) != 0;
        const bool takes_inline = op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_INV || op == IBV_WR_RDMA_WRITE;
        rdmap::SendWr out;
        const int error = to_send_wr(request(op, flags), {.all_signaled = all_signaled}, out);
        ASSERT_EQ(error, is_inline && !takes_inline ? EINVAL : 0) << op << ' ' << flags;
        if (error != 0) continue;
        EXPECT_EQ(out.signaled, all_signaled || (flags & IBV_SEND_SIGNALED) != 0);
        EXPECT_EQ(out.fence, (flags & IBV_SEND_FENCE) != 0);
        EXPECT_EQ(out.inline_data, is_inline);
        EXPECT_EQ(out.solicited,
                  (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_INV) && (flags & IBV_SEND_SOLICITED) != 0);
      }
    }
  }
}

TEST(TranslateSend, NamesThePeersMemory) {
  for (const auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    ibv_send_wr in = request(op);
    in.wr.rdma.remote_addr = 0xa1a2a3a4a5a6a7a8;
    in.wr.rdma.rkey = 0xb1b2b3b4;
    in.imm_data = htonl(0x01020304);
    rdmap::SendWr out;
    ASSERT_EQ(to_send_wr(in, kRfc7306, out), 0);
    EXPECT_EQ(out.remote_to, 0xa1a2a3a4a5a6a7a8U);
    EXPECT_EQ(out.remote_stag, Stag{0xb1b2b3b4});
    EXPECT_EQ(out.immediate, op == IBV_WR_RDMA_WRITE_WITH_IMM ? 0x01020304U : 0U);
  }
}

TEST(TranslateSend, NamesTheStagToInvalidate) {
  ibv_send_wr in = request(IBV_WR_SEND_WITH_INV);
  in.invalidate_rkey = 0xc1c2c3c4;
  rdmap::SendWr out;
  ASSERT_EQ(to_send_wr(in, kPlain, out), 0);
  EXPECT_EQ(out.remote_stag, Stag{0xc1c2c3c4});
  in.opcode = IBV_WR_LOCAL_INV;
  ASSERT_EQ(to_send_wr(in, kPlain, out), 0);
  EXPECT_EQ(out.local_stag, Stag{0xc1c2c3c4});
  EXPECT_EQ(out.remote_stag, Stag{}) << "nothing of the request before is left";
}

TEST(TranslateSend, GivesAtomicsTheirOperands) {
  ibv_send_wr in = request(IBV_WR_ATOMIC_CMP_AND_SWP);
  in.wr.atomic = {.remote_addr = 8, .compare_add = 5, .swap = 7, .rkey = 9};
  rdmap::SendWr out;
  ASSERT_EQ(to_send_wr(in, kRfc7306, out), 0);
  EXPECT_EQ(out.atomic, (rdmap::AtomicOperands{.data = 7, .mask = ~0ULL, .compare = 5, .compare_mask = ~0ULL}));
  EXPECT_EQ(out.remote_to, 8U);
  EXPECT_EQ(out.remote_stag, Stag{9});
  in.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  ASSERT_EQ(to_send_wr(in, kRfc7306, out), 0);
  EXPECT_EQ(out.atomic.data, 5U);
  EXPECT_EQ(out.atomic.mask, 0U);
}

TEST(TranslateSges, TakesUpToEightPieces) {
  std::vector<ibv_sge> pieces;
  for (std::uint32_t i = 0; i <= rdmap::kMaxSge; ++i) {
    rdmap::SgeList out{rdmap::Sge{}};
    ASSERT_EQ(to_sges(pieces.data(), static_cast<int>(i), out), 0);
    ASSERT_EQ(out.view().size(), i);
    for (std::uint32_t k = 0; k < i; ++k) {
      EXPECT_EQ(out.view()[k].at(0), 0x1000U + k);
      EXPECT_EQ(out.view()[k].length, 10U + k);
      EXPECT_EQ(out.view()[k].lkey, Stag{100 + k});
    }
    pieces.push_back({.addr = 0x1000U + i, .length = 10U + i, .lkey = 100 + i});
  }
  rdmap::SgeList out;
  EXPECT_EQ(to_sges(pieces.data(), static_cast<int>(rdmap::kMaxSge) + 1, out), EINVAL);
  EXPECT_EQ(to_sges(pieces.data(), -1, out), EINVAL);
}

TEST(TranslateRecv, KeepsIdAndPieces) {
  ibv_sge piece{.addr = 64, .length = 3, .lkey = 5};
  ibv_recv_wr in{.wr_id = 77, .next = nullptr, .sg_list = &piece, .num_sge = 1};
  rdmap::RecvWr out;
  ASSERT_EQ(to_recv_wr(in, out), 0);
  EXPECT_EQ(out.wr_id, 77U);
  EXPECT_EQ(out.sges.total(), 3U);
  in.num_sge = 9;
  EXPECT_EQ(to_recv_wr(in, out), EINVAL);
}

verbs::Completion completion(WcOp op, Errc status = Errc::kOk) {
  verbs::Completion c;
  c.wr_id = 0x8877665544332211;
  c.op = op;
  c.status = status;
  c.byte_len = 1234;
  c.qp_number = 4321;
  return c;
}

TEST(TranslateCompletion, EveryKindHasItsOpcode) {
  const std::map<WcOp, ibv_wc_opcode> opcodes = {{WcOp::kSend, IBV_WC_SEND},
                                                 {WcOp::kWrite, IBV_WC_RDMA_WRITE},
                                                 {WcOp::kRead, IBV_WC_RDMA_READ},
                                                 {WcOp::kRecv, IBV_WC_RECV},
                                                 {WcOp::kFetchAdd, IBV_WC_FETCH_ADD},
                                                 {WcOp::kCmpSwap, IBV_WC_COMP_SWAP},
                                                 {WcOp::kLocalInvalidate, IBV_WC_LOCAL_INV},
                                                 {WcOp::kDrain, IBV_WC_DRIVER1}};
  for (const auto& [op, opcode] : opcodes) {
    for (const Errc status : {Errc::kOk, Errc::kFlushed}) {
      const ibv_wc wc = to_wc(completion(op, status));
      EXPECT_EQ(wc.opcode, opcode);
      EXPECT_EQ(wc.status, status == Errc::kOk ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc.wr_id, 0x8877665544332211U);
      EXPECT_EQ(wc.byte_len, 1234U);
      EXPECT_EQ(wc.qp_num, 4321U);
      EXPECT_EQ(wc.wc_flags, 0U);
      EXPECT_EQ(wc.vendor_err, static_cast<std::uint32_t>(status));
    }
  }
}

TEST(TranslateCompletion, TellsWhatTheMessageCarried) {
  auto c = completion(WcOp::kRecv);
  c.has_immediate = true;
  c.immediate = 0xaaaaaaaa01020304;
  ibv_wc wc = to_wc(c);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.imm_data, htonl(0x01020304));
  c.sent_immediate = true;
  wc = to_wc(c);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV) << "a Send that brought it";
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.imm_data, htonl(0x01020304));
  c = completion(WcOp::kRecv);
  c.invalidated = true;
  c.invalidated_stag = Stag{0xd1d2d3d4};
  wc = to_wc(c);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(wc.invalidated_rkey, 0xd1d2d3d4U);
  c.op = WcOp::kLocalInvalidate;
  EXPECT_EQ(to_wc(c).wc_flags, 0U) << "only of what the peer did";
}

TEST(TranslateStatus, EveryCauseHasOneAndOnlyOkIsSuccess) {
  for (unsigned i = 0; i <= static_cast<unsigned>(Errc::kLast); ++i) {
    const auto code = static_cast<Errc>(i);
    EXPECT_EQ(to_wc_status(code) == IBV_WC_SUCCESS, code == Errc::kOk) << name(code);
    EXPECT_EQ(to_errno(code) == 0, code == Errc::kOk) << name(code);
  }
  EXPECT_EQ(to_wc_status(Errc::kFlushed), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(to_wc_status(Errc::kAborted), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(to_wc_status(Errc::kPeerClosed), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(to_wc_status(Errc::kLocalProtection), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(to_wc_status(Errc::kUntaggedTooLong), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(to_wc_status(Errc::kUntaggedNoBuffer), IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(to_wc_status(Errc::kRemoteTerminate), IBV_WC_REM_OP_ERR);
  EXPECT_EQ(to_wc_status(Errc::kConnectionLost), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(to_wc_status(Errc::kTaggedBounds), IBV_WC_LOC_ACCESS_ERR);
  EXPECT_EQ(to_wc_status(Errc::kCrcMismatch), IBV_WC_BAD_RESP_ERR);
  EXPECT_EQ(to_wc_status(Errc::kDdpCatastrophic), IBV_WC_FATAL_ERR);
  EXPECT_EQ(to_wc_status(Errc::kResource), IBV_WC_GENERAL_ERR);
  EXPECT_EQ(to_errno(Errc::kQueueFull), ENOMEM);
  EXPECT_EQ(to_errno(Errc::kInvalidArgument), EINVAL);
  EXPECT_EQ(to_errno(Errc::kNotConnected), ENOTCONN);
  EXPECT_EQ(to_errno(Errc::kConnectionRefused), ECONNREFUSED);
  EXPECT_EQ(to_errno(Errc::kPeerRejected), ECONNREFUSED);
  EXPECT_EQ(to_errno(Errc::kTimeout), ETIMEDOUT);
  EXPECT_EQ(to_errno(Errc::kCrcMismatch), EPROTO);
}

TEST(TranslateAccess, EveryCombination) {
  for (unsigned flags = 0; flags < 512; ++flags) {
    const auto has = [flags](unsigned f) { return (flags & f) != 0; };
    ddp::Access out{};
    const int error = to_access(flags, out);
    if (flags >= 256) {
      EXPECT_EQ(error, EINVAL) << flags;
    } else if (has(IBV_ACCESS_ON_DEMAND)) {
      EXPECT_EQ(error, EOPNOTSUPP) << flags;
    } else if (has(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !has(IBV_ACCESS_LOCAL_WRITE)) {
      EXPECT_EQ(error, EINVAL) << flags;
    } else {
      ASSERT_EQ(error, 0) << flags;
      EXPECT_EQ(includes(out, ddp::Access::kLocalWrite), has(IBV_ACCESS_LOCAL_WRITE));
      EXPECT_EQ(includes(out, ddp::Access::kRemoteWrite), has(IBV_ACCESS_REMOTE_WRITE));
      EXPECT_EQ(includes(out, ddp::Access::kRemoteRead), has(IBV_ACCESS_REMOTE_READ));
      EXPECT_EQ(includes(out, ddp::Access::kRemoteAtomic), has(IBV_ACCESS_REMOTE_ATOMIC));
      EXPECT_FALSE(includes(out, ddp::Access::kStableSource));
    }
  }
  ddp::Access out{};
  EXPECT_EQ(to_access(IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_LOCAL_WRITE, out), 0);
  EXPECT_EQ(out, ddp::Access::kLocalWrite);
}

TEST(TranslateState, EveryState) {
  for (const auto before : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    EXPECT_EQ(to_qp_state(verbs::QueuePairState::kInit, before), before);
  EXPECT_EQ(to_qp_state(verbs::QueuePairState::kRtr, IBV_QPS_INIT), IBV_QPS_RTR);
  EXPECT_EQ(to_qp_state(verbs::QueuePairState::kRts, IBV_QPS_INIT), IBV_QPS_RTS);
  EXPECT_EQ(to_qp_state(verbs::QueuePairState::kSqDrain, IBV_QPS_INIT), IBV_QPS_SQD);
  EXPECT_EQ(to_qp_state(verbs::QueuePairState::kError, IBV_QPS_RTS), IBV_QPS_ERR);
}

TEST(TranslateEvent, EveryType) {
  EXPECT_EQ(to_event_type(verbs::AsyncEventType::kSrqLimitReached), IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(to_event_type(verbs::AsyncEventType::kQpFatal), IBV_EVENT_QP_FATAL);
  EXPECT_EQ(to_event_type(verbs::AsyncEventType::kLastWqeReached), IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(to_event_type(verbs::AsyncEventType::kCqOverflow), IBV_EVENT_CQ_ERR);
}

}  // namespace
}  // namespace iwarp::dropin
