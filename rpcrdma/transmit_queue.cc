#include "iwarp/rpcrdma/transmit_queue.h"

#include <cassert>
#include <cstring>

#include "iwarp/rpcrdma/receive_ring.h"

namespace iwarp::rpcrdma {

TransmitQueue::TransmitQueue(Endpoint& endpoint, BufferPool& pool)
    : endpoint_(endpoint), pool_(pool), limits_(endpoint.limits()) {
  slices_.reserve(limits_.max_sge);
}

void TransmitQueue::send(OutgoingMessage message) {
  if (stopped_) return;
  ++taken_;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(jobs_.size()));
    jobs_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  jobs_[slot].message = std::move(message);
  backlog_.push_back(slot);
}

Result<void> TransmitQueue::pump() {
  while (!backlog_.empty()) {
    const Result<bool> complete = post_more(backlog_.front());
    if (!complete) return complete.error();
    if (!*complete) break;
    backlog_.pop_front();
  }
  return {};
}

Result<bool> TransmitQueue::post_more(std::uint32_t slot) {
  Job& job = jobs_[slot];
  const RemoteWrites& writes = job.message.writes;
  for (; job.next_write < writes.size(); ++job.next_write) {  // req: RFC8166-3.5.2-3
    if (used_ >= limits_.send_queue_depth) return false;
    const RemoteWrite& w = writes[job.next_write];
    const LocalSlice from = job.message.payload.slice(w.from.offset, w.from.length);
    if (auto posted = endpoint_.post_write(work_id(WorkOwner::kTransmit, slot), {&from, 1}, w.handle, w.offset);
        !posted) {
      return posted.error();
    }
    ++used_;
    ++unsent_;
    ++job.uncompleted;
  }
  if (used_ >= limits_.send_queue_depth || !encode_header(job)) return false;
  if (auto posted = post_send(job, slot); !posted) return posted.error();
  return true;
}

bool TransmitQueue::encode_header(Job& job) {
  if (job.header) return true;
  const OutgoingMessage& m = job.message;
  const std::size_t header_bytes = m.header.encoded_size();
  std::size_t copied = 0;
  if (1 + m.in_line.size() > limits_.max_sge) {  // more pieces than one Send gathers: they go behind the header
    for (const ByteRange& r : m.in_line) copied += r.length;
  }
  auto buffer = pool_.acquire(header_bytes + copied, BufferPool::Purpose::kControl);
  if (!buffer) return false;
  std::size_t at = m.header.write_to(buffer->bytes());
  assert(at == header_bytes);
  if (copied > 0) {
    for (const ByteRange& r : m.in_line) {
      std::memcpy(buffer->bytes().data() + at, m.payload.bytes().data() + r.offset, r.length);
      at += r.length;
    }
    job.message.in_line.clear();
  }
  job.header = std::move(*buffer);
  return true;
}

Result<void> TransmitQueue::post_send(Job& job, std::uint32_t slot) {
  slices_.clear();
  // req: D2005-3-1 D2005-3.1-1 D2005-3.4-15
  slices_.push_back(job.header.slice());  // req: RFC8166-3.2-1 RFC8166-3.2-2
  for (const ByteRange& r : job.message.in_line) slices_.push_back(job.message.payload.slice(r.offset, r.length));
  // req: D2005-3.8-2 D2005-2-3
  // Behind the Writes in the same queue: their data is placed first. req: RFC8166-2.3.2-3 RFC8166-3.4.6-6
  auto posted = endpoint_.post_send(work_id(WorkOwner::kTransmit, slot), slices_, job.message.invalidate);
  if (!posted) return posted;
  ++used_;
  ++unsent_;
  ++job.uncompleted;
  job.all_posted = true;
  return posted;
}

void TransmitQueue::on_completion(const Completion& done) {
  const std::size_t slot = work_slot(done.id);
  if (slot >= jobs_.size() || jobs_[slot].uncompleted == 0) return;
  Job& job = jobs_[slot];
  --used_;
  --unsent_;
  ++sent_;
  if (--job.uncompleted > 0 || !job.all_posted) return;
  ++finished_;
  release(static_cast<std::uint32_t>(slot));
}

bool TransmitQueue::reserve() {
  if (stopped_ || used_ >= limits_.send_queue_depth) return false;
  ++used_;
  return true;
}

void TransmitQueue::stop() {
  stopped_ = true;
  for (const std::uint32_t slot : backlog_) {
    jobs_[slot].all_posted = true;
    if (jobs_[slot].uncompleted == 0) release(slot);
  }
  backlog_.clear();
}

void TransmitQueue::release(std::uint32_t slot) {
  jobs_[slot] = Job{};
  free_.push_back(slot);
}

}  // namespace iwarp::rpcrdma
