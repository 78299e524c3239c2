// An RPC-over-RDMA client served by a TCP server: Responder on one side, record stream on the other. One thread.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "iwarp/gateway/deadline_timer.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/layout_filter.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/rdma_channel.h"
#include "iwarp/gateway/rdma_provider.h"
#include "iwarp/gateway/record_stream.h"
#include "iwarp/gateway/session.h"
#include "iwarp/gateway/session_life.h"
#include "iwarp/gateway/stall_watch.h"
#include "iwarp/gateway/turn_queue.h"
#include "iwarp/rpcrdma/memory_budget.h"
#include "iwarp/rpcrdma/responder.h"

namespace iwarp::gateway {

class RdmaSession final : public Session, public std::enable_shared_from_this<RdmaSession> {
 public:
  // Called once, when the session is over: whether Calls were outstanding, and the local port of the backend
  // connection.
  using Ended = std::function<void(RdmaSession&, std::uint16_t backend_port, bool calls_outstanding)>;

  // `request` is the client's; it is answered by accept(). `queues`: its own. `backend` is connected.
  RdmaSession(const Shared& shared, const RdmaRequest& request, std::unique_ptr<RdmaQueues> queues,
              boost::asio::ip::tcp::socket backend, Ended ended);

  // Answers the client's request to connect.
  void accept(RdmaRequest& request);

  void drain() override;
  void stop() override;
  void orphan() override;
  void add_live_counters(Stats::Snapshot& to) const override;
  void take_turn() override { pump(); }

 private:
  void on_established(const Error& error, const std::shared_ptr<RdmaLink>& link, const std::string& failure);
  void on_refused(const std::string& line);
  void on_disconnected(const stream::Disconnected& how);
  void pump();
  void wake();
  void wait_for_turn() { turns_->add(shared_from_this()); }
  void handle(rpcrdma::Responder::CallReceived call);
  void handle(const rpcrdma::Responder::CallRepeated& repeated);
  void handle(rpcrdma::Responder::BackwardReply reply);
  void handle(const rpcrdma::Responder::BackwardFailed& failed);
  void handle(const rpcrdma::Responder::MustClose& must_close);
  // The time, read once in a round of work, however many messages it moves.
  [[nodiscard]] TimePoint round_time();
  [[nodiscard]] bool forward_to_tcp();
  [[nodiscard]] bool take_records();
  void give_to_rdma(rpcrdma::Buffer record);
  void give_backward_call(rpcrdma::Buffer record);
  void owe_error(std::uint32_t xid);
  void answer_failed_backward();
  void finish_if_drained();
  void finish_if_delivered();
  // Ends both connections.
  void give_up(EndReason why, const Error& error);
  void watch_for_stalls(TimePoint now);
  void on_deadline();
  void note_version();
  void note_messages();
  void note_refusals();
  void release();

  struct Outgoing {
    rpcrdma::Buffer message;
    MessageKind kind;
  };

  const std::shared_ptr<const Options> kept_options_;  // the front may have others by now
  const Options& options_;
  const std::shared_ptr<Ledger> ledger_;
  Stats& stats_;
  EventLog& log_;
  std::shared_ptr<TurnQueue> turns_;
  std::shared_ptr<SiwCrcTrap> crc_trap_;
  RpcMeter meter_;
  Ended ended_;
  RdmaChannel channel_;
  rpcrdma::ResponderOptions responder_options_;
  rpcrdma::Responder responder_;
  std::shared_ptr<RecordStream> tcp_;
  std::shared_ptr<RdmaLink> connection_;
  struct AtServer {
    rpcrdma::CallToken token{};
    TimePoint since{};
    RpcProgram program{};
    std::uint64_t read_bytes = 0;  // came by RDMA Read
  };

  std::unordered_map<std::uint32_t, AtServer> outstanding_;  // Calls at the server, by xid
  std::deque<Outgoing> to_tcp_;
  std::unordered_map<std::uint32_t, TimePoint> backward_;  // Calls at the client, by xid
  std::deque<std::uint32_t> failed_backward_;              // xids that the server is owed an error for
  LayoutFilter layouts_{!options_.pnfs};
  DeadlineTimer timer_;
  std::optional<TimePoint> delivery_ends_;  // set when the server has closed
  StallWatch record_, reads_, replies_;
  std::uint64_t releases_seen_ = 0;
  std::optional<TimePoint> round_;  // round_time(), once it was asked for
  rpcrdma::Responder::Stats refusals_seen_{};
  rpcrdma::Responder::Stats noted_{};  // by note_messages()
  std::uint16_t backend_port_ = 0;
  Life life_ = Life::kOpening;
  bool shutting_down_ = false;  // the whole gateway: nobody comes back
  bool pumping_ = false;
  bool version_noted_ = false;
};

}  // namespace iwarp::gateway
