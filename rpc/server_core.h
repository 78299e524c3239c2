// What a Server shares with its connections and the Calls under way. Internal to rpc.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "iwarp/rpc/handler_threads.h"
#include "iwarp/rpc/places.h"
#include "iwarp/rpc/replay_cache.h"
#include "iwarp/rpc/server.h"
#include "iwarp/rpc/wake_timer.h"
#include "iwarp/rpc/whole_message.h"

namespace iwarp::rpc {

// One connection. Its lock guards the channel, the pool and the Responder; nothing of the application's is called with
// it.
class ServerSession final : public BufferKeeper,
                            public ReplayCache::Connection,
                            public std::enable_shared_from_this<ServerSession> {
 public:
  ServerSession(std::weak_ptr<ServerCore> core, std::unique_ptr<Places::Place> place, cm::Engine& engine,
                Incoming incoming, const ServerOptions& options);
  ~ServerSession() override;

  // Takes the connection, unless close() was faster.
  void accept();
  // Does what can be done now. In an engine thread.
  void turn();
  // Answers a Call with what both together are. Any thread.
  void reply(rpcrdma::CallToken token, ConstBytes head, ConstBytes body);
  void reply(rpcrdma::CallToken token, WholeMessage whole);
  void close();
  // Calls the client. `done` hears how it went, by the event loop. Any thread.
  void call_back(Octets message, Caller::Done done, const std::shared_ptr<cm::Canceller>& cancel);
  void give_back(rpcrdma::Buffer&& buffer) noexcept override;
  [[nodiscard]] const std::string& peer() const { return peer_; }
  [[nodiscard]] std::uint16_t peer_port() const { return channel_->peer_port(); }

  // ReplayCache::Connection
  void tell(rpcrdma::CallToken token, const Octets& whole) override { reply(token, whole, {}); }

 private:
  struct Arrived {
    rpcrdma::CallToken token{};
    rpcrdma::Buffer message{};
  };
  // What is to be done without the lock.
  struct Work {
    bool calls = false;  // have arrived
    std::vector<std::function<void()>> told{};
    [[nodiscard]] bool empty() const { return !calls && told.empty(); }
  };
  struct Owed {
    rpcrdma::CallToken token{};
    WholeMessage reply;
  };

  // Those below need the lock.
  void round(Work& work);
  [[nodiscard]] bool feed();
  [[nodiscard]] bool take_events(Work& work);
  void pay_owed();
  // False: there is no memory now.
  [[nodiscard]] bool try_reply(rpcrdma::CallToken token, ConstBytes head, ConstBytes body);
  [[nodiscard]] bool try_reply(rpcrdma::CallToken token, const WholeMessage& whole);
  void finish();
  // One that the client was sent has ended.
  void end_backward(std::uint32_t xid, const Error& error, rpcrdma::Buffer message, Work& work);

  // Without it.
  void leave(Work work);
  void leave_later(Work work);
  void cancel_backward(std::uint32_t xid);
  friend class WakeTimer;
  void on_timer();
  void hand_over_arrived();
  void hand_over(Arrived call);
  void turn_later();

  const std::unique_ptr<Places::Place> place_;  // goes last
  const std::weak_ptr<ServerCore> core_;
  boost::asio::io_context& io_;
  Incoming incoming_;
  const std::unique_ptr<Channel> channel_;
  const std::string peer_;
  const rpcrdma::ResponderOptions options_;
  std::mutex mu_;
  rpcrdma::BufferPool pool_;
  rpcrdma::Responder responder_;
  std::map<std::uint32_t, Caller::Done> backward_;  // by xid
  std::uint32_t next_backward_xid_ = 1;             // of this connection alone
  std::deque<Owed> owed_;                           // at most a Reply for each credit
  std::uint64_t releases_seen_ = 0;
  std::uint64_t shortages_seen_ = 0;
  std::size_t delivered_ = 0;  // Calls that are not answered yet
  // In their order, whichever threads took them from the connection: one at a time hands them over, by handed_, which
  // is that one's.
  std::vector<Arrived> arrived_, handed_;
  bool handing_over_ = false;
  std::array<rpcrdma::Completion, 32> polled_;  // of feed(): here it is made once
  WakeTimer timer_;
  bool over_ = false;
};

// A Call under way.
class ServedCall final : public IncomingCall {
 public:
  ServedCall(std::shared_ptr<ServerCore> core, std::shared_ptr<ServerSession> session, rpcrdma::CallToken token,
             HeldBuffer message, const rpcrdma::RpcCall& head);
  ~ServedCall() override;

  [[nodiscard]] ConstBytes message() const override { return message_.bytes(); }
  [[nodiscard]] const rpcrdma::RpcCall& head() const override { return head_; }
  [[nodiscard]] const std::string& peer() const override { return session_->peer(); }
  [[nodiscard]] std::uint16_t peer_port() const override { return session_->peer_port(); }
  void done_reading() override { message_.reset(); }
  [[nodiscard]] Caller caller() const override;
  [[nodiscard]] Result<void> answer(Octets reply) override;
  // The same, of the results.
  void answer(Answer answer);
  // Whether it is to be executed. Else its answer is, or will be, that to the same Call of before. Once.
  [[nodiscard]] bool is_new();

 private:
  void send(ConstBytes head, ConstBytes body);
  // Before it is sent.
  void note_answer(ConstBytes head, ConstBytes body);

  const std::shared_ptr<ServerCore> core_;
  const std::shared_ptr<ServerSession> session_;
  const rpcrdma::CallToken token_;
  HeldBuffer message_;
  rpcrdma::RpcCall head_;
  std::optional<ReplayCache::Key> key_;  // nothing: it is not remembered
  std::atomic<bool> answered_{false};
};

class ServerCore final : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(cm::Engine& engine, ServerOptions options);
  ~ServerCore();

  void serve(std::uint32_t program, std::uint32_t version, Server::Handler handler);
  void serve_messages(Server::MessageHandler handler);
  [[nodiscard]] Result<void> listen(std::shared_ptr<ServerTransport> transport);
  void stop();
  void drop_connections();
  [[nodiscard]] Server::Stats stats() const;

  void dispatch(const std::shared_ptr<ServedCall>& call);
  void remove(ServerSession* session);
  [[nodiscard]] cm::Engine& engine() { return engine_; }
  [[nodiscard]] ReplayCache& replays() { return replays_; }
  void count_reply() { ++replies_; }

 private:
  void on_incoming(Incoming incoming);
  // Of a program that is not served as it was called.
  [[nodiscard]] Octets objection(const rpcrdma::RpcCall& head);

  cm::Engine& engine_;
  const ServerOptions options_;
  const std::shared_ptr<Places> places_;
  ReplayCache replays_;
  std::mutex mu_;
  const std::shared_ptr<HandlerThreads> threads_;  // null: the engine
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const Server::Handler>> programs_;
  std::shared_ptr<const Server::MessageHandler> messages_;
  std::vector<std::shared_ptr<ServerTransport>> transports_;
  std::unordered_set<std::shared_ptr<ServerSession>> sessions_;
  bool stopped_ = false;
  std::atomic<std::uint64_t> calls_{0}, replies_{0}, recognized_{0}, connections_{0};
};

}  // namespace iwarp::rpc
