// Connections of which a test hears what memory they register, expose and send from.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "iwarp/rpc/channel.h"

namespace iwarp::rpc::test {

// What there was, of all connections together. Thread-safe.
class Watch {
 public:
  // Memory that was registered for local use, and stays so.
  [[nodiscard]] std::size_t registrations() const {
    const std::lock_guard lock(mu_);
    return registrations_;
  }
  // Memory that peers may access now.
  [[nodiscard]] std::size_t exposed_now() const {
    const std::lock_guard lock(mu_);
    return exposed_.size();
  }
  // What peers were let read, and what was written to them, since the last call.
  [[nodiscard]] std::vector<ConstBytes> take_read() {
    const std::lock_guard lock(mu_);
    return std::exchange(read_, {});
  }
  [[nodiscard]] std::vector<ConstBytes> take_written() {
    const std::lock_guard lock(mu_);
    return std::exchange(written_, {});
  }

 private:
  friend class WatchedChannel;
  mutable std::mutex mu_;
  std::size_t registrations_ = 0;
  std::multimap<const void*, std::uint32_t> exposed_;  // by channel
  std::vector<ConstBytes> read_, written_;
};

class WatchedChannel final : public Channel, public rpcrdma::Endpoint, public rpcrdma::Registrar {
 public:
  WatchedChannel(std::unique_ptr<Channel> inner, std::shared_ptr<Watch> watch)
      : inner_(std::move(inner)), watch_(std::move(watch)) {}

  // Channel
  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return *this; }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return *this; }
  [[nodiscard]] ConstBytes peer_data() const override { return inner_->peer_data(); }
  [[nodiscard]] const std::string& peer() const override { return inner_->peer(); }
  [[nodiscard]] std::uint16_t peer_port() const override { return inner_->peer_port(); }
  [[nodiscard]] Result<void> flush() override { return inner_->flush(); }
  std::size_t poll(std::span<rpcrdma::Completion> into) override { return inner_->poll(into); }
  void set_wake(std::function<void()> wake) override { inner_->set_wake(std::move(wake)); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  void close() override {
    inner_->close();
    const std::lock_guard lock(watch_->mu_);
    watch_->exposed_.erase(this);
  }

  // Endpoint
  [[nodiscard]] rpcrdma::EndpointLimits limits() const override { return inner_->endpoint().limits(); }
  [[nodiscard]] Result<void> post_recv(std::uint64_t id, rpcrdma::LocalSlice into) override {
    return inner_->endpoint().post_recv(id, into);
  }
  [[nodiscard]] Result<void> post_send(std::uint64_t id, std::span<const rpcrdma::LocalSlice> from,
                                       std::optional<Stag> invalidate) override {
    return inner_->endpoint().post_send(id, from, invalidate);
  }
  [[nodiscard]] Result<void> post_write(std::uint64_t id, std::span<const rpcrdma::LocalSlice> from, Stag handle,
                                        std::uint64_t offset) override {
    {
      const std::lock_guard lock(watch_->mu_);
      for (const auto& slice : from) watch_->written_.push_back(slice.bytes);
    }
    return inner_->endpoint().post_write(id, from, handle, offset);
  }
  [[nodiscard]] Result<void> post_read(std::uint64_t id, rpcrdma::LocalSlice into, Stag handle,
                                       std::uint64_t offset) override {
    return inner_->endpoint().post_read(id, into, handle, offset);
  }
  [[nodiscard]] Result<rpcrdma::ExposedMemory> register_memory(MutBytes memory, rpcrdma::RemoteAccess access,
                                                               bool remote_invalidation) override {
    auto done = inner_->endpoint().register_memory(memory, access, remote_invalidation);
    if (!done) return done;
    const std::lock_guard lock(watch_->mu_);
    watch_->exposed_.emplace(this, raw(done->handle));
    if (access == rpcrdma::RemoteAccess::kRead) watch_->read_.push_back(memory);
    return done;
  }
  [[nodiscard]] Result<void> invalidate(Stag handle) override {
    auto done = inner_->endpoint().invalidate(handle);
    const std::lock_guard lock(watch_->mu_);
    std::erase_if(watch_->exposed_, [&](const auto& e) { return e.first == this && e.second == raw(handle); });
    return done;
  }

  // Registrar
  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override {
    const std::lock_guard lock(watch_->mu_);
    ++watch_->registrations_;
    return inner_->registrar().register_local(memory);
  }
  void deregister_local(Stag lkey) override {
    const std::lock_guard lock(watch_->mu_);
    --watch_->registrations_;
    inner_->registrar().deregister_local(lkey);
  }

 private:
  const std::unique_ptr<Channel> inner_;
  const std::shared_ptr<Watch> watch_;
};

class WatchedClient final : public ClientTransport {
 public:
  explicit WatchedClient(std::shared_ptr<ClientTransport> inner) : inner_(std::move(inner)) {}
  void connect(ConstBytes announce, Connected connected) override {
    inner_->connect(announce, [watch = watch, connected = std::move(connected)](const Error& error,
                                                                                std::unique_ptr<Channel> channel) {
      if (channel) channel = std::make_unique<WatchedChannel>(std::move(channel), watch);
      connected(error, std::move(channel));
    });
  }
  void cancel() override { inner_->cancel(); }

  const std::shared_ptr<Watch> watch = std::make_shared<Watch>();

 private:
  const std::shared_ptr<ClientTransport> inner_;
};

class WatchedServer final : public ServerTransport {
 public:
  explicit WatchedServer(std::shared_ptr<ServerTransport> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] Result<void> listen(Come come) override {
    return inner_->listen([watch = watch, come = std::move(come)](Incoming incoming) {
      incoming.channel = std::make_unique<WatchedChannel>(std::move(incoming.channel), watch);
      come(std::move(incoming));
    });
  }
  void stop() override { inner_->stop(); }

  const std::shared_ptr<Watch> watch = std::make_shared<Watch>();

 private:
  const std::shared_ptr<ServerTransport> inner_;
};

}  // namespace iwarp::rpc::test
