#include "tests/programs/hosts.h"

#include <algorithm>
#include <cstring>

namespace iwarp::programs {

using verbs::QueuePair;

namespace {

constexpr std::size_t kCompletions = 4096;  // more than a program has requests

ddp::Access access_of(std::size_t region) {
  using ddp::Access;
  const Access open = Access::kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite;
  switch (region) {
    case kPrivate:
      return Access::kLocalWrite;
    case kRevocable:
    case kRevocableToo:
      return open | Access::kRemoteInvalidate;
    case kReadOnly:
      return Access::kRemoteRead | Access::kStableSource;
    default:
      return open;
  }
}

}  // namespace

Hosts::Hosts(const Setup& setup) : setup_(setup) {
  for (std::size_t i = 0; i < kHosts; ++i) make_host(i);
  for (std::size_t i = 0; i < setup.pairs * kHosts; ++i) make_end(i);
}

Hosts::~Hosts() {
  for (auto& end : ends_) {
    set_driver(*end, nullptr);
    end->qp->abort();
  }
}

void Hosts::make_host(std::size_t index) {
  Host& host = hosts_[index];
  for (std::size_t i = 0; i < (setup_.hosts[index].one_cq ? 1 : 2); ++i)
    host.cqs[i] = std::make_unique<verbs::CompletionQueue>(kCompletions);
  if (setup_.hosts[index].shares)
    host.srq = std::make_unique<verbs::SharedReceiveQueue>(
        host.pd, verbs::SharedReceiveQueue::Options{.depth = setup_.hosts[index].srq_depth});
}

void Hosts::make_end(std::size_t number) {
  auto end = std::make_unique<End>();
  const std::size_t index = host_of(number);
  const HostSetup& setup = setup_.hosts[index];
  end->hosts = this;
  end->number = number;
  end->eager = setup.eager;
  end->scratch.resize(setup.scratch);
  QueuePair::Options o;
  o.send_cq = &cq(index, false);
  o.recv_cq = &cq(index, true);
  o.srq = srq(index);
  o.stream.sq_depth = setup.sq_depth;
  o.stream.rq_depth = setup.rq_depth;
  o.stream.max_inline = setup.max_inline;
  o.stream.rfc7306 = setup_.rfc7306;
  if (setup.receive_wait) o.stream.receive_wait = std::chrono::milliseconds::max();
  end->qp = std::make_shared<QueuePair>(hosts_[index].pd, o);
  stream::MpaOptions mpa;
  mpa.fpdu = setup.fpdu;
  mpa.direct_placement = setup.direct_placement;
  mpa.early_wake = setup.early_wake;
  {
    const auto lock = end->qp->lock();
    end->core.emplace(end->qp->endpoint(), mpa);
    end->core->set_emss(setup.emss);
    end->qp->set_driver(end.get(), &*end->core);
  }
  for (std::size_t i = 0; i < kRegions; ++i) {
    end->memory[i] = octets(number * kRegions + i + 1, setup_.region_bytes);
    make_region(*end, i);
  }
  ends_.push_back(std::move(end));
}

verbs::MemoryRegion::Options Hosts::options_of(const End& end, std::size_t index) const {
  const std::uint8_t addressing = setup_.hosts[host_of(end.number)].addressing;
  verbs::MemoryRegion::Options o;
  o.access = access_of(index);
  if (index >= kBound && index != kReadOnly) o.stream = end.qp->stream();
  // Near both ends of what 64 bits can say; 0 would do, too, and is what hides addresses.
  if ((addressing & 1) != 0) o.base_to = index % 2 == 0 ? 0 : ~std::uint64_t{0} - setup_.region_bytes;
  if ((addressing & 2) != 0) o.iova = index % 2 == 0 ? ~std::uint64_t{0} - setup_.region_bytes : 0x10000 * index;
  return o;
}

void Hosts::make_region(End& end, std::size_t index) {
  const verbs::ProtectionDomain& pd = hosts_[host_of(end.number)].pd;
  const verbs::MemoryRegion::Options o = options_of(end, index);
  if (index == kReadOnly) {
    verbs::MemoryRegion::ReadOnlyOptions r{o.access, o.base_to, o.stream, o.iova};
    end.regions[index] = verbs::MemoryRegion::register_read_only(pd, end.memory[index], r).value();
  } else {
    end.regions[index] = verbs::MemoryRegion::register_memory(pd, end.memory[index], o).value();
  }
}

Result<void> Hosts::reregister(std::size_t qp, std::size_t index, std::uint32_t key) {
  End& end = *ends_[qp];
  std::optional<std::uint8_t> wanted;
  if (key < 256) wanted = static_cast<std::uint8_t>(key);
  if (wanted && (raw(end.regions[index].stag()) & 0xFF) == *wanted) wanted = static_cast<std::uint8_t>(*wanted + 1);
  return end.regions[index].reregister(hosts_[host_of(qp)].pd, end.memory[index], options_of(end, index), wanted);
}

verbs::CompletionQueue& Hosts::cq(std::size_t host, bool receives) {
  return *hosts_[host].cqs[receives && !setup_.hosts[host].one_cq ? 1 : 0];
}

CountingNotifier& Hosts::notifier(std::size_t host, bool receives) {
  return hosts_[host].notifiers[receives && !setup_.hosts[host].one_cq ? 1 : 0];
}

std::optional<std::size_t> Hosts::numbered(std::uint32_t number) const {
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i]->qp->number() == number) return i;
  }
  return std::nullopt;
}

// --- Startup.

mpa::Policy Hosts::policy(std::size_t host) const {
  const HostSetup& h = setup_.hosts[host];
  mpa::Policy p;
  p.revision = setup_.revision;
  p.crc = setup_.crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  p.markers = h.ask_markers ? mpa::Policy::Markers::kAsk : mpa::Policy::Markers::kServe;
  p.peer_to_peer = setup_.peer_to_peer;
  p.rtr_send = h.rtr_send;
  p.rtr_write = h.rtr_write;
  p.rtr_read = h.rtr_read;
  p.ird = h.ird;
  p.ord = h.ord;
  p.max_ird = setup_.relaxed ? 128 : 0;
  return p;
}

void Hosts::connect(std::size_t qp) {
  End& initiator = *ends_[pair_of(qp) * kHosts + setup_.initiator];
  End& responder = *ends_[peer_of(initiator.number)];
  mpa::Initiator request(policy(setup_.initiator), {}, now_);
  mpa::Responder reply(policy(1 - setup_.initiator), now_);
  const Bytes octets(request.tx_bytes().begin(), request.tx_bytes().end());
  request.tx_commit(octets.size());
  (void)reply.rx(octets, now_);
  (void)reply.poll_event();
  const HostSetup& accepting = setup_.hosts[1 - setup_.initiator];
  (void)reply.accept(accepting.ird, accepting.ord, {});
  {
    const auto lock = initiator.qp->lock();
    initiator.core->start(std::move(request), now_);
  }
  {
    const auto lock = responder.qp->lock();
    responder.core->start(std::move(reply), now_);
  }
  initiator.connected = responder.connected = true;
  after(initiator);
  after(responder);
}

// --- Time and ends.

void Hosts::pass(std::chrono::milliseconds time) {
  pass_to(now_ + time);
}

void Hosts::pass_to(TimePoint time) {
  now_ = std::max(now_, time);
  for (auto& end : ends_) {
    if (end->connected) expire(*end);
  }
}

std::optional<TimePoint> Hosts::deadline(std::size_t qp) {
  const auto lock = ends_[qp]->qp->lock();
  return ends_[qp]->core->deadline();
}

void Hosts::expire(End& end) {
  {
    const auto lock = end.qp->lock();
    const auto deadline = end.core->deadline();
    if (!deadline || *deadline > now_) return;
    end.core->on_deadline(now_);
  }
  after(end);
}

void Hosts::disconnect(std::size_t qp) {
  {
    const auto lock = ends_[qp]->qp->lock();
    ends_[qp]->core->disconnect(now_);
  }
  after(*ends_[qp]);
}

// With a driver, so it looks at the clock: its deadline is far ahead in the time of this network.
void Hosts::leave(std::size_t qp) {
  ends_[qp]->qp->leave();
  after(*ends_[qp]);
}

// Without a driver QueuePair does not look at the clock.
void Hosts::abort(std::size_t qp, std::uint32_t how) {
  End& end = *ends_[qp];
  set_driver(end, nullptr);
  if (how == 1) {
    const auto lock = end.qp->lock();
    end.core->abort_sparing(make_error(Errc::kAborted), now_);
  } else if (how == 2) {
    (void)end.qp->modify(verbs::QueuePairState::kError);
  } else {
    end.qp->abort();
  }
  set_driver(end, &end);
  after(end);
}

void Hosts::set_driver(End& end, verbs::Driver* driver) {
  const auto lock = end.qp->lock();
  end.qp->set_driver(driver, &*end.core);
}

std::vector<stream::Event> Hosts::events(std::size_t qp) {
  return std::exchange(ends_[qp]->events, {});
}

bool Hosts::consistent(std::size_t qp) {
  const auto lock = ends_[qp]->qp->lock();
  return ends_[qp]->core->is_consistent();
}

bool Hosts::deregister() {
  for (auto& end : ends_) {
    for (verbs::MemoryRegion& region : end->regions) region.reset();
  }
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.context->stags().size() == 0; });
}

}  // namespace iwarp::programs
