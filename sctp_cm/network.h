// What the objects of a Service share: the stack, the associations and connections there are, and the way into the
// thread of the engine. Internal to the layer.
#pragma once

#include <atomic>
#include <boost/asio/ip/udp.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "iwarp/cm/engine.h"
#include "iwarp/sctp_cm/host.h"
#include "iwarp/sctp_cm/service.h"
#include "iwarp/sctp_cm/stack.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::sctp_cm {

// One that is under way.
struct Attempt {
  std::shared_ptr<Connection> connection;
  ConnectOptions options;
  std::vector<boost::asio::ip::udp::endpoint> addresses{};  // of the host
  std::size_t next = 0;                                     // of them
  bool joined = false;                                      // an association that another attempt has begun
};

class Network final : public std::enable_shared_from_this<Network> {
 public:
  using udp = boost::asio::ip::udp;
  explicit Network(cm::Engine& engine) : engine_(engine), operations_(engine.operations()), io_(engine.io()) {}

  // --- Any thread.
  [[nodiscard]] bool alive() const { return process_.alive(); }
  [[nodiscard]] cm::Engine& engine() const { return engine_; }
  [[nodiscard]] const std::shared_ptr<cm::Operations>& operations() const { return operations_; }
  [[nodiscard]] boost::asio::io_context& io() const { return io_; }
  // Has it done in the thread of the engine, and waits for that. Precondition: alive().
  void run(const std::function<void()>& what);
  // Likewise, later, and only if the service is there still; `otherwise` if it is not.
  void post(std::function<void()> what, std::function<void()> otherwise = {});

  // Sleeps until there is no association, or the time has come; whether there is none.
  [[nodiscard]] bool wait_closed(TimePoint until);

  // --- In the thread of the engine.
  // Calls the application, from the loop and by itself: what a handler throws, or destroys, disturbs nothing else.
  // Those that are still to be called when the service goes are called there.
  void tell(std::function<void()> handler);
  [[nodiscard]] Result<void> open(const StackOptions& options);
  void close();
  [[nodiscard]] bool closed() const { return stack_ == nullptr; }
  // Precondition: !closed().
  [[nodiscard]] Stack& stack() { return *stack_; }
  void add(const std::shared_ptr<Connection>& connection) {
    if (!connection->over()) connections_.insert(connection);
  }
  void remove(const std::shared_ptr<Connection>& connection) { connections_.erase(connection); }
  void add(std::shared_ptr<Host> host);
  // Later: it may be in a call.
  void remove(const std::shared_ptr<Host>& host);
  void add(const std::shared_ptr<Listener::Impl>& listener);
  void connect(const std::shared_ptr<Attempt>& attempt);
  // The next address, where there is one.
  void go_on(const std::shared_ptr<Attempt>& attempt, const Error& last);
  // A new association, and no other, for one that finds no stream on a shared one.
  void connect_alone(const std::shared_ptr<Attempt>& attempt, const udp::endpoint& to);

 private:
  // The peer's UDP and SCTP port, and this end's address.
  using Key = std::tuple<udp::endpoint, std::uint16_t, std::optional<boost::asio::ip::address>>;

  [[nodiscard]] Result<std::shared_ptr<Host>> make_host(const Attempt& attempt, const udp::endpoint& to);

  const verbs::ForkGuard process_;
  cm::Engine& engine_;
  const std::shared_ptr<cm::Operations> operations_;
  boost::asio::io_context& io_;
  std::unique_ptr<Stack> stack_;
  std::optional<udp::resolver> resolver_;
  std::set<std::shared_ptr<Host>> hosts_;
  std::atomic<std::size_t> open_{0};  // of them
  std::map<Key, std::weak_ptr<Host>> shared_;
  std::set<std::shared_ptr<Connection>> connections_;  // that are not over
  std::vector<std::weak_ptr<Listener::Impl>> listeners_;
  std::deque<std::function<void()>> to_tell_;  // each has a turn of the loop to come
};

// The SCTP port that stands for 0.
[[nodiscard]] inline std::uint16_t sctp_port_of(std::uint16_t sctp_port, std::uint16_t udp_port) {
  return sctp_port != 0 ? sctp_port : udp_port;
}

}  // namespace iwarp::sctp_cm
