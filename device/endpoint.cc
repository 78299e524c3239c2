#include "iwarp/device/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "iwarp/device/failure.h"

namespace iwarp::device {

using rpcrdma::Completion;
using rpcrdma::LocalSlice;
using rpcrdma::OpKind;
using rpcrdma::OpStatus;

namespace {

constexpr std::size_t kBatch = 32;

// Work request ids: a sequence number of the queue, and which of the two queues it is.
constexpr std::uint64_t wr_id(std::uint64_t sequence, bool receive) {
  return sequence << 1 | (receive ? 1 : 0);
}

ibv_sge to_sge(const LocalSlice& s) {
  return {reinterpret_cast<std::uint64_t>(s.bytes.data()), static_cast<std::uint32_t>(s.bytes.size()), raw(s.lkey)};
}

Errc code_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
      return Errc::kUntaggedTooLong;
    case IBV_WC_LOC_PROT_ERR:
      return Errc::kLocalProtection;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return Errc::kRemoteTerminate;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return Errc::kConnectionLost;
    default:
      return Errc::kSystem;
  }
}

}  // namespace

Endpoint::Endpoint(std::shared_ptr<Resources> resources, std::size_t ord)
    : resources_(std::move(resources)), verbs_(resources_->verbs()) {
  const QueueDepths& depths = resources_->depths();
  limits_ = {.max_sge = std::min(depths.sges, kMostSges),
             .max_outstanding_reads = ord,
             .send_queue_depth = depths.sends,
             .receive_queue_depth = depths.receives};
}

Endpoint::~Endpoint() {
  close();
  for (const auto* regions : {&local_, &exposed_}) {
    for (const auto& [key, region] : *regions) (void)verbs_.dereg_mr(region);
  }
}

void Endpoint::fail(const Error& why) {
  if (!failure_) failure_ = why;
}

Result<Endpoint::Collected*> Endpoint::collect(Posted posted, ibv_wr_opcode opcode, std::span<const LocalSlice> from) {
  if (closed_) return make_error(Errc::kNotConnected, "the connection has ended");
  if (from.size() > limits_.max_sge) return make_error(Errc::kInvalidArgument, "too many pieces for one work request");
  if (unfinished_sends() >= limits_.send_queue_depth) return make_error(Errc::kQueueFull, "the send queue is full");
  Collected& c = collected_.emplace_back();
  for (std::size_t i = 0; i < from.size(); ++i) {
    c.sges[i] = to_sge(from[i]);
    posted.bytes += from[i].bytes.size();
  }
  c.posted = posted;
  c.wr.opcode = opcode;
  c.wr.num_sge = static_cast<int>(from.size());
  c.wr.send_flags = IBV_SEND_SIGNALED;
  return &c;
}

Result<void> Endpoint::flush() {
  if (collected_.empty()) return {};
  if (closed_) return make_error(Errc::kNotConnected, "the connection has ended");
  for (std::size_t i = 0; i < collected_.size(); ++i) {
    Collected& c = collected_[i];
    c.wr.wr_id = wr_id(next_send_ + sends_.size() + i, false);
    c.wr.sg_list = c.sges.data();
    c.wr.next = i + 1 < collected_.size() ? &collected_[i + 1].wr : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  const int failed =
      resources_->qp() == nullptr ? ENOTCONN : verbs_.post_send(resources_->qp(), &collected_.front().wr, &bad);
  bool taken = true;
  for (Collected& c : collected_) {
    if (failed != 0 && (&c.wr == bad || bad == nullptr)) taken = false;  // it and those behind it
    if (taken) {
      sends_.push_back(c.posted);
    } else {
      free_sink(c.posted);
      dropped_.push_back(c.posted);
    }
  }
  collected_.clear();
  if (failed != 0) return failure_of(failed, "the device takes no request");
  return {};
}

Result<void> Endpoint::post_recv(std::uint64_t id, LocalSlice into) {
  if (closed_ || resources_->qp() == nullptr) return make_error(Errc::kNotConnected, "the connection has ended");
  ibv_sge sge = to_sge(into);
  ibv_recv_wr wr{};
  wr.wr_id = wr_id(next_receive_ + receives_.size(), true);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int failed = verbs_.post_recv(resources_->qp(), &wr, &bad); failed != 0)
    return failure_of(failed, "the device takes no Receive");
  receives_.push_back({id, OpKind::kRecv, into.bytes.size(), nullptr});
  return {};
}

Result<void> Endpoint::post_send(std::uint64_t id, std::span<const LocalSlice> from, std::optional<Stag> invalidate) {
  // The peer ends the exposure itself where the device cannot ask it to.
  const bool with_invalidate = invalidate && resources_->device().sends_with_invalidate();
  const auto c = collect({.id = id, .op = OpKind::kSend}, with_invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND, from);
  if (!c) return c.error();
  if (with_invalidate) {
    (*c)->wr.invalidate_rkey = raw(*invalidate);  // req: RFC8797-3.2-1
    (*c)->wr.wr.rdma.rkey = raw(*invalidate);     // where libsiw looks for it
  }
  return {};
}

Result<void> Endpoint::post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                                  std::uint64_t offset) {
  const auto c = collect({.id = id, .op = OpKind::kWrite}, IBV_WR_RDMA_WRITE, from);
  if (!c) return c.error();
  (*c)->wr.wr.rdma.rkey = raw(handle);
  (*c)->wr.wr.rdma.remote_addr = offset;
  return {};
}

Result<void> Endpoint::post_read(std::uint64_t id, LocalSlice into, Stag handle, std::uint64_t offset) {
  Posted posted{.id = id, .op = OpKind::kRead};
  if (resources_->device().iwarp()) {
    // The answer names the sink by an STag and comes as an RDMA Write does: RNICs want that right for the peer. It has
    // it for this Read only, not in the memory of others. siw asks for no such right: there it goes without, when no
    // more memory may be locked.
    if (const auto sink = register_region(into.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) {
      posted.sink = *sink;
      into.lkey = Stag{posted.sink->lkey};
    }
  }
  const auto c = collect(posted, IBV_WR_RDMA_READ, {&into, 1});
  if (!c) {
    free_sink(posted);
    return c.error();
  }
  (*c)->wr.wr.rdma.rkey = raw(handle);
  (*c)->wr.wr.rdma.remote_addr = offset;
  return {};
}

std::size_t Endpoint::poll(std::span<Completion> to) {
  if (!closed_ && ready_.size() < to.size()) poll_queue();
  const std::size_t n = std::min(to.size(), ready_.size());
  std::copy_n(ready_.begin(), n, to.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

std::size_t Endpoint::poll_queue() {
  std::array<ibv_wc, kBatch> batch;
  const int n = verbs_.poll_cq(resources_->cq(), static_cast<int>(batch.size()), batch.data());
  if (n < 0 || n > static_cast<int>(batch.size())) {
    fail(make_error(Errc::kSystem, "the device's completion queue cannot be read"));
    return 0;
  }
  for (const ibv_wc& wc : std::span(batch).first(static_cast<std::size_t>(n))) take(wc);
  return static_cast<std::size_t>(n);
}

void Endpoint::take(const ibv_wc& wc) {
  const bool receive = (wc.wr_id & 1) != 0;
  std::deque<Posted>& queue = receive ? receives_ : sends_;
  std::uint64_t& next = receive ? next_receive_ : next_send_;
  const std::uint64_t index = (wc.wr_id >> 1) - next;
  if (index >= queue.size() || queue[index].done)
    return fail(make_error(Errc::kSystem, "the device completes what was not posted, or has completed"));
  Posted& posted = queue[index];
  free_sink(posted);
  posted.done = translate(wc, posted);
  while (!queue.empty() && queue.front().done) {
    ready_.push_back(*queue.front().done);
    queue.pop_front();
    ++next;
  }
}

Completion Endpoint::translate(const ibv_wc& wc, const Posted& posted) {
  const bool receive = posted.op == OpKind::kRecv;
  Completion out{.id = posted.id, .op = posted.op};
  if (wc.status == IBV_WC_SUCCESS) {
    if (receive && wc.byte_len > posted.bytes) {
      fail(make_error(Errc::kSystem, "the device has received more than the Receive has room for"));
      out.status = OpStatus::kFailed;
      return out;
    }
    out.byte_len = receive ? wc.byte_len : 0;
    if (receive && (wc.wc_flags & IBV_WC_WITH_INV) != 0) out.invalidated = Stag{wc.invalidated_rkey};
    count(posted, wc.byte_len);
    return out;
  }
  if (wc.status == IBV_WC_WR_FLUSH_ERR) {
    flushed_ = true;
    sends_flushed_ |= !receive;
    out.status = OpStatus::kFlushed;
    return out;
  }
  fail(make_error(code_of(wc.status), verbs_.wc_status_str(wc.status)));
  out.status = OpStatus::kFailed;
  return out;
}

void Endpoint::count(const Posted& done, std::uint32_t byte_len) {
  switch (done.op) {
    case OpKind::kRecv:
      ++traffic_.receives;
      traffic_.receive_bytes += byte_len;
      break;
    case OpKind::kSend:
      ++traffic_.sends;
      traffic_.send_bytes += done.bytes;
      break;
    case OpKind::kWrite:
      ++traffic_.writes;
      traffic_.write_bytes += done.bytes;
      break;
    case OpKind::kRead:
      ++traffic_.reads;
      traffic_.read_bytes += done.bytes;
      break;
  }
}

void Endpoint::close() {
  if (closed_) return;
  // A hostile device may complete without end: no more than was posted.
  for (std::size_t taken = 0; taken <= limits_.send_queue_depth + limits_.receive_queue_depth;) {
    const std::size_t n = poll_queue();
    if (n == 0) break;
    taken += n;
  }
  closed_ = true;
  resources_->destroy_queue_pair();
  for (Posted& p : sends_) free_sink(p);
  for (Collected& c : collected_) {
    free_sink(c.posted);
    dropped_.push_back(c.posted);
  }
  collected_.clear();
}

void Endpoint::flush_rest() {
  const auto flush = [this](auto& queue) {
    for (const Posted& p : queue)
      ready_.push_back(p.done ? *p.done : Completion{.id = p.id, .op = p.op, .status = OpStatus::kFlushed});
    queue.clear();
  };
  flush(sends_);
  flush(dropped_);
  flush(receives_);
}

void Endpoint::free_sink(Posted& of) {
  if (ibv_mr* const sink = std::exchange(of.sink, nullptr)) (void)verbs_.dereg_mr(sink);
}

Result<ibv_mr*> Endpoint::register_region(MutBytes memory, int access) {
  ibv_mr* const region = verbs_.reg_mr(resources_->pd(), memory.data(), memory.size(), access);
  if (region == nullptr) return failure_of(errno, "the device registers no memory");
  return region;
}

Result<rpcrdma::ExposedMemory> Endpoint::register_memory(MutBytes memory, rpcrdma::RemoteAccess access,
                                                         bool /*remote_invalidation*/) {
  const auto region = register_region(memory, access == rpcrdma::RemoteAccess::kRead
                                                  ? IBV_ACCESS_REMOTE_READ
                                                  : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!region) return region.error();
  exposed_.insert_or_assign((*region)->rkey, *region);
  return rpcrdma::ExposedMemory{Stag{(*region)->rkey}, reinterpret_cast<std::uint64_t>(memory.data())};
}

Result<void> Endpoint::invalidate(Stag handle) {
  const auto region = exposed_.find(raw(handle));
  if (region == exposed_.end()) return {};
  // Deregistration is the fence: it returns when the device has let go.
  if (const int failed = verbs_.dereg_mr(region->second); failed != 0)
    return failure_of(failed, "the device does not let go of exposed memory");
  exposed_.erase(region);
  return {};
}

Result<Stag> Endpoint::register_local(MutBytes memory) {
  // req: RFC5042-A-1
  const auto region = register_region(memory, IBV_ACCESS_LOCAL_WRITE);
  if (!region) return region.error();
  local_.insert_or_assign((*region)->lkey, *region);
  return Stag{(*region)->lkey};
}

void Endpoint::deregister_local(Stag lkey) {
  if (auto region = local_.extract(raw(lkey))) (void)verbs_.dereg_mr(region.mapped());
}

}  // namespace iwarp::device
