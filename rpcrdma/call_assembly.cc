#include "iwarp/rpcrdma/call_assembly.h"

#include <algorithm>
#include <cstring>

namespace iwarp::rpcrdma {

CallAssembler::CallAssembler(Endpoint& endpoint, BufferPool& pool, TransmitQueue& transmit, BufferPool::Purpose purpose)
    : endpoint_(endpoint),
      pool_(pool),
      transmit_(transmit),
      purpose_(purpose),
      max_reads_(endpoint.limits().max_outstanding_reads) {}

void CallAssembler::add(std::uint32_t owner, CallPlan plan, Buffer received, std::size_t payload_offset) {
  if (stopped_) return;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(jobs_.size()));
    jobs_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  Job& job = jobs_[slot];
  job.owner = owner;
  job.plan = std::move(plan);
  job.received = std::move(received);
  job.payload_offset = payload_offset;
  waiting_.push_back(slot);
}

bool CallAssembler::start(Job& job) {
  auto message = pool_.acquire(job.plan.total_bytes, purpose_, kHeadroomBytes);
  if (!message) return false;
  const MutBytes into = message->bytes();
  const ConstBytes payload = job.received.bytes().subspan(job.payload_offset);
  for (const CallPlan::Copy& c : job.plan.copies) {
    std::memcpy(into.data() + c.into, payload.data() + c.from, c.length);
  }
  for (const ByteRange& z : job.plan.zeros) {
    std::fill_n(into.begin() + static_cast<std::ptrdiff_t>(z.offset), z.length, std::byte{0});
  }
  job.message = std::move(*message);
  job.received.reset();
  return true;
}

Result<void> CallAssembler::pump() {
  if (stopped_) return {};
  while (!waiting_.empty()) {
    const std::uint32_t slot = waiting_.front();
    if (!start(jobs_[slot])) break;  // in arrival order: a large Call is not starved by small ones
    waiting_.pop_front();
    (jobs_[slot].plan.reads.empty() ? finished_ : reading_).push_back(slot);
  }
  while (!reading_.empty() && reads_ < max_reads_ && transmit_.reserve()) {  // req: RFC8166-3.3.1-10
    const std::uint32_t slot = reading_.front();
    Job& job = jobs_[slot];
    const RemoteRead& r = job.plan.reads[job.next_read];
    if (auto posted = endpoint_.post_read(work_id(WorkOwner::kAssembly, slot), job.message.slice(r.into, r.length),
                                          r.handle, r.offset);
        !posted) {
      transmit_.unreserve();
      return posted;
    }
    ++reads_;
    ++job.uncompleted;
    if (++job.next_read == job.plan.reads.size()) reading_.pop_front();
  }
  return {};
}

void CallAssembler::on_completion(const Completion& done) {
  const auto slot = static_cast<std::uint32_t>(work_slot(done.id));
  if (slot >= jobs_.size() || jobs_[slot].uncompleted == 0) return;
  Job& job = jobs_[slot];
  transmit_.unreserve();
  --reads_;
  ++reads_answered_;
  --job.uncompleted;
  if (stopped_) {
    if (job.uncompleted == 0) release(slot);
    // req: RFC8166-2.3.2-4 RFC8166-3.4.5.1-2
  } else if (job.uncompleted == 0 && job.next_read == job.plan.reads.size()) {
    finished_.push_back(slot);
  }
}

std::optional<CallAssembler::Done> CallAssembler::take_finished() {
  if (finished_.empty()) return std::nullopt;
  const std::uint32_t slot = finished_.front();
  finished_.pop_front();
  Job& job = jobs_[slot];
  Done out{job.owner, std::move(job.message), std::move(job.plan)};
  release(slot);
  return out;
}

void CallAssembler::stop() {
  stopped_ = true;
  waiting_.clear();
  reading_.clear();
  finished_.clear();
  free_.clear();
  for (std::uint32_t slot = 0; slot < jobs_.size(); ++slot) {
    if (jobs_[slot].uncompleted == 0) release(slot);
  }
}

void CallAssembler::release(std::uint32_t slot) {
  jobs_[slot] = Job{};
  free_.push_back(slot);
}

}  // namespace iwarp::rpcrdma
