// Context: the resources that connections share - the STag table, Protection Domains, unpredictable keys. One per
// engine; thread-safe. After fork() the objects of the child are dead: their calls fail with kInvalidArgument instead
// of corrupting the parent's streams.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "iwarp/ddp/stag_table.h"
#include "iwarp/verbs/async_event.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::verbs {

class Context {
 public:
  Context();

  // The STag table of its connections.
  [[nodiscard]] ddp::StagTable& stags() { return stags_; }
  // An id that no other Protection Domain of this context has.
  [[nodiscard]] PdId allocate_pd() { return PdId{next_pd_.fetch_add(1)}; }
  // An id that no other stream of this context has.
  [[nodiscard]] ddp::StreamId allocate_stream() { return ddp::StreamId{next_stream_.fetch_add(1)}; }

  // Enters memory into the STag table, under a key that nobody can predict. kResource: no entry, memory or random
  // key. kInvalidArgument: used after fork().
  [[nodiscard]] Result<Stag> register_memory(const ddp::Registration& registration);
  // Revokes the STag, waits as deregister() does, and gives its index to `registration` with another key: `key`, or one
  // that is drawn. kInvalidArgument: ddp::StagTable::check(), `key` is the present one, used after fork(). kResource:
  // no random key. After an error the STag is as it was.
  [[nodiscard]] Result<Stag> reregister(Stag stag, const ddp::Registration& registration,
                                        std::optional<std::uint8_t> key);
  // Revokes the STag, waits until no access to it is under way (at most what one call of a connection does: the
  // copies and checks of one read, or of one batch to send, and the system call) and frees it. In a forked child these
  // three do nothing: an access that was under way when it forked would never end there.
  void deregister(Stag stag);
  // Revokes the STag and waits as above; the index stays taken. Harmless when the peer has revoked it already.
  void invalidate(Stag stag);
  // Waits until no access to a revoked STag is under way.
  void fence(Stag stag);

  // The oldest asynchronous event not yet taken, of all objects of this context; nullopt: there is none. Does not
  // block.
  [[nodiscard]] std::optional<AsyncEvent> poll_async_event() { return async_events_->poll(); }
  // A descriptor that is readable while an event waits, to sleep on in poll(2) or an event loop; not to be read. Made
  // at the first call, owned by this object. kResource: there is none to be had. kInvalidArgument: used after fork().
  [[nodiscard]] Result<int> async_event_fd() { return async_events_->fd(); }
  // For engines: how many of them have connections.
  [[nodiscard]] std::atomic<unsigned>& busy_engines() { return busy_engines_; }
  // For the objects that have events.
  [[nodiscard]] const std::shared_ptr<AsyncEvents>& async_events() const { return async_events_; }

  // True in the process that made this context, false in a forked child. Costs one load.
  [[nodiscard]] bool alive() const { return process_.alive(); }

 private:
  // Nothing when the system gives none, or no memory for it. Precondition: mu_ held.
  [[nodiscard]] std::optional<std::uint64_t> random();

  ddp::StagTable stags_;
  std::mutex mu_;
  std::array<std::uint64_t, 64> entropy_{};
  std::size_t entropy_left_ = 0;
  std::atomic<std::uint32_t> next_pd_{1};
  std::atomic<std::uint64_t> next_stream_{1};
  std::atomic<unsigned> busy_engines_{0};
  const std::shared_ptr<AsyncEvents> async_events_ = std::make_shared<AsyncEvents>();
  ForkGuard process_;
};

// Protection Domain (RFC 5042 s5.1): queue pairs reach only memory of their own domain. A cheap handle; copies name the
// same domain.
class ProtectionDomain {
 public:
  // A new domain of that context; `context` is Engine::context(). `events`: where the asynchronous events of its queue
  // pairs and shared receive queues go; null: to those of the context.
  explicit ProtectionDomain(std::shared_ptr<Context> context, std::shared_ptr<AsyncEvents> events = nullptr)
      : context_(std::move(context)),
        events_(events != nullptr ? std::move(events) : context_->async_events()),
        id_(context_->allocate_pd()) {}

  // The context it belongs to.
  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }
  // For its objects.
  [[nodiscard]] const std::shared_ptr<AsyncEvents>& async_events() const { return events_; }
  // Its id within the context.
  [[nodiscard]] PdId id() const { return id_; }

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<AsyncEvents> events_;
  PdId id_;
};

}  // namespace iwarp::verbs
