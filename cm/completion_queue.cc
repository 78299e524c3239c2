#include "iwarp/cm/completion_queue.h"

#include <boost/asio/post.hpp>
#include <new>
#include <optional>
#include <variant>

#include "iwarp/cm/completion_alarm.h"
#include "iwarp/cm/handler_room.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::cm::detail {
namespace {

// One wait. It looks at the queue in look() only, which runs in the engine's context, posted once at a time.
class Poll final : public verbs::SharedNotifier, public std::enable_shared_from_this<Poll> {
 public:
  using Queue = verbs::CompletionQueue::Shared;
  using Told = std::variant<Completion<Error, std::size_t>, Completion<Error, verbs::Completion>>;

  // `out`: empty with a Told of one.
  Poll(Engine& engine, std::shared_ptr<Queue> queue, std::span<verbs::Completion> out, Told told)
      : io_(engine.io()),
        queue_(std::move(queue)),
        told_(std::move(told)),
        out_(std::holds_alternative<Completion<Error, std::size_t>>(told_) ? out : std::span{&one_, 1}) {}

  void start() {
    const auto [cancel, operation] =
        std::visit([](const auto& told) { return std::pair(told.cancel, told.operation); }, told_);
    operation->set_before_abandon([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->stop();
    });
    post_look();
    if (cancel == nullptr) return;
    cancel->set([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->cancelled_.store(true);
      self->post_look();
    });
  }

  // verbs::SharedNotifier
  void notify(verbs::CompletionQueue&) noexcept override { post_look(); }
  void let_go() noexcept override {
    let_go_.store(true);
    post_look();
  }

 private:
  void post_look() {
    if (posted_.exchange(true)) return;
    room_.post(io_, [self = shared_from_this()] { self->look(); });
  }

  struct End {
    Error error;
    std::size_t n = 0;
  };

  void look() {
    posted_.store(false);  // from here on there is something new to look at
    Told told;
    std::optional<End> end;
    {
      const std::lock_guard lock(mu_);
      if (over_) return;
      end = find_end();
      if (!end) return;
      over_ = true;
      queue_->forget(*this);
      told = std::move(told_);
    }
    if (const auto* many = std::get_if<Completion<Error, std::size_t>>(&told)) return many->handler(end->error, end->n);
    std::get<Completion<Error, verbs::Completion>>(told).handler(end->error, one_);
  }

  // Nothing: it waits on. Precondition: mu_ held.
  [[nodiscard]] std::optional<End> find_end() {
    const auto failed = [](Errc code, const char* why) { return End{make_error(code, why)}; };
    if (out_.empty()) return failed(Errc::kInvalidArgument, "no room for a completion");
    if (cancelled_.load()) return failed(Errc::kAborted, kCancelledWhy);
    auto n = queue_->poll(out_);
    if (n == 0U && let_go_.load()) return failed(Errc::kAborted, "another wait for the completion queue came instead");
    if (n == 0U) {
      (void)queue_->arm(verbs::CompletionQueue::Notify::kNext, shared_from_this());
      n = queue_->poll(out_);  // what came before it was armed
    }
    if (!n) return failed(Errc::kAborted, "completion queue destroyed");
    return *n > 0 ? std::optional(End{Error{}, *n}) : std::nullopt;
  }

  // The engine goes: nothing is posted to its context any more, nor written to `out`.
  void stop() {
    const std::lock_guard lock(mu_);
    over_ = true;
    queue_->forget(*this);
  }

  boost::asio::io_context& io_;
  const std::shared_ptr<Queue> queue_;
  HandlerRoom room_;
  std::atomic<bool> posted_{false}, cancelled_{false}, let_go_{false};
  std::mutex mu_;  // taken before the queue's
  bool over_ = false;
  verbs::Completion one_;
  Told told_;
  std::span<verbs::Completion> out_;
};

template <class Told>
void start(Engine& engine, verbs::CompletionQueue& cq, std::span<verbs::Completion> out, Told told) {
  engine.start();
  std::make_shared<Poll>(engine, cq.shared(), out, std::move(told))->start();
}

}  // namespace

void start_poll(Engine& engine, verbs::CompletionQueue& cq, std::span<verbs::Completion> out,
                Completion<Error, std::size_t> completion) {
  if (!engine.context()->alive()) return completion.handler(verbs::used_after_fork(), 0);
  start(engine, cq, out, std::move(completion));
}

void start_poll_one(Engine& engine, verbs::CompletionQueue& cq, Completion<Error, verbs::Completion> completion) {
  if (!engine.context()->alive()) return completion.handler(verbs::used_after_fork(), {});
  start(engine, cq, {}, std::move(completion));
}

}  // namespace iwarp::cm::detail

namespace iwarp::cm {

Result<void> CompletionQueue::moderate(std::size_t count, std::chrono::microseconds period) {
  if (!engine_.context()->alive()) return verbs::used_after_fork();
  if (period.count() > 0) {
    engine_.start();
    set_alarm(std::make_shared<CompletionAlarm>(engine_.io(), shared()));
  }
  return verbs::CompletionQueue::moderate(count, period);
}

}  // namespace iwarp::cm
