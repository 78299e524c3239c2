#include "iwarp/trace/rpc_pdu.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/trace/rpc_names.h"

namespace iwarp::trace {
namespace {

constexpr std::uint32_t kMountPath[] = {1, 3};  // MNT and UMNT have a path as argument
constexpr std::size_t kMaxPathBytes = 1024;     // MNTPATHLEN
constexpr std::size_t kMaxShownText = 64;

std::string to_text(const rpcrdma::Segment& s) {
  char text[64];
  std::snprintf(text, sizeof text, "0x%" PRIx32 ":%" PRIu32 "@0x%" PRIx64, raw(s.handle), s.length, s.offset);
  return text;
}

std::string to_text(const rpcrdma::WriteChunk& c) {
  std::string out = "[";
  for (const rpcrdma::Segment& s : c.segments) {
    if (out.size() > 1) out += ' ';
    out += to_text(s);
  }
  return out + ']';
}

void add_tag(Pdu& pdu, const CompoundView& view) {
  if (view.tag && !view.tag->empty()) pdu.text("tag", std::string_view(*view.tag).substr(0, kMaxShownText));
}

std::string version_text(const SeenRpc& rpc) {
  std::string out = std::to_string(rpc.version);
  if (rpc.minor_version && !is_callback_program(rpc.program)) out += '.' + std::to_string(*rpc.minor_version);
  return out;
}

// CONFIG_RDMA has no number of its own: whoever reads the trace says which it is.
std::string program_text(const SeenRpc& rpc) {
  return rpc.config ? "CONFIG_RDMA" : program_name(rpc.program);
}

std::string procedure_text(const SeenRpc& rpc) {
  if (rpc.config && rpc.version == rpcrdma::kConfigVersion && rpc.procedure == rpcrdma::kConfigProcedure)
    return "CONF_RDMA";
  if (rpc.config) return rpc.procedure == 0 ? "NULL" : std::to_string(rpc.procedure);
  return procedure_name(rpc.program, rpc.version, rpc.procedure);
}

// Whether arguments or results are those of CONF_RDMA.
bool is_configuration(const SeenRpc& rpc) {
  return rpc.config && rpc.plain && rpc.version == rpcrdma::kConfigVersion &&
         rpc.procedure == rpcrdma::kConfigProcedure;
}

std::string rpc_name(const SeenRpc& rpc, const std::string& what) {
  return program_text(rpc) + ' ' + version_text(rpc) + ' ' + what;
}

void add_path(Pdu& pdu, ConstBytes arguments) {
  ReadCursor in(arguments);
  const auto length = in.be<std::uint32_t>();
  if (!in.ok() || length > kMaxPathBytes) return;
  const ConstBytes bytes = in.take(length);
  if (!in.ok()) return;
  std::string path;
  for (const std::byte b : bytes.first(std::min(bytes.size(), kMaxShownText))) path += static_cast<char>(b);
  pdu.text("path", path);
}

// Results of an accepted Call that was done.
bool add_results(Pdu& pdu, ConstBytes message, std::size_t offset, const DataPlaces& places, const SeenRpc& rpc,
                 CompoundView& view) {
  const StatusKind kind =
      rpc.plain && !rpc.config ? status_kind(rpc.program, rpc.version, rpc.procedure) : StatusKind::kNone;
  if (kind == StatusKind::kNone) return false;
  std::optional<std::uint32_t> status;
  if (is_compound(rpc.program, rpc.version, rpc.procedure)) {
    view = view_compound_reply(message, offset, is_callback_program(rpc.program), places);
    status = view.status;
  } else {
    ReadCursor in(message.subspan(offset));
    const auto word = in.be<std::uint32_t>();
    if (in.ok()) status = word;
  }
  if (!status) return false;
  pdu.word("status", nfs_status_name(kind, *status));
  return *status != 0;
}

// Why a Call was denied, behind MSG_DENIED (RFC 5531 s9).
void add_denial(Pdu& pdu, ConstBytes message) {
  constexpr std::size_t kRejectStat = 12;
  constexpr std::uint32_t kRpcMismatch = 0, kAuthError = 1;
  pdu.word("stat", "DENIED");
  ReadCursor in(message.subspan(std::min(message.size(), kRejectStat)));
  const auto reject = in.be<std::uint32_t>();
  if (!in.ok()) return;
  if (reject == kRpcMismatch) pdu.word("why", "RPC_MISMATCH");
  if (reject != kAuthError) return;
  const auto why = in.be<std::uint32_t>();
  if (in.ok()) pdu.word("why", auth_stat_name(why));
}

}  // namespace

Pdu header_pdu(const rpcrdma::Header& h) {
  Pdu pdu(rpcrdma::name(h.proc));
  pdu.hex("xid", h.xid).number("vers", h.version).number("credits", h.credits);
  if (h.proc == rpcrdma::Proc::kError) {
    const bool versions = h.error.code == rpcrdma::HeaderError::kVers;
    const char* const bad = h.version == rpcrdma::kVersion2 ? "BAD_HEADER" : "ERR_CHUNK";
    pdu.word("error", versions                                             ? "ERR_VERS"
                      : h.error.code == rpcrdma::HeaderError::kInvalOption ? "INVAL_OPTION"
                                                                           : bad);
    if (versions) pdu.number("low", h.error.version_low).number("high", h.error.version_high);
    return pdu;
  }
  if (h.proc == rpcrdma::Proc::kDone) return pdu;
  if (h.proc == rpcrdma::Proc::kOptional) {
    return pdu.number("opttype", h.option.type).number("optinfo", h.option.info.size());
  }
  if (h.proc == rpcrdma::Proc::kMsgp) pdu.number("align", h.padding.align).number("thresh", h.padding.threshold);
  std::string reads = "[", writes = "[";
  for (const rpcrdma::ReadSegment& s : h.read_list) {
    if (reads.size() > 1) reads += ' ';
    reads += std::to_string(s.position) + '/' + to_text(s.target);
  }
  for (const rpcrdma::WriteChunk& c : h.write_list) {
    if (writes.size() > 1) writes += ' ';
    writes += to_text(c);
  }
  pdu.list("reads", reads + ']').list("writes", writes + ']');
  return h.reply_chunk ? pdu.list("reply", to_text(*h.reply_chunk)) : pdu.word("reply", "-");
}

std::optional<Pdu> call_pdu(ConstBytes message, std::uint64_t bytes, const DataPlaces& places,
                            std::uint32_t config_program, SeenRpc& rpc) {
  const auto call = rpcrdma::RpcCall::parse(message);
  if (!call) return std::nullopt;
  rpc.known = true;
  rpc.program = call->program;
  rpc.config = call->program == config_program;
  rpc.version = call->version;
  rpc.procedure = call->procedure;
  rpc.plain = call->body_is_plain();
  rpc.call_bytes = bytes;
  const std::string procedure = procedure_text(rpc);
  std::string what = procedure;
  CompoundView view;
  const bool callback = is_callback_program(call->program);
  if (rpc.plain && !rpc.config && is_compound(call->program, call->version, call->procedure)) {
    view = view_compound_call(message, call->arguments_offset, callback, places);
    rpc.minor_version = view.minor_version;
    if (const auto op = view.main_op(callback)) what = nfs4_op_name(*op, callback);
  }
  rpc.name = rpc_name(rpc, what);
  Pdu pdu("Call");
  pdu.hex("xid", call->xid).word("prog", program_text(rpc)).word("vers", version_text(rpc));
  if (view.minor_version) pdu.list("ops", view.ops_list(callback));
  pdu.word("proc", procedure);
  if (call->program == kMountProgram && rpc.plain &&
      std::find(std::begin(kMountPath), std::end(kMountPath), call->procedure) != std::end(kMountPath)) {
    add_path(pdu, message.subspan(call->arguments_offset));
  }
  const auto config = rpcrdma::ConfigRequest::parse(message.subspan(call->arguments_offset));
  if (is_configuration(rpc) && config) {
    pdu.number("maxcall", config->max_call_bytes).number("maxreply", config->max_reply_bytes);
    pdu.number("maxrdmaread", config->max_rdma_reads);
  }
  add_tag(pdu, view);
  return pdu.word("cred", flavor_name(call->credential.flavor)).number("bytes", bytes);
}

std::optional<ReplyPdu> reply_pdu(ConstBytes message, std::uint64_t bytes, const DataPlaces& places, const SeenRpc* rpc,
                                  const When& when) {
  const auto reply = rpcrdma::RpcReply::parse(message);
  if (!reply) return std::nullopt;
  ReplyPdu out{Pdu("Reply")};
  out.pdu.hex("xid", reply->xid);
  if (rpc != nullptr) {
    if (rpc->sent.frame != 0) out.pdu.number("call_in", rpc->sent.frame);
    out.pdu.milliseconds("latency_ms",
                         std::chrono::duration_cast<std::chrono::microseconds>(when.at - rpc->sent.at).count());
  }
  const bool known = rpc != nullptr && rpc->known;
  CompoundView view;
  if (known && reply->success()) {
    out.error = add_results(out.pdu, message, reply->results_offset, places, *rpc, view);
  }
  // What says most comes first: lines may be cut.
  if (view.count > 0) out.pdu.list("ops", view.ops_list(is_callback_program(rpc->program)));
  if (known) out.pdu.word("proc", procedure_text(*rpc));
  if (reply->accepted) {
    out.pdu.word("stat", accept_stat_name(static_cast<std::uint32_t>(reply->accept_stat)));
  } else {
    add_denial(out.pdu, message);
  }
  out.error = out.error || !reply->success();
  if (known) out.pdu.word("prog", program_text(*rpc)).word("vers", version_text(*rpc));
  if (known && reply->success() && is_configuration(*rpc)) {
    if (const auto config = rpcrdma::ConfigReply::parse(message.subspan(reply->results_offset))) {
      out.pdu.number("maxcall", config->max_call_bytes).number("align", config->align);
      out.pdu.number("maxrdmaread", config->max_rdma_reads);
    }
  }
  add_tag(out.pdu, view);
  out.pdu.number("bytes", bytes);
  return out;
}

}  // namespace iwarp::trace
