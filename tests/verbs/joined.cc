#include "tests/verbs/joined.h"

#include <algorithm>

namespace iwarp::test {

using verbs::QueuePair;

verbs::MemoryRegion region(const verbs::ProtectionDomain& pd, MutBytes memory, ddp::Access access,
                           ddp::StreamId stream) {
  verbs::MemoryRegion::Options o;
  o.access = access;
  o.stream = stream;
  auto made = verbs::MemoryRegion::register_memory(pd, memory, o);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

verbs::Sge sge(const verbs::MemoryRegion& of, std::size_t offset, std::size_t length) {
  return {of.memory().data() + offset, static_cast<std::uint32_t>(length), of.stag()};
}

std::vector<verbs::Completion> drain(verbs::CompletionQueue& cq) {
  std::vector<verbs::Completion> out;
  for (verbs::Completion c; cq.poll({&c, 1}) == 1;) out.push_back(c);
  return out;
}

std::shared_ptr<QueuePair> make_qp(const verbs::ProtectionDomain& pd, verbs::CompletionQueue& cq, std::size_t depth) {
  QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq;
  o.stream.sq_depth = o.stream.rq_depth = depth;
  return std::make_shared<QueuePair>(pd, o);
}

stream::Connection& core_of(QueuePair& qp) {
  return dynamic_cast<CountingDriver&>(*qp.driver()).core;
}

Joined::Joined(std::shared_ptr<QueuePair> i, std::shared_ptr<QueuePair> r)
    : initiator(std::move(i)),
      responder(std::move(r)),
      initiator_driver(*initiator),
      responder_driver(*responder),
      scratch_(64 * 1024) {
  mpa::Policy policy;
  mpa::Initiator mpa_initiator(policy, {}, now_);
  mpa::Responder mpa_responder(policy, now_);
  const Bytes request(mpa_initiator.tx_bytes().begin(), mpa_initiator.tx_bytes().end());
  mpa_initiator.tx_commit(request.size());
  EXPECT_EQ(mpa_responder.rx(request, now_), request.size());
  EXPECT_TRUE(mpa_responder.poll_event().has_value());
  EXPECT_TRUE(mpa_responder.accept(8, 8, {}).ok());
  {
    const auto lock = initiator->lock();
    initiator->set_driver(&initiator_driver, &initiator_driver.core);
    initiator_driver.core.start(std::move(mpa_initiator), now_);
  }
  {
    const auto lock = responder->lock();
    responder->set_driver(&responder_driver, &responder_driver.core);
    responder_driver.core.start(std::move(mpa_responder), now_);
  }
  pump();
  EXPECT_EQ(initiator->endpoint().phase(), stream::Phase::kFull);
  EXPECT_EQ(responder->endpoint().phase(), stream::Phase::kFull);
}

Joined::~Joined() {
  for (QueuePair* qp : {initiator.get(), responder.get()}) {
    const auto lock = qp->lock();
    qp->set_driver(nullptr);
  }
}

bool Joined::move(const End& from, const End& to, Bytes& between) {
  std::size_t sent = 0;
  {
    const auto lock = from.qp.lock();
    for (const ConstBytes bytes : from.core.tx_buffers(now_)) {
      between.insert(between.end(), bytes.begin(), bytes.end());
      sent += bytes.size();
    }
    if (sent > 0) from.core.tx_commit(sent, now_);
    from.qp.drain_completions();
  }
  const auto lock = to.qp.lock();
  std::size_t used = 0;
  while (used < between.size()) {
    const auto buffers = to.core.rx_buffers(scratch_);
    if (buffers.empty()) break;
    std::size_t n = 0;
    for (const MutBytes buffer : buffers) {
      const std::size_t part = std::min(buffer.size(), between.size() - used - n);
      std::copy_n(between.begin() + static_cast<std::ptrdiff_t>(used + n), part, buffer.begin());
      n += part;
    }
    to.core.rx_commit(n, now_);
    used += n;
  }
  between.erase(between.begin(), between.begin() + static_cast<std::ptrdiff_t>(used));
  while (to.core.poll_event()) {
  }
  to.qp.drain_completions();
  return sent > 0 || used > 0;
}

void Joined::pump() {
  for (int idle = 0, steps = 0; idle < 2; ++steps) {
    if (steps > 10'000) FAIL() << "octets go round for ever";
    const End one{*initiator, initiator_driver.core}, other{*responder, responder_driver.core};
    const bool moved = steps % 2 == 0 ? move(one, other, to_responder_) : move(other, one, to_initiator_);
    idle = moved ? 0 : idle + 1;
  }
}

}  // namespace iwarp::test
