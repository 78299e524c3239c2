// An Endpoint whose operations are executed by memcpy against another one: every Read, Write and Send touches the very
// bytes named, at the time of its execution, and only where a registration allows it. Whatever a real connection would
// end for (no Receive, Receive too small, bad STag, bounds, access) breaks both ends.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/rpcrdma/responder.h"
#include "tests/support/hex.h"

namespace iwarp::rpcrdma::test {

using iwarp::test::Bytes;

class FakeEndpoint : public Endpoint, public Registrar {
 public:
  struct Posted {
    OpKind op = OpKind::kSend;
    std::uint64_t id = 0;
    std::vector<LocalSlice> slices{};
    Stag handle{};
    std::uint64_t offset = 0;
    std::optional<Stag> invalidate{};
  };
  struct Region {
    MutBytes memory{};
    std::uint64_t base = 0;
    std::optional<RemoteAccess> access{};  // none: local only
    bool remote_invalidation = false;
  };

  explicit FakeEndpoint(std::uint32_t first_stag, std::size_t send_queue_depth = 16) : next_stag_(first_stag) {
    limits_now.send_queue_depth = send_queue_depth;
  }
  static void join(FakeEndpoint& a, FakeEndpoint& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }

  EndpointLimits limits_now{
      .max_sge = 8, .max_outstanding_reads = 4, .send_queue_depth = 16, .receive_queue_depth = 512};
  std::function<void(const Completion&)> deliver;  // where completions go
  std::deque<Posted> posted;                       // send side, not executed yet
  std::deque<std::pair<std::uint64_t, LocalSlice>> receives;
  // Where messages find Receives: of this endpoint, or of a queue that several share.
  std::deque<std::pair<std::uint64_t, LocalSlice>>* receives_from = &receives;
  std::vector<Posted> history;  // executed
  std::vector<Bytes> inbox;     // Sends that arrived, if nobody posts Receives here
  std::vector<std::optional<Stag>> inbox_invalidated;
  std::map<std::uint32_t, Region> regions;
  bool raw = false;  // no Receives: Sends go to the inbox
  bool broken = false;
  bool refuse_posts = false;
  bool refuse_registrations = false;
  bool refuse_invalidation = false;
  std::size_t most_exposed = SIZE_MAX;         // registrations of memory to expose, at a time
  std::size_t registrations_to_refuse = 0;     // of memory to expose, the next ones
  std::size_t refuse_registration_number = 0;  // likewise that one, the next is 1
  std::size_t max_reads_seen = 0;
  std::size_t max_posted_seen = 0;

  EndpointLimits limits() const override { return limits_now; }
  Result<void> post_recv(std::uint64_t id, LocalSlice into) override {
    if (refuse_posts) return make_error(Errc::kQueueFull);
    EXPECT_TRUE(is_local(into));
    receives.emplace_back(id, into);
    return {};
  }
  Result<void> post_send(std::uint64_t id, std::span<const LocalSlice> from, std::optional<Stag> invalidate) override {
    EXPECT_LE(from.size(), limits_now.max_sge);
    return post({OpKind::kSend, id, {from.begin(), from.end()}, {}, 0, invalidate});
  }
  Result<void> post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                          std::uint64_t offset) override {
    return post({OpKind::kWrite, id, {from.begin(), from.end()}, handle, offset, {}});
  }
  Result<void> post_read(std::uint64_t id, LocalSlice into, Stag handle, std::uint64_t offset) override {
    return post({OpKind::kRead, id, {into}, handle, offset, {}});
  }
  Result<ExposedMemory> register_memory(MutBytes memory, RemoteAccess access, bool remote_invalidation) override {
    if (exposed() >= most_exposed) return make_error(Errc::kResource);
    if (refuse_registration_number > 0 && --refuse_registration_number == 0) return make_error(Errc::kResource);
    if (registrations_to_refuse > 0) {
      --registrations_to_refuse;
      return make_error(Errc::kResource);
    }
    if (refuse_registrations) return make_error(Errc::kResource);
    const std::uint32_t stag = next_stag_++;
    const std::uint64_t base = 0xABCD'0000'0000'0000u + stag * 0x1'0000'0000u;
    regions[stag] = {memory, base, access, remote_invalidation};
    return ExposedMemory{Stag{stag}, base};
  }
  Result<void> invalidate(Stag handle) override {
    if (refuse_invalidation) return make_error(Errc::kLocalProtection);
    regions.erase(raw_value(handle));
    return {};
  }
  Result<Stag> register_local(MutBytes memory) override {
    if (refuse_registrations) return make_error(Errc::kResource);
    const std::uint32_t stag = next_stag_++;
    regions[stag] = {memory, 0, std::nullopt, false};
    return Stag{stag};
  }
  void deregister_local(Stag lkey) override { EXPECT_EQ(regions.erase(raw_value(lkey)), 1u); }

  // Memory that the peer may access right now.
  [[nodiscard]] std::size_t exposed() const {
    std::size_t n = 0;
    for (const auto& [stag, r] : regions) n += r.access ? 1 : 0;
    return n;
  }
  // Executes the oldest posted operation and delivers its completions. False if there is none.
  bool step() {
    if (posted.empty() || broken) return false;
    Posted op = std::move(posted.front());
    posted.pop_front();
    const bool ok = execute(op);
    history.push_back(op);
    if (!ok) {
      complete({op.id, op.op, OpStatus::kFailed, 0, {}});
      break_both();
      return true;
    }
    complete({op.id, op.op, OpStatus::kOk, 0, {}});
    return true;
  }
  // A Send of the peer's that the test made up.
  void receive(const Bytes& message, std::optional<Stag> invalidated = std::nullopt) {
    ASSERT_TRUE(arrive(message, invalidated)) << "no Receive, or too small";
  }
  // The connection ends: everything posted is flushed.
  void disconnect() {
    broken = true;
    while (!posted.empty()) {
      const Posted op = posted.front();
      posted.pop_front();
      complete({op.id, op.op, OpStatus::kFlushed, 0, {}});
    }
    while (!receives.empty()) {
      const auto id = receives.front().first;
      receives.pop_front();
      complete({id, OpKind::kRecv, OpStatus::kFlushed, 0, {}});
    }
  }

 private:
  static std::uint32_t raw_value(Stag s) { return static_cast<std::uint32_t>(s); }
  Result<void> post(Posted op) {
    if (refuse_posts) return make_error(Errc::kQueueFull);
    for (const LocalSlice& s : op.slices) EXPECT_TRUE(is_local(s));
    posted.push_back(std::move(op));
    std::size_t reads = 0;
    for (const Posted& p : posted) reads += p.op == OpKind::kRead ? 1 : 0;
    max_reads_seen = std::max(max_reads_seen, reads);
    max_posted_seen = std::max(max_posted_seen, posted.size());
    EXPECT_LE(posted.size(), limits_now.send_queue_depth);
    EXPECT_LE(reads, limits_now.max_outstanding_reads);
    return {};
  }
  [[nodiscard]] bool is_local(const LocalSlice& s) const {
    const auto it = regions.find(raw_value(s.lkey));
    if (it == regions.end()) return false;
    const MutBytes r = it->second.memory;
    return s.bytes.data() >= r.data() && s.bytes.data() + s.bytes.size() <= r.data() + r.size();
  }
  [[nodiscard]] std::byte* remote(Stag handle, std::uint64_t offset, std::size_t n, RemoteAccess access) const {
    const auto it = regions.find(raw_value(handle));
    if (it == regions.end() || it->second.access != access) return nullptr;
    const Region& r = it->second;
    if (offset < r.base || offset - r.base > r.memory.size() || n > r.memory.size() - (offset - r.base)) return nullptr;
    return r.memory.data() + (offset - r.base);
  }
  bool execute(const Posted& op) {
    Bytes data;
    for (const LocalSlice& s : op.slices) {
      if (!is_local(s)) return false;
      data.insert(data.end(), s.bytes.begin(), s.bytes.end());
    }
    switch (op.op) {
      case OpKind::kWrite: {
        std::byte* to = peer_->remote(op.handle, op.offset, data.size(), RemoteAccess::kWrite);
        if (to == nullptr) return false;
        std::memcpy(to, data.data(), data.size());
        return true;
      }
      case OpKind::kRead: {
        const MutBytes into = op.slices[0].bytes;
        const std::byte* from = peer_->remote(op.handle, op.offset, into.size(), RemoteAccess::kRead);
        if (from == nullptr) return false;
        std::memcpy(into.data(), from, into.size());
        return true;
      }
      default:
        break;
    }
    if (op.invalidate) {
      const auto it = peer_->regions.find(raw_value(*op.invalidate));
      if (it == peer_->regions.end() || !it->second.remote_invalidation) return false;
      peer_->regions.erase(it);
    }
    return peer_->arrive(data, op.invalidate);
  }
  bool arrive(const Bytes& message, std::optional<Stag> invalidated) {
    if (raw) {
      inbox.push_back(message);
      inbox_invalidated.push_back(invalidated);
      return true;
    }
    auto& from = *receives_from;
    if (from.empty() || from.front().second.bytes.size() < message.size()) return false;
    const auto [id, into] = from.front();
    from.pop_front();
    std::copy(message.begin(), message.end(), into.bytes.begin());
    complete({id, OpKind::kRecv, OpStatus::kOk, static_cast<std::uint32_t>(message.size()), invalidated});
    return true;
  }
  void complete(const Completion& c) {
    if (deliver) deliver(c);
  }
  void break_both() {
    disconnect();
    if (peer_ != nullptr) peer_->disconnect();
  }

  FakeEndpoint* peer_ = nullptr;
  std::uint32_t next_stag_;
};

// Runs both ends until nothing moves.
inline void run(FakeEndpoint& a, FakeEndpoint& b) {
  for (int i = 0; i < 10'000; ++i) {
    const bool moved = a.step();
    if (!b.step() && !moved) return;
  }
  FAIL() << "never comes to rest";
}

// Test memory exposed by the raw end.
struct Exposed {
  Exposed(FakeEndpoint& endpoint, Bytes contents, RemoteAccess access, bool remote_invalidation = true)
      : bytes(std::move(contents)), memory(*endpoint.register_memory(bytes, access, remote_invalidation)) {}
  [[nodiscard]] Segment segment(std::size_t at, std::size_t length) const {
    return {memory.handle, static_cast<std::uint32_t>(length), memory.offset + at};
  }
  [[nodiscard]] Segment segment() const { return segment(0, bytes.size()); }

  Bytes bytes;
  ExposedMemory memory;
};

inline Bytes to_bytes(ConstBytes b) {
  return {b.begin(), b.end()};
}

template <class Event, class Core>
std::optional<Event> next(Core& core) {
  auto event = core.poll_event();
  if (!event || !std::holds_alternative<Event>(*event)) return std::nullopt;
  return std::get<Event>(std::move(*event));
}

}  // namespace iwarp::rpcrdma::test
