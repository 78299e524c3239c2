// What a Client shares with the connection that it has, and with what it waits for. One lock guards all of it; nothing
// of the application's is called with it. Internal to rpc.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "iwarp/rpc/client.h"
#include "iwarp/rpc/keyed_sum.h"
#include "iwarp/rpc/places.h"
#include "iwarp/rpc/wake_timer.h"
#include "iwarp/rpc/whole_message.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/server_versions.h"

namespace iwarp::rpc {

// One connection of a Client. Guarded by the lock of the ClientCore but for its end.
class ClientSession final : public BufferKeeper, public std::enable_shared_from_this<ClientSession> {
 public:
  ClientSession(std::shared_ptr<std::mutex> mu, std::weak_ptr<ClientCore> core, std::unique_ptr<Channel> made,
                const ClientOptions& options);
  ~ClientSession() override;

  void give_back(rpcrdma::Buffer&& buffer) noexcept override;
  // Answers a backward Call. Any thread, without the lock.
  void answer_backward(rpcrdma::CallToken token, ConstBytes reply);
  [[nodiscard]] bool is_over() const;  // likewise
  // Likewise, with the lock.
  void put_backward(rpcrdma::CallToken token, ConstBytes reply);
  // Feeds what has completed to the Requester; whether anything had.
  bool feed();

  const std::unique_ptr<Channel> channel;
  rpcrdma::BufferPool pool;
  rpcrdma::Requester requester;
  bool starved = false;                     // a Call waits for memory
  std::uint64_t releases_seen = 0;          // of the pool
  std::uint64_t shortages_seen = 0;         // likewise
  bool retries = false;                     // somebody may wait for memory that the system has refused
  bool heard = false;                       // a Reply came
  bool over = false;                        // nothing is sent on it any more
  bool outdated = false;                    // a Call cannot be sent on it: the server has another of that xid
  std::optional<TimePoint> asking_since{};  // for the version
  // Calls whose xids the application chose, that were sent and given up: the server may answer them yet. One for each
  // credit at most.
  struct GivenUp {
    std::optional<KeyedSum> sum{};
    std::size_t max_reply = 0;
  };
  std::unordered_map<std::uint32_t, GivenUp> given_up{};

 private:
  const std::shared_ptr<std::mutex> mu_;
  const std::weak_ptr<ClientCore> core_;
  std::array<rpcrdma::Completion, 32> polled_;  // of feed(): here it is made once
};

class ClientCore final : public std::enable_shared_from_this<ClientCore> {
 public:
  ClientCore(cm::Engine& engine, std::shared_ptr<ClientTransport> transport, ClientOptions options);

  // Precondition of xids: the first word of the message is free.
  void begin(WholeMessage message, const CallOptions& options, Client::Done done,
             const std::shared_ptr<cm::Canceller>& cancel);
  void close();
  void serve(std::uint32_t program, std::uint32_t version, Handler handler);
  // Does what can be done now: for the event loop, and for the application.
  void turn();
  void turn_for_application();
  [[nodiscard]] Client::Stats stats() const;

 private:
  struct Pending {
    WholeMessage message;
    TimePoint deadline{};
    Client::Done done;        // empty: it was told already
    std::uint64_t order = 0;  // in which they began
    std::size_t max_reply = SIZE_MAX;
    bool chosen = false;  // its xid, by the application
    bool one_way = false;
    bool sent = false;         // on this connection
    bool sent_before = false;  // on another
  };
  using Calls = std::unordered_map<std::uint32_t, Pending>;
  using Acts = std::vector<std::function<void()>>;

  // Those below need the lock. `acts`: what is to be called without it.
  void round(TimePoint now, Acts& acts);
  void connect(TimePoint now);
  void on_connected(const Error& error, std::unique_ptr<Channel> channel);
  [[nodiscard]] bool take_events(Acts& acts);
  void send_waiting(TimePoint now, Acts& acts);
  // Nothing: no Call of that xid is outstanding on the connection. True: this very one is, and its Reply will be taken.
  // False: it cannot be sent on this connection.
  [[nodiscard]] std::optional<bool> take_up(std::uint32_t xid, const Pending& call);
  void give_up(std::uint32_t xid, const Pending& call);
  void on_left(std::uint32_t xid, Acts& acts);
  // What is asked of the server on the next connection.
  [[nodiscard]] ClientOptions options_for(TimePoint now) const;
  // When its time to answer the question for the version is over; nothing: nothing is asked.
  [[nodiscard]] std::optional<TimePoint> question_deadline(TimePoint now);
  void probe(TimePoint now);
  using End = rpcrdma::ServerVersions::End;
  void lose(const Error& why, TimePoint now, Acts& acts, End how = End::kLost);
  void not_reached(const Error& why, TimePoint now, Acts& acts);
  void finish(Calls::iterator call, const Error& error, Reply reply, Acts& acts);
  void finish(std::uint32_t xid, const Error& error, Acts& acts);
  void on_reply(rpcrdma::Requester::ReplyReceived reply, Acts& acts);
  void on_backward(rpcrdma::Requester::BackwardCall call, Acts& acts);
  void end(std::uint32_t xid, const Error& error);
  friend class WakeTimer;
  void on_timer();
  // Give the lock back first. leave(): inside a call of the application, whose handlers then run behind it, as it may
  // hold locks of its own.
  void leave(std::unique_lock<std::mutex>& lock, Acts acts);
  void leave_and_deliver(std::unique_lock<std::mutex>& lock, Acts acts);

  boost::asio::io_context& io_;
  const std::shared_ptr<ClientTransport> transport_;
  const ClientOptions options_;
  const std::shared_ptr<std::mutex> mu_ = std::make_shared<std::mutex>();
  std::shared_ptr<ClientSession> session_;
  std::shared_ptr<ClientSession> gone_;  // the last one, to go without the lock
  Calls calls_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const Handler>> programs_;  // for the server
  const std::shared_ptr<Places> backward_places_;  // of its Calls under way, on whatever connection they came
  std::deque<std::uint32_t> to_send_;
  std::uint32_t next_xid_;
  std::uint64_t begun_ = 0;
  WakeTimer timer_;
  TimePoint connect_at_{};
  unsigned failures_ = 0;  // attempts to connect since a Reply came
  bool connecting_ = false;
  bool reached_ = false;  // once at least
  bool closed_ = false;
  rpcrdma::ServerVersions versions_;
  Client::Stats stats_{};
};

}  // namespace iwarp::rpc
