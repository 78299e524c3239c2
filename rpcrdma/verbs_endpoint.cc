#include "iwarp/rpcrdma/verbs_endpoint.h"

namespace iwarp::rpcrdma {
namespace {

using ddp::Access;

verbs::Sge to_sge(const LocalSlice& s) {
  return {s.bytes.data(), static_cast<std::uint32_t>(s.bytes.size()), s.lkey};
}

Result<verbs::SgeList> to_sges(std::span<const LocalSlice> from) {
  verbs::SgeList list;
  for (const LocalSlice& s : from) {
    if (!list.add(to_sge(s))) return make_error(Errc::kInvalidArgument, "too many pieces for one work request");
  }
  return list;
}

}  // namespace

Result<void> VerbsEndpoint::flush() {
  if (collected_.empty()) return {};
  auto posted = qp_->post_send(std::span<const verbs::SendWr>{collected_});
  collected_.clear();
  return posted;
}

Completion VerbsEndpoint::translate(const verbs::Completion& c) {
  Completion out;
  out.id = c.wr_id;
  switch (c.op) {
    case verbs::WcOp::kRecv:
      out.op = OpKind::kRecv;
      break;
    case verbs::WcOp::kSend:
      out.op = OpKind::kSend;
      break;
    case verbs::WcOp::kWrite:
      out.op = OpKind::kWrite;
      break;
    case verbs::WcOp::kRead:
    case verbs::WcOp::kFetchAdd:  // never posted here
    case verbs::WcOp::kCmpSwap:
    case verbs::WcOp::kLocalInvalidate:
    case verbs::WcOp::kDrain:
      out.op = OpKind::kRead;
      break;
  }
  out.status = c.status == Errc::kOk        ? OpStatus::kOk
               : c.status == Errc::kFlushed ? OpStatus::kFlushed
                                            : OpStatus::kFailed;
  out.byte_len = c.byte_len;
  if (c.invalidated) out.invalidated = c.invalidated_stag;  // req: RFC8797-3.2-1
  return out;
}

Result<void> VerbsEndpoint::post_recv(std::uint64_t id, LocalSlice into) {
  return qp_->post_recv({.wr_id = id, .sges = to_sge(into)});
}

Result<void> VerbsEndpoint::post_send(std::uint64_t id, std::span<const LocalSlice> from,
                                      std::optional<Stag> invalidate) {
  const auto sges = to_sges(from);
  if (!sges) return sges.error();
  verbs::SendWr wr{.wr_id = id, .op = verbs::SendOp::kSend, .sges = *sges};
  if (invalidate) {
    wr.op = verbs::SendOp::kSendInvalidate;
    wr.remote_stag = *invalidate;  // req: RFC8797-3.2-1
  }
  collected_.push_back(wr);
  return {};
}

Result<void> VerbsEndpoint::post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                                       std::uint64_t offset) {
  const auto sges = to_sges(from);
  if (!sges) return sges.error();
  collected_.push_back(
      {.wr_id = id, .op = verbs::SendOp::kWrite, .sges = *sges, .remote_stag = handle, .remote_to = offset});
  return {};
}

Result<void> VerbsEndpoint::post_read(std::uint64_t id, LocalSlice into, Stag handle, std::uint64_t offset) {
  collected_.push_back(
      {.wr_id = id, .op = verbs::SendOp::kRead, .sges = to_sge(into), .remote_stag = handle, .remote_to = offset});
  return {};
}

Result<Stag> VerbsEndpoint::keep(Result<verbs::MemoryRegion> region) {
  if (!region) return region.error();
  const Stag stag = region->stag();
  regions_.insert_or_assign(raw(stag), std::move(*region));
  return stag;
}

Result<ExposedMemory> VerbsEndpoint::register_memory(MutBytes memory, RemoteAccess access, bool remote_invalidation) {
  verbs::MemoryRegion::Options o;
  // req: RFC5042-6.3.5-1
  o.access = access == RemoteAccess::kRead ? Access::kRemoteRead | Access::kStableSource
                                           : Access::kRemoteWrite | Access::kLocalWrite;
  if (remote_invalidation) o.access = o.access | Access::kRemoteInvalidate;
  o.base_to = 0;  // tells the peer no addresses
  // req: RFC5042-6.1.1-4 RFC5042-6.3.6-1
  o.stream = qp_->stream();  // req: RFC8166-8.1-1 RFC8166-8.1.1-1
  const auto stag = keep(verbs::MemoryRegion::register_memory(qp_->pd(), memory, o));
  if (!stag) return stag.error();
  return ExposedMemory{*stag, 0};
}

Result<void> VerbsEndpoint::invalidate(Stag handle) {
  regions_.erase(raw(handle));  // deregistration is the fence
  return {};
}

Result<Stag> VerbsEndpoint::register_local(MutBytes memory) {
  // req: RFC5042-A-1
  return keep(verbs::MemoryRegion::register_memory(
      qp_->pd(), memory, {.access = Access::kLocalWrite, .base_to = 0, .stream = qp_->stream()}));
}

}  // namespace iwarp::rpcrdma
