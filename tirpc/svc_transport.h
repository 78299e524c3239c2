// A service of libtirpc over rpc::Server: Calls wait in a queue, and a descriptor is readable while there are any.
// Internal to tirpc.
#pragma once

#include <netinet/in.h>
#include <rpc/rpc.h>
#include <rpc/svc_mt.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/polling_wait.h"
#include "iwarp/rpc/iwarp_transport.h"
#include "iwarp/rpc/server.h"
#include "iwarp/tirpc/options.h"
#include "iwarp/tirpc/rpcbind.h"

namespace iwarp::tirpc {

// Calls that wait for a thread of the service, and the descriptor that is readable while there are any that no thread
// is about to take. Thread-safe. It may outlive the transport: the engine may be about to push when that is destroyed.
class CallQueue {
 public:
  explicit CallQueue(cm::Engine& engine);
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Negative: there is no descriptor to be had.
  [[nodiscard]] int fd() const { return fd_; }
  void push(std::shared_ptr<rpc::IncomingCall> call);
  // The oldest; null: there is none.
  [[nodiscard]] std::shared_ptr<rpc::IncomingCall> pop();
  // Whether there is one, in so much time: meanwhile this thread does the engine's I/O, which spares the way by the
  // descriptor. It is for pop().
  [[nodiscard]] bool wait(std::chrono::microseconds time);
  // This thread waits at descriptors next.
  void leave_to_engine();
  // What waits is dropped, and what comes.
  void close();

 private:
  class Looking {
   public:
    explicit Looking(CallQueue& queue) : queue_(queue) {
      const std::lock_guard lock(queue_.mu_);
      ++queue_.lookers_;
    }
    ~Looking();
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;
    bool found = false;  // a Call, which its thread takes next

   private:
    CallQueue& queue_;
  };

  void mark();  // with the lock

  cm::Engine& engine_;
  cm::PollingWait polling_;
  std::mutex mu_;
  std::deque<std::shared_ptr<rpc::IncomingCall>> waiting_;
  std::atomic<std::size_t> length_ = 0;  // of waiting_
  unsigned lookers_ = 0;                 // threads in wait()
  const int fd_;
  bool readable_ = false;
  bool closed_ = false;
};

// What xp_p1 points to. Any thread may serve it; each has the Call that it took last.
class SvcTransport {
 public:
  explicit SvcTransport(const Settings& settings);
  ~SvcTransport();
  SvcTransport(const SvcTransport&) = delete;
  SvcTransport& operator=(const SvcTransport&) = delete;

  // Listens. `host`: null: any address of IPv4.
  [[nodiscard]] Result<void> open(const char* host, std::uint16_t port);
  [[nodiscard]] SVCXPRT* xprt() { return &xprt_; }
  [[nodiscard]] Result<void> set(std::uint32_t program, std::uint32_t version);
  [[nodiscard]] Result<void> unset(std::uint32_t program, std::uint32_t version);

  // The operations of a SVCXPRT.
  [[nodiscard]] bool receive(rpc_msg* msg);
  [[nodiscard]] xprt_stat status();
  [[nodiscard]] bool get_arguments(xdrproc_t xargs, void* args);
  [[nodiscard]] bool reply(rpc_msg* msg);
  // Serves no more. Whether it may be deleted: else a thread is between receive() and status() still, which says that
  // it has died, and then ends it once more. Any thread.
  [[nodiscard]] bool end();
  // This thread, which has taken no Call, is done with it. Whether it may be deleted now, as with end(). A thread that
  // took one and leaves without status() keeps it for ever: libtirpc does so for programs that nobody serves, where
  // another thread destroys the transport in that moment.
  [[nodiscard]] bool leave_ended();

 private:
  struct Current {
    std::shared_ptr<rpc::IncomingCall> call;
    std::size_t arguments_at = 0;
  };

  // Of this thread; its call is null: there is none.
  [[nodiscard]] Current current();
  // Ends it; not answered, the client is told so.
  void leave_current();
  // This thread is done with it until receive(), unless it has ended.
  [[nodiscard]] xprt_stat leave(xprt_stat stat);
  void tell_caller(const rpc::IncomingCall& call);
  [[nodiscard]] std::vector<Registration> registrations(std::uint32_t program, std::uint32_t version) const;

  const Settings settings_;
  rpc::Server server_;
  std::shared_ptr<rpc::IwarpServer> listener_;
  const std::shared_ptr<CallQueue> queue_;
  std::mutex mu_;
  std::unordered_map<std::thread::id, Current> current_;  // of threads that have a Call
  std::unordered_map<std::thread::id, bool> inside_;      // threads that use this, and whether they know that it died
  bool ended_ = false;
  std::thread::id first_;  // that came
  // Several threads leave the I/O to the engine: one that has a long Call would keep it from the others.
  std::atomic<bool> several_{false};
  // Of the one thread.
  bool comes_soon_ = false;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
  std::vector<Registration> registered_;
  SVCXPRT xprt_{};
  SVCXPRT_EXT extension_{};
  sockaddr_storage local_{}, remote_{};
  std::string caller_;  // whose address is in remote_
  char verifier_[MAX_AUTH_BYTES]{};
  std::string netid_ = "rdma";
};

}  // namespace iwarp::tirpc
