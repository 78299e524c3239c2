// Threads that wait for an rsocket: first they move the octets themselves, then they sleep.
#include "tests/dropin/rsocket_support.h"
//
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "dropin/verbs/interface.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A handler of the engine that begins anew as soon as it has run, so that it is known all the time who moves the
// octets.
class Chain {
 public:
  // `look`: called in whatever thread that is, one call at a time. It must not throw.
  explicit Chain(std::function<void()> look) : look_(std::move(look)) { next(); }
  ~Chain() {
    stop_.store(true);
    over_->get_future().wait();
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

 private:
  void next() {
    boost::asio::post(engine().io(), [this] {
      if (const auto over = over_; stop_.load()) return over->set_value();
      look_();
      next();
    });
  }

  const std::function<void()> look_;
  std::atomic<bool> stop_{false};
  const std::shared_ptr<std::promise<void>> over_ = std::make_shared<std::promise<void>>();
};

class RsocketWaits : public RsocketTest {
 protected:
  // A thread that receives at `client` comes out of its sleep: it looks, and waits again.
  void stir() {
    EXPECT_EQ(::rshutdown(client, SHUT_WR), 0);
    std::this_thread::sleep_for(2ms);
  }
};

// The signal comes just while the thread moves octets: it is held back for that time, and ends the call behind it.
TEST_F(RsocketWaits, ASignalThatComesMeanwhileIsNotLost) {
  connect();
  struct sigaction action {
  }, before{};
  static std::atomic<int> handled{0};
  action.sa_handler = [](int) { ++handled; };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    std::atomic<std::thread::id> waits{};
    std::atomic<bool> sent{false}, over{false};
    std::string got;
    {
      const Chain chain([&] {
        if (std::this_thread::get_id() != waits.load() || sent.exchange(true)) return;
        handled.store(0);
        ::pthread_kill(::pthread_self(), SIGUSR1);
        EXPECT_EQ(handled.load(), 0) << "not within the handlers of the engine";
      });
      std::thread thread([&] {
        waits.store(std::this_thread::get_id());
        got = receive_text(client);
        over.store(true);
      });
      const auto until = Clock::now() + 20s;
      while (!sent.load() && Clock::now() < until) stir();
      EXPECT_TRUE(sent.load()) << "it never moves octets";
      while (!over.load() && Clock::now() < until) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(over.load()) << "the signal is lost";
      if (!over.load()) {
        EXPECT_EQ(send_text(accepted, "over"), 4);
      }
      thread.join();
    }
    EXPECT_EQ(got, "-EINTR");
    EXPECT_EQ(handled.load(), 1);
  }
  EXPECT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

// Before it sleeps it hands them over. Else nobody would move any until the engine's thread looks by itself, 800 us
// later at least.
TEST_F(RsocketWaits, WhoSleepsLeavesTheOctetsToTheEnginesThread) {
  connect();
  std::atomic<std::thread::id> waits{};
  std::atomic<unsigned> quick{0}, slow{0};
  Clock::time_point first, last;
  bool leads = false;
  std::thread thread([&] {
    waits.store(std::this_thread::get_id());
    EXPECT_EQ(receive_text(client), "over");
  });
  {
    const Chain chain([&] {
      const auto now = Clock::now();
      if (std::this_thread::get_id() == waits.load()) {
        if (!leads) first = now;
        leads = true;
        last = now;
      } else if (std::exchange(leads, false) && last - first < 300us) {  // else it was kept from working itself
        ++(now - last < 500us ? quick : slow);
      }
    });
    for (auto until = Clock::now() + 20s; quick.load() < 10 && Clock::now() < until;) stir();
  }
  EXPECT_GE(quick.load(), 10U) << slow.load() << " were slow";
  EXPECT_EQ(send_text(accepted, "over"), 4);
  thread.join();
}

}  // namespace
}  // namespace iwarp::dropin::test
