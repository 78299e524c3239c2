// A TCP client served by an RPC-over-RDMA server: record stream on one side, Requester on the other. One thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

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
#include "iwarp/rpcrdma/requester.h"

namespace iwarp::gateway {

class TcpSession final : public Session, public std::enable_shared_from_this<TcpSession> {
 public:
  using Ended = std::function<void(TcpSession&)>;

  // `queues`: made to connect with.
  TcpSession(const Shared& shared, std::unique_ptr<RdmaQueues> queues, boost::asio::ip::tcp::socket client,
             Ended ended);

  // Connects to the RPC-over-RDMA server; Calls are read once that succeeded.
  void connect(const HostPort& server, std::optional<boost::asio::ip::address> source);

  void drain() override;
  void stop() override;
  void orphan() override;
  void add_live_counters(Stats::Snapshot& to) const override;
  void take_turn() override;  // pump(), or deliver_rest() at the end

 private:
  void refuse(RefuseReason why, const std::string& text);
  void on_established(const Error& error, const std::shared_ptr<RdmaLink>& connection);
  void on_disconnected(const stream::Disconnected& how);
  void pump();
  void wake();
  void wait_for_turn() { turns_->add(shared_from_this()); }
  void handle(rpcrdma::Requester::ReplyReceived reply);
  void handle(const rpcrdma::Requester::CallLeft& /*left*/) {}  // is never asked for
  void handle(const rpcrdma::Requester::CallFailed& failed);
  void handle(rpcrdma::Requester::BackwardCall call);
  void handle(const rpcrdma::Requester::MustClose& must_close);
  // The time, read once in a round of work, however many messages it moves.
  [[nodiscard]] TimePoint round_time();
  [[nodiscard]] bool forward_to_tcp();
  [[nodiscard]] bool take_records();
  [[nodiscard]] bool give_to_rdma(rpcrdma::Buffer& record);
  [[nodiscard]] bool give_call(rpcrdma::Buffer& record);
  void give_backward_reply(rpcrdma::Buffer& record);
  void close_rdma();
  // Ends the server's connection, and with it the client's, once what is complete was delivered.
  void give_up(EndReason why, const Error& error);
  void watch_for_stalls(TimePoint now);
  void on_deadline();
  // An RPC error for that xid. Nothing: no memory.
  [[nodiscard]] std::optional<rpcrdma::Buffer> make_error_record(std::uint32_t xid);
  // After the RDMA connection has ended: what is complete goes to the client.
  void deliver_rest();
  void end();
  void finish_if_drained();
  void release();
  // In the log and in the counters, once it is settled.
  void tell_version();
  void tell_configuration();
  // What the connection has taught of the server's versions.
  void remember_version();
  void note_messages();

  struct Outgoing {
    rpcrdma::Buffer message;
    MessageKind kind;
  };

  cm::Engine& engine_;
  const std::shared_ptr<const Options> kept_options_;  // the front may have others by now
  const Options& options_;
  const std::shared_ptr<Ledger> ledger_;
  Stats& stats_;
  EventLog& log_;
  std::shared_ptr<TurnQueue> turns_;
  std::shared_ptr<SiwCrcTrap> crc_trap_;
  std::shared_ptr<VersionMemory> versions_;
  RpcMeter meter_;
  std::shared_ptr<rpcrdma::MemoryBudget> memory_;
  Ended ended_;
  RdmaChannel channel_;
  std::string server_;
  rpcrdma::RequesterOptions requester_options_;
  std::optional<rpcrdma::Requester> requester_;
  std::shared_ptr<RecordStream> tcp_;
  std::shared_ptr<RdmaLink> connection_;
  struct AtClient {
    std::uint32_t xid = 0;
    rpcrdma::CallToken token{};
    TimePoint expires{};
    TimePoint since{};
  };

  std::deque<AtClient> backward_;  // Calls of the server at the client, oldest first
  std::deque<Outgoing> to_tcp_;
  LayoutFilter layouts_{!options_.pnfs};
  DeadlineTimer timer_;
  std::optional<TimePoint> delivery_ends_;  // set when the RDMA connection has ended
  std::optional<rpcrdma::Buffer> held_record_;
  StallWatch record_, replies_, credits_, leaving_, question_;
  std::uint64_t releases_seen_ = 0;
  rpcrdma::Requester::Stats noted_{};  // by note_messages()
  std::optional<TimePoint> round_;     // round_time(), once it was asked for
  Life life_ = Life::kOpening;
  bool shutting_down_ = false;  // the whole gateway: nobody comes back
  bool pumping_ = false;
  TimePoint begun_{};  // the connection
  bool version_told_ = false;
  bool configuration_noted_ = false;
  bool server_ended_ = false;  // or is why the gateway did
};

}  // namespace iwarp::gateway
