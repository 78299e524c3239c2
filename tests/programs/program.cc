#include "tests/programs/program.h"

#include <algorithm>
#include <cstring>

namespace iwarp::programs {
namespace {

using rdmap::SendOp;

std::string text(const Piece& p) {
  return std::to_string(p.region) + "[" + std::to_string(p.offset) + "+" + std::to_string(p.length) + "]";
}

std::string text(const std::vector<Piece>& pieces) {
  if (pieces.empty()) return " nothing";
  std::string out;
  for (const Piece& p : pieces) out += " " + text(p);
  return out;
}

std::string post(const Step& s) {
  std::string out = std::string(" ") + name(s.op);
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  if (s.op != SendOp::kLocalInvalidate && s.op != SendOp::kImmediate) out += text(s.pieces);
  if (s.op == SendOp::kWrite || s.op == SendOp::kWriteImmediate) out += " to peer's " + text(s.remote);
  if (awaits_response(s.op)) out += " from peer's " + text(s.remote);
  if (s.op == SendOp::kSendInvalidate) out += " peer's region " + n(s.region);
  if (s.op == SendOp::kLocalInvalidate) out += " region " + n(s.region);
  if (s.op == SendOp::kImmediate || s.op == SendOp::kWriteImmediate) out += " immediate " + n(s.immediate);
  if (is_atomic(s.op)) out += " data " + n(s.atomic.data) + " mask " + n(s.atomic.mask);
  if (s.op == SendOp::kCmpSwap) out += " compare " + n(s.atomic.compare) + " mask " + n(s.atomic.compare_mask);
  if (!s.signaled) out += " unsignaled";
  if (s.solicited) out += " solicited";
  if (s.fence) out += " fenced";
  if (s.inlined) out += " inline";
  if (s.with_next) out += ", and";
  return out;
}

const char* fpdus(mpa::FpduPolicy policy) {
  return policy == mpa::FpduPolicy::kEmss ? "EMSS" : policy == mpa::FpduPolicy::k16k ? "16k" : "longest";
}

std::string text(const HostSetup& h) {
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  std::string out = "sq " + n(h.sq_depth) + " rq " + n(h.rq_depth);
  if (h.shares) out += " srq " + n(h.srq_depth);
  out += " inline " + n(h.max_inline) + " ird " + n(h.ird) + " ord " + n(h.ord) + " emss " + n(h.emss) + " scratch " +
         n(h.scratch) + " fpdus " + fpdus(h.fpdu) + " addressing " + n(h.addressing) + " rtr ";
  out += std::string(h.rtr_send ? "s" : "") + (h.rtr_write ? "w" : "") + (h.rtr_read ? "r" : "");
  if (h.one_cq) out += " one-cq";
  if (h.eager) out += " eager";
  if (!h.direct_placement) out += " no-direct-placement";
  if (!h.early_wake) out += " no-wake";
  if (h.ask_markers) out += " asks-for-markers";
  if (h.receive_wait) out += " receive-wait";
  return out;
}

}  // namespace

std::uint16_t Setup::ord(std::size_t host) const {
  const std::uint16_t own = hosts[host].ord, admitted = hosts[1 - host].ird;
  // A Responder raises its IRD to the ORD of a Request, but not from 0; its own ORD is held to what the Request says.
  if (relaxed && host == initiator && admitted != 0) return own;
  return std::min(own, admitted);
}

std::uint32_t Step::length() const {
  std::uint32_t sum = 0;
  for (const Piece& p : pieces) sum += p.length;
  return sum;
}

const char* name(Do what) {
  constexpr std::array<const char*, kDos> kNames = {
      "connect", "receive", "post",       "drain", "invalidate", "reregister", "fill",
      "move",    "poll",    "settle",     "time",  "emss",       "arm",        "srq-limit",
      "resize",  "events",  "disconnect", "leave", "abort",      "trespass",   "lose"};
  return kNames[static_cast<std::size_t>(what)];
}

const char* name(SendOp op) {
  constexpr std::array<const char*, kSendOps> kNames = {
      "Send",      "SendInvalidate", "Write",    "Read",   "ReadInvalidate", "LocalInvalidate",
      "Immediate", "WriteImmediate", "FetchAdd", "CmpSwap"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string to_string(const Step& s) {
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  std::string out = "qp" + n(s.qp) + " " + name(s.what);
  switch (s.what) {
    case Do::kReceive:
      return out + text(s.pieces);
    case Do::kPost:
    case Do::kTrespass:
      return out + post(s);
    case Do::kInvalidate:
      return out + " region " + n(s.region);
    case Do::kRereg:
      return out + " region " + n(s.region) + (s.amount < 256 ? " key " + n(s.amount) : "");
    case Do::kFill:
      return out + text(s.pieces) + " seed " + n(s.seed);
    case Do::kMove:
      return out + " out " + n(s.amount) + " in " + n(s.more) + " cut " + n(s.cut) + " seed " + n(s.seed);
    case Do::kPoll:
    case Do::kArm:
    case Do::kResize:
      return out + (s.more != 0 ? " recv " : " send ") + n(s.amount) + (s.solicited ? " solicited" : "");
    case Do::kTime:
    case Do::kEmss:
    case Do::kSrqLimit:
      return out + " " + n(s.amount);
    case Do::kAbort:
      return out + (s.more == 1 ? " sparing" : s.more == 2 ? " by modify" : "");
    case Do::kLose:
      return out + (s.amount == 0 ? " reset" : s.amount == 1 ? " silence" : " fin");
    case Do::kConnect:
    case Do::kDrain:
    case Do::kSettle:
    case Do::kEvents:
    case Do::kDisconnect:
    case Do::kLeave:
      return out;
  }
  return out;
}

std::string to_string(const Program& program) {
  const Setup& s = program.setup;
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  std::string out = "seed " + n(program.seed) + ": " + n(s.pairs) + (s.pairs == 1 ? " pair" : " pairs") +
                    ", initiator host " + n(s.initiator) + ", revision " + n(s.revision) + (s.crc ? "" : " no-crc") +
                    (s.peer_to_peer ? " peer-to-peer" : "") + (s.rfc7306 ? " rfc7306" : "") +
                    (s.relaxed ? " relaxed" : "") + (s.reset_keeps ? " reset-keeps" : "") + ", settle cut " +
                    n(s.settle_cut) + ", regions of " + n(s.region_bytes) + "\n";
  for (std::size_t i = 0; i < kHosts; ++i) out += "  host " + n(i) + ": " + text(s.hosts[i]) + "\n";
  for (const Step& step : program.steps) out += "  " + to_string(step) + "\n";
  return out;
}

std::vector<std::byte> octets(std::uint64_t seed, std::size_t n) {
  std::vector<std::byte> out((n + 7) / 8 * 8);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::size_t i = 0; i < out.size(); i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(out.data() + i, &state, 8);
  }
  out.resize(n);
  return out;
}

}  // namespace iwarp::programs
