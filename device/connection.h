// A connection over a device, in either role, from the request or the address to the end: driven by the descriptors of
// its event channel and its completion channel on an io_context. Nothing here blocks: the one call that does so on some
// devices, rdma_connect(), is made in a thread of its own (connect_call.h). Handlers are called from the event loop,
// never inside a call. One thread: that of the io_context; or others as well, with mutex() held.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "iwarp/device/connect_call.h"
#include "iwarp/device/endpoint.h"
#include "iwarp/device/life.h"

namespace iwarp::device {

// What both ends agree on.
struct Agreement {
  std::size_t ird = 0, ord = 0;           // RDMA Reads: of the peer's, and of this end's
  std::vector<std::byte> private_data{};  // at most 196 octets
};

// Limits in time of a connection. What a lower value breaks: slow peers.
struct ConnectionTimes {
  // Resolving and connecting together, or from accept() to the peer's answer.
  std::chrono::milliseconds establish{10000};
  // After disconnect(): for what was posted to go out.
  std::chrono::milliseconds finish{5000};
  // Then for the peer to answer; it counts as an orderly end if it does not.
  std::chrono::milliseconds leave{2000};
  // Between the error state of the queue pair and an event that says why.
  std::chrono::milliseconds suspect{500};
};

// How a connection ended. kPeerClosed and kAborted are the ordinary ends.
struct End {
  Error reason{};
  bool was_established = false;
};
// The reason of the end that disconnect() brings about, with kAborted.
inline constexpr const char* kLeft = "closed by this side";

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using tcp = boost::asio::ip::tcp;

  // `id`: new, or that of a request. `ord`: what the endpoint says of itself. Errors: of Resources::make().
  [[nodiscard]] static Result<std::shared_ptr<Connection>> make(boost::asio::io_context& io,
                                                                std::shared_ptr<Device> device, CmId id,
                                                                std::size_t ord, const ConnectionTimes& times = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The event loop holds it while it is at work here, and lets go of it to call a handler. Who calls from another
  // thread than that of the io_context holds it too: in each call of this object, and of its endpoint where that one
  // does not say otherwise.
  [[nodiscard]] std::mutex& mutex() { return mu_; }

  // No error: established. Called once.
  using Established = std::function<void(const Error&)>;
  // Of a request: once its queue pair was made. Receives should be posted.
  [[nodiscard]] Result<void> make_queue_pair() { return resources_->make_queue_pair(); }
  void accept(Agreement agreement, Established established);
  void connect(const tcp::endpoint& to, const std::optional<tcp::endpoint>& from, Agreement agreement,
               Established established);
  // Called once, when an established connection is over: no memory of it is in reach of anybody then.
  // If it is over already: soon.
  void on_end(std::function<void(const End&)> ended);

  // Orderly: what was posted goes out first. No-op when it is over.
  void disconnect();
  // At once. When it returns, no memory of it is in reach of anybody; the handlers hear of it later.
  void abort(const Error& reason);
  // As abort(), with kLeft; but an established peer is told as disconnect() tells it, where the device can do so at
  // once: what has completed is not taken back.
  void leave_at_once();

  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // What has completed, oldest first; how many.
  [[nodiscard]] std::size_t poll(std::span<rpcrdma::Completion> to);
  // Calls `wake` once, from the event loop, when something completes. Poll again after arming.
  void arm(std::function<void()> wake);
  // Until the next arm().
  void disarm() { wake_ = {}; }

  [[nodiscard]] Life life() const { return life_; }
  [[nodiscard]] const std::optional<End>& end() const { return end_; }
  // Known once the id has them: from the beginning for a request, else when connected.
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  [[nodiscard]] const tcp::endpoint& remote() const { return remote_; }
  // As it was agreed on; the private data are the peer's, of its answer.
  [[nodiscard]] const Agreement& agreed() const { return agreed_; }
  [[nodiscard]] bool initiator() const { return initiator_; }
  [[nodiscard]] Device& device() const { return resources_->device(); }

 private:
  Connection(boost::asio::io_context& io, std::shared_ptr<Resources> resources, std::size_t ord,
             const ConnectionTimes& times);

  // Of the event loop: `what` with mutex() held, unless the connection is gone; then what it leaves in tell_, without.
  template <class What>
  static void enter(const std::weak_ptr<Connection>& weak, What what);
  [[nodiscard]] bool step(LifeInput on);
  [[nodiscard]] Result<void> watch();
  void wait_for_events();
  void take_events();
  void handle(const CmEvent& event);
  void on_established(const CmEvent& event);
  void establish();
  void on_peer_left(int status);
  void tell_not_established();
  void on_address();
  void call_connect();
  void on_connect_called(int failed);
  void wait_for_completions();
  void take_completion_events();
  void look_at_queue();
  void leave();
  void note_addresses();
  void set_timer(std::chrono::milliseconds after, const Error& reason);
  // finish(), from the event loop.
  void finish_later(const Error& reason);
  void finish(const Error& reason);

  boost::asio::io_context& io_;
  std::mutex mu_;
  std::function<void()> tell_;  // for enter()
  std::shared_ptr<Resources> resources_;
  Endpoint endpoint_;
  const ConnectionTimes times_;
  Life life_ = Life::kNew;
  bool initiator_ = false;
  bool was_established_ = false;
  bool established_in_call_ = false;  // before rdma_connect() had returned: told then
  bool finishing_ = false;            // finish_later() was called
  std::shared_ptr<ConnectCall> call_;
  Agreement agreed_;
  tcp::endpoint local_, remote_;
  Established established_;
  std::function<void(const End&)> ended_;
  std::function<void()> wake_;
  std::optional<End> end_;
  std::shared_ptr<const void> device_watch_;
  boost::asio::posix::stream_descriptor events_, completions_;
  boost::asio::steady_timer timer_;
};

}  // namespace iwarp::device
