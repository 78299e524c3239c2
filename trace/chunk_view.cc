#include "iwarp/trace/chunk_view.h"

#include <algorithm>

namespace iwarp::trace {
namespace {

bool holds(const rpcrdma::Segment& s, Stag handle, std::uint64_t offset) {
  return s.handle == handle && offset >= s.offset && offset - s.offset < s.length;
}

}  // namespace

void ChunkView::extend(std::vector<std::byte>& head, std::uint64_t at, ConstBytes bytes) {
  if (at > head.size() || head.size() - at >= bytes.size() || head.size() >= kMaxHeadBytes) return;
  const ConstBytes news = bytes.subspan(static_cast<std::size_t>(head.size() - at));
  const ConstBytes keep = news.first(std::min(news.size(), kMaxHeadBytes - head.size()));
  head_bytes_ -= head.capacity();
  head.insert(head.end(), keep.begin(), keep.end());
  head_bytes_ += head.capacity();
}

void ChunkView::add(const rpcrdma::Header& h, const std::shared_ptr<SeenRpc>& rpc) {
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.rpc->xid == rpc->xid && e.rpc->caller == rpc->caller;
  });
  if (same != entries_.end()) remove(*std::shared_ptr<SeenRpc>(same->rpc));
  if (!h.has_chunks()) return;
  Entry e;
  e.rpc = rpc;
  e.owner = rpc->caller;
  std::uint64_t call_bytes = 0;
  for (const rpcrdma::ReadSegment& s : h.read_list) {
    const bool of_call = s.position == 0;
    e.sources.push_back({s.target, of_call ? call_bytes : 0, of_call ? Role::kCall : Role::kData});
    if (of_call) call_bytes += s.target.length;
  }
  e.call_bytes = call_bytes;
  for (const rpcrdma::WriteChunk& c : h.write_list) {
    for (const rpcrdma::Segment& s : c.segments) e.targets.push_back({s, 0, Role::kData});
  }
  std::uint64_t reply_offset = 0;
  if (h.reply_chunk) {
    for (const rpcrdma::Segment& s : h.reply_chunk->segments) {
      e.targets.push_back({s, reply_offset, Role::kReply});
      reply_offset += s.length;
    }
  }
  keep(std::move(e));
}

void ChunkView::add_reply(const rpcrdma::Header& h, const std::shared_ptr<SeenRpc>& rpc) {
  remove(*rpc);
  Entry e;
  e.rpc = rpc;
  e.owner = opposite(rpc->caller);
  for (const rpcrdma::ReadSegment& s : h.read_list) {
    const bool of_reply = s.position == 0;
    e.sources.push_back({s.target, of_reply ? e.reply_bytes : 0, of_reply ? Role::kReply : Role::kData});
    if (of_reply) e.reply_bytes += s.target.length;
  }
  keep(std::move(e));
}

void ChunkView::keep(Entry e) {
  if (e.targets.size() > kMaxSegments - e.sources.size()) e.targets.resize(kMaxSegments - e.sources.size());
  const std::size_t news = e.sources.size() + e.targets.size();
  while (!entries_.empty() && (entries_.size() >= kMaxRpcs || segments_ + news > kMaxSegments)) {
    remove(*std::shared_ptr<SeenRpc>(entries_.front().rpc));
  }
  segments_ += news;
  entries_.push_back(std::move(e));
}

void ChunkView::remove(const SeenRpc& rpc) {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.rpc.get() == &rpc; });
  if (it == entries_.end()) return;
  segments_ -= it->sources.size() + it->targets.size();
  head_bytes_ -= it->call_head.capacity() + it->reply_head.capacity();
  entries_.erase(it);
}

void ChunkView::clear() {
  entries_ = {};
  reads_ = {};
  segments_ = head_bytes_ = 0;
}

std::size_t ChunkView::memory() const {
  return head_bytes_ + segments_ * sizeof(Place) + entries_.size() * sizeof(Entry) +
         (reads_[0].size() + reads_[1].size()) * sizeof(Read);
}

const ChunkView::Entry* ChunkView::find(const SeenRpc& rpc) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.rpc.get() == &rpc; });
  return it == entries_.end() ? nullptr : &*it;
}

ChunkView::Found ChunkView::find_place(Direction owner, bool source, Stag handle, std::uint64_t offset) {
  // The newest first: a handle that is in use again belongs to the later RPC.
  for (auto e = entries_.rbegin(); e != entries_.rend(); ++e) {
    if ((source ? e->owner : e->rpc->caller) != owner) continue;
    for (const Place& p : source ? e->sources : e->targets) {
      if (holds(p.segment, handle, offset)) return {&*e, p.role, p.chunk_offset + (offset - p.segment.offset)};
    }
  }
  return {};
}

std::shared_ptr<SeenRpc> ChunkView::on_write(Direction from, const Message& m) {
  const Found f = find_place(opposite(from), false, m.stag, m.to);
  if (f.entry == nullptr || m.length == 0) return nullptr;
  f.entry->rpc->write_bytes += m.length;
  if (f.role == Role::kReply) extend(f.entry->reply_head, f.chunk_offset, m.head);
  return f.entry->rpc;
}

std::shared_ptr<SeenRpc> ChunkView::on_read_request(Direction from, const rdmap::ReadRequest& r) {
  const Found f = find_place(opposite(from), true, r.source_stag, r.source_to);
  std::deque<Read>& reads = reads_[index(from)];
  if (reads.size() >= kMaxReads) reads.pop_front();
  reads.push_back({r, f.entry == nullptr ? nullptr : f.entry->rpc, f.role, f.chunk_offset});
  return reads.back().rpc;
}

std::shared_ptr<SeenRpc> ChunkView::on_read_response(Direction from, const Message& m) {
  std::deque<Read>& reads = reads_[index(opposite(from))];
  const auto it = std::find_if(reads.begin(), reads.end(), [&](const Read& r) {
    return r.request.sink_stag == m.stag && m.to >= r.request.sink_to && m.to - r.request.sink_to < r.request.size;
  });
  if (it == reads.end()) return nullptr;
  const Read read = *it;
  reads.erase(reads.begin(), it + 1);  // they are answered in order (RFC 5040 s5.5)
  if (read.rpc == nullptr) return nullptr;
  read.rpc->read_bytes += m.length;
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.rpc == read.rpc; });
  if (entry != entries_.end() && read.role != Role::kData) {
    extend(read.role == Role::kCall ? entry->call_head : entry->reply_head,
           read.chunk_offset + (m.to - read.request.sink_to), m.head);
  }
  return read.rpc;
}

ConstBytes ChunkView::call_head(const SeenRpc& rpc) const {
  const Entry* e = find(rpc);
  return e == nullptr ? ConstBytes{} : ConstBytes(e->call_head);
}

ConstBytes ChunkView::reply_head(const SeenRpc& rpc) const {
  const Entry* e = find(rpc);
  return e == nullptr ? ConstBytes{} : ConstBytes(e->reply_head);
}

std::uint64_t ChunkView::call_bytes(const SeenRpc& rpc) const {
  const Entry* e = find(rpc);
  return e == nullptr ? 0 : e->call_bytes;
}

std::uint64_t ChunkView::reply_bytes(const SeenRpc& rpc) const {
  const Entry* e = find(rpc);
  return e == nullptr ? 0 : e->reply_bytes;
}

bool ChunkView::call_is_read(const SeenRpc& rpc) const {
  const Entry* e = find(rpc);
  return e != nullptr && e->call_head.size() >= std::min<std::uint64_t>(e->call_bytes, kMaxHeadBytes);
}

}  // namespace iwarp::trace
