// The live sessions of a front, wherever they live: bounded, drained together. One thread, that of the process.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iwarp/gateway/session.h"
#include "iwarp/gateway/stats.h"

namespace iwarp::gateway {

class SessionSet {
 public:
  explicit SessionSet(Process& process) : process_(process), timer_(process.home().engine().io()) {}

  ~SessionSet() {
    for (auto& [key, member] : sessions_) let_go(std::move(member));
  }
  SessionSet(const SessionSet&) = delete;
  SessionSet& operator=(const SessionSet&) = delete;

  // Those that are still coming() included.
  [[nodiscard]] std::size_t size() const { return sessions_.size() + coming_; }
  [[nodiscard]] bool draining() const { return draining_; }
  // A session that lives on `worker`. `place`: what it holds until it is removed.
  void add(const std::shared_ptr<Session>& s, Worker& worker, std::shared_ptr<const void> place) {
    sessions_.emplace(s.get(), Member{s, &worker, std::move(place)});
  }
  void remove(Session* s) {
    if (auto member = sessions_.extract(s)) let_go(std::move(member.mapped()));
    finish_if_empty();
    tell_if_empty();
  }
  // Something is under way that may become a session; and this has come to an end, after add() if it has one.
  void coming() { ++coming_; }
  void has_come() {
    --coming_;
    tell_if_empty();
  }
  // `empty` is posted, once, when there is neither a session nor one coming.
  void when_empty(std::function<void()> empty) {
    empty_ = std::move(empty);
    tell_if_empty();
  }
  void drain(std::chrono::milliseconds limit, std::function<void()> done) {
    draining_ = true;
    done_ = std::move(done);
    each([](Session& s) { s.drain(); });
    timer_.expires_after(limit);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) each([](Session& s) { s.stop(); });
    });
    finish_if_empty();
  }
  // `f` of each, in the thread where it lives: sooner or later.
  template <class F>
  void each(F f) {
    for (const auto& [key, member] : std::unordered_map(sessions_))  // sessions may end meanwhile
      member.worker->run([session = member.session, f] { f(*session); });
  }
  // The same; when this returns it is done.
  template <class F>
  void each_and_wait(F f) const {
    for (const auto& worker : process_.workers()) {
      std::vector<std::shared_ptr<Session>> there;
      for (const auto& [key, member] : sessions_) {
        if (member.worker == worker.get()) there.push_back(member.session);
      }
      if (there.empty()) continue;
      worker->run_and_wait([&] {
        for (auto& session : there) {
          f(*session);
          session.reset();  // where it lives, should it be the last
        }
      });
    }
  }

 private:
  struct Member {
    std::shared_ptr<Session> session;
    Worker* worker;
    std::shared_ptr<const void> place;
  };

  // It goes in the thread where it lives.
  static void let_go(Member member) {
    Worker& worker = *member.worker;
    worker.run([session = std::move(member.session)] {});
  }

  void finish_if_empty() {
    if (!draining_ || !sessions_.empty() || !done_) return;
    timer_.cancel();
    std::exchange(done_, {})();
  }

  void tell_if_empty() {
    if (size() == 0 && empty_) boost::asio::post(timer_.get_executor(), std::exchange(empty_, {}));
  }

  Process& process_;
  boost::asio::steady_timer timer_;
  std::unordered_map<Session*, Member> sessions_;
  bool draining_ = false;
  std::function<void()> done_;
  std::size_t coming_ = 0;
  std::function<void()> empty_;
};

// What `stats` counts, and what live sessions have not told it yet. A session that ends meanwhile could be in neither:
// then again, unless they end all the time.
[[nodiscard]] inline Stats::Snapshot snapshot_with(const Stats& stats, const SessionSet& sessions) {
  Stats::Snapshot s;
  for (int tries = 0; tries < 3; ++tries) {
    s = stats.snapshot();
    const std::uint64_t closed = s.closed;
    sessions.each_and_wait([&](const Session& session) { session.add_live_counters(s); });
    if (stats.snapshot().closed == closed) break;
  }
  return s;
}

}  // namespace iwarp::gateway
