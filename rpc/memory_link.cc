#include "iwarp/rpc/memory_link.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

namespace iwarp::rpc {

using rpcrdma::Completion;
using rpcrdma::LocalSlice;
using rpcrdma::OpKind;
using rpcrdma::OpStatus;
using rpcrdma::RemoteAccess;

// One end: Channel, Endpoint and Registrar.
class MemoryChannel final : public Channel, public rpcrdma::Endpoint, public rpcrdma::Registrar {
 public:
  MemoryChannel(std::shared_ptr<MemoryLink> link, unsigned side) : link_(std::move(link)), side_(side) {}
  ~MemoryChannel() override { close(); }

  // Channel
  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return *this; }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return *this; }
  [[nodiscard]] ConstBytes peer_data() const override { return link_->data(1 - side_); }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] Result<void> flush() override { return {}; }
  std::size_t poll(std::span<Completion> into) override {
    const std::lock_guard lock(link_->mu_);
    auto& waiting = self().completions;
    const std::size_t n = std::min(into.size(), waiting.size());
    std::copy_n(waiting.begin(), n, into.begin());
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void set_wake(std::function<void()> wake) override {
    const std::lock_guard lock(link_->mu_);
    self().wake = std::make_shared<const std::function<void()>>(std::move(wake));
  }
  void arm() override {
    const std::lock_guard lock(link_->mu_);
    self().armed = self().wake != nullptr;
  }
  void disarm() override {
    const std::lock_guard lock(link_->mu_);
    self().armed = false;
  }
  void close() override { link_->cut(); }

  // Endpoint
  [[nodiscard]] rpcrdma::EndpointLimits limits() const override { return {.max_outstanding_reads = 32}; }
  [[nodiscard]] Result<void> post_recv(std::uint64_t id, LocalSlice into) override {
    const std::lock_guard lock(link_->mu_);
    if (link_->over_) {
      link_->complete(side_, {id, OpKind::kRecv, OpStatus::kFlushed, 0, {}});
    } else {
      self().receives.emplace_back(id, into.bytes);
    }
    return {};
  }
  [[nodiscard]] Result<void> post_send(std::uint64_t id, std::span<const LocalSlice> from,
                                       std::optional<Stag> invalidate) override {
    const std::lock_guard lock(link_->mu_);
    return done(id, OpKind::kSend, !link_->over_ && !link_->lose_send_() && link_->arrive(1 - side_, from, invalidate));
  }
  [[nodiscard]] Result<void> post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                                        std::uint64_t offset) override {
    const std::lock_guard lock(link_->mu_);
    std::size_t octets = 0;
    for (const LocalSlice& s : from) octets += s.bytes.size();
    std::byte* to = link_->over_ ? nullptr : link_->reach(1 - side_, handle, offset, octets, RemoteAccess::kWrite);
    if (to != nullptr) {
      for (const LocalSlice& s : from) to = std::copy(s.bytes.begin(), s.bytes.end(), to);
    }
    return done(id, OpKind::kWrite, to != nullptr);
  }
  [[nodiscard]] Result<void> post_read(std::uint64_t id, LocalSlice into, Stag handle, std::uint64_t offset) override {
    const std::lock_guard lock(link_->mu_);
    const std::byte* from =
        link_->over_ ? nullptr : link_->reach(1 - side_, handle, offset, into.bytes.size(), RemoteAccess::kRead);
    if (from != nullptr) std::copy_n(from, into.bytes.size(), into.bytes.begin());
    return done(id, OpKind::kRead, from != nullptr);
  }
  [[nodiscard]] Result<rpcrdma::ExposedMemory> register_memory(MutBytes memory, RemoteAccess access,
                                                               bool remote_invalidation) override {
    const std::lock_guard lock(link_->mu_);
    const std::uint32_t stag = link_->next_stag_++;
    self().regions[stag] = {memory, access, remote_invalidation};
    return rpcrdma::ExposedMemory{Stag{stag}, 0};
  }
  [[nodiscard]] Result<void> invalidate(Stag handle) override {
    const std::lock_guard lock(link_->mu_);
    self().regions.erase(raw(handle));
    return {};
  }

  // Registrar
  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override {
    const std::lock_guard lock(link_->mu_);
    const std::uint32_t stag = link_->next_stag_++;
    self().regions[stag] = {memory, std::nullopt, false};
    return Stag{stag};
  }
  void deregister_local(Stag lkey) override {
    const std::lock_guard lock(link_->mu_);
    self().regions.erase(raw(lkey));
  }

 private:
  [[nodiscard]] MemoryLink::End& self() { return link_->ends_[side_]; }
  [[nodiscard]] Result<void> done(std::uint64_t id, OpKind op, bool ok) {
    const bool was_over = link_->over_;
    const OpStatus status = ok ? OpStatus::kOk : was_over ? OpStatus::kFlushed : OpStatus::kFailed;
    link_->complete(side_, {id, op, status, 0, {}});
    if (!ok) link_->end_connection();
    return {};
  }

  const std::shared_ptr<MemoryLink> link_;
  const unsigned side_;
  const std::string peer_ = "memory";
};

std::unique_ptr<Channel> MemoryLink::end(unsigned side) {
  return std::make_unique<MemoryChannel>(shared_from_this(), side);
}

void MemoryLink::set_data(unsigned side, ConstBytes announced) {
  ends_[side].data.assign(announced.begin(), announced.end());
}

bool MemoryLink::cut() {
  const std::lock_guard lock(mu_);
  const bool lived = !over_;
  end_connection();
  return lived;
}

void MemoryLink::complete(unsigned side, const Completion& completion) {
  End& end = ends_[side];
  end.completions.push_back(completion);
  if (std::exchange(end.armed, false)) boost::asio::post(where_, [wake = end.wake] { (*wake)(); });
}

void MemoryLink::end_connection() {
  if (std::exchange(over_, true)) return;
  for (unsigned side = 0; side < 2; ++side) {
    for (const auto& [id, memory] : ends_[side].receives) {
      complete(side, {id, OpKind::kRecv, OpStatus::kFlushed, 0, {}});
    }
    ends_[side].receives.clear();
  }
}

bool MemoryLink::arrive(unsigned to, std::span<const LocalSlice> from, std::optional<Stag> invalidate) {
  End& end = ends_[to];
  std::size_t octets = 0;
  for (const LocalSlice& s : from) octets += s.bytes.size();
  if (end.receives.empty() || end.receives.front().second.size() < octets) return false;
  if (invalidate) {
    const auto region = end.regions.find(raw(*invalidate));
    if (region == end.regions.end() || !region->second.remote_invalidation) return false;
    end.regions.erase(region);
  }
  const auto [id, memory] = end.receives.front();
  end.receives.pop_front();
  auto at = memory.begin();
  for (const LocalSlice& s : from) at = std::copy(s.bytes.begin(), s.bytes.end(), at);
  complete(to, {id, OpKind::kRecv, OpStatus::kOk, static_cast<std::uint32_t>(octets), invalidate});
  return true;
}

std::byte* MemoryLink::reach(unsigned side, Stag handle, std::uint64_t offset, std::size_t octets,
                             RemoteAccess access) {
  const auto found = ends_[side].regions.find(raw(handle));
  if (found == ends_[side].regions.end() || found->second.access != access) return nullptr;
  const MutBytes memory = found->second.memory;
  if (offset > memory.size() || octets > memory.size() - offset) return nullptr;
  return memory.data() + offset;
}

}  // namespace iwarp::rpc
