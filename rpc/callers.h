// The threads that wait for the Reply to a Call, of all Clients of an engine. The first does the engine's I/O until its
// own Reply. Others sleep meanwhile, each until its own Reply wakes it; while any sleeps the next to come do as well,
// and the engine's own thread does the I/O. Where nobody looks at sockets in vain (Engine::spin()), the first wakes the
// next to do it when it is done. Waiting in the engine all together they would wake one another with each Reply.
// Internal to rpc.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/polling_wait.h"

namespace iwarp::rpc {

// Thread-safe.
class Callers {
 public:
  // One that waits, or is about to. Whoever has the Reply calls tell(), once, in any thread without a lock.
  class Caller : public boost::intrusive::list_base_hook<> {
   public:
    Caller() { ::sem_init(&woken_, 0, 0); }
    ~Caller() { ::sem_destroy(&woken_); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    void tell(cm::Engine& engine);

   private:
    friend class Callers;
    enum class State : std::uint8_t { kAsleep, kDoesIo, kTold };
    void sleep();
    void wake() { ::sem_post(&woken_); }

    std::atomic<State> state_{State::kAsleep};
    // std::atomic's wait() gives its processor away several times before it sleeps: here nothing is to be had so soon.
    sem_t woken_;
  };

  // Those of `engine`, which must outlive what is returned.
  [[nodiscard]] static std::shared_ptr<Callers> of(cm::Engine& engine);

  explicit Callers(cm::Engine& engine) : engine_(engine), polling_(engine), passes_on_(engine.spin().count() == 0) {}
  // Until it is told. Not to be called in a handler of the engine.
  void wait(Caller& caller);

 private:
  class PassesOn;

  // This thread's I/O is over: another one's begins.
  void pass_on();

  cm::Engine& engine_;
  cm::PollingWait polling_;
  const bool passes_on_;  // the I/O from caller to caller: there may be nobody else
  std::mutex mu_;
  bool io_ = false;  // somebody does it, or has been woken to
  boost::intrusive::list<Caller> asleep_;
};

}  // namespace iwarp::rpc
