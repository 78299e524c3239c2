// QueuePair: the application's end of one connection. Exists and takes post_recv() before it is connected and before a
// Reply leaves, so that no early Send finds the queue empty. Thread-safe: one lock guards the connection core; a post
// on an idle connection transmits in the calling thread.
//
// A queue pair serves one connection in its life. Keep it in a std::shared_ptr: the engine shares it while connected,
// and goes on reading and writing the memory that was posted, until the connection has ended or abort() has returned.
// cm::Link owns both and sees to that.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "iwarp/endpoint/endpoint.h"
#include "iwarp/endpoint/half.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/context.h"
#include "iwarp/verbs/driver.h"
#include "iwarp/verbs/queue_pair_state.h"
#include "iwarp/verbs/shared_receive_queue.h"
#include "iwarp/verbs/turn_mutex.h"

namespace iwarp::verbs {

using rdmap::RecvWr;
using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::Sge;
using rdmap::SgeList;
using rdmap::WcOp;

class QueuePair {
 public:
  // What a queue pair is made with.
  struct Options {
    CompletionQueue* send_cq = nullptr;  // both are needed, and may be the same. They may go before the queue pair:
    CompletionQueue* recv_cq = nullptr;  // then its completions are dropped
    endpoint::Options stream{};          // queue depths, inline data, RFC 7306, the time for an end
    // Where its Receives come from; null: post_recv() gives it its own. Of the same Protection Domain. It may go before
    // the queue pair, which finds it empty then. stream.rq_depth counts for nothing with it.
    SharedReceiveQueue* srq = nullptr;
    // Its number, which completions and events name; 0: one that no other queue pair of this process was given here.
    // Who chooses numbers sees to it that they differ.
    std::uint32_t number = 0;
    void* user = nullptr;  // the application's own, in each completion; never looked at here
  };

  // With options that usable() refuses it takes no post and is never connected.
  QueuePair(const ProtectionDomain& pd, const Options& options);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // kInvalidArgument, in words: a completion queue is missing, the shared receive queue is of another Protection Domain
  // or not usable itself, or endpoint::validate() refuses the stream's options.
  // Whatever is done with such a queue pair, connecting included, fails with the same error.
  [[nodiscard]] const Result<void>& usable() const { return usable_; }

  // See endpoint::Endpoint for the errors. The memory named must stay registered and untouched until the completion.
  // When the connection, or the attempt at one, has ended the request is taken all the same, and its completion, with
  // kFlushed, is in the completion queue when this returns; kQueueFull: that queue has no room for it. Likewise after
  // disconnect(), though there it comes behind what is still to be done.
  [[nodiscard]] Result<void> post_send(const SendWr& wr) { return post_send(std::span{&wr, 1}); }
  // Posts a list with one transmission for all. On error the requests before the refused one stay posted; `posted` (if
  // given) tells how many.
  [[nodiscard]] Result<void> post_send(std::span<const SendWr> list, std::size_t* posted = nullptr);
  // As post_send() of a list, but all of it or, on error, nothing (kResource apart: no memory for another request).
  [[nodiscard]] Result<void> post_all(std::span<const SendWr> list);
  // As post_send(), for the receive queue. kInvalidArgument: it has a shared one.
  [[nodiscard]] Result<void> post_recv(const RecvWr& wr) { return post_recv(std::span{&wr, 1}); }
  // A list. On error the requests before the refused one stay posted; `posted` (if given) tells how many.
  [[nodiscard]] Result<void> post_recv(std::span<const RecvWr> list, std::size_t* posted = nullptr);

  // Ends the connection, or the attempt at one, abruptly, at any time. When this returns everything posted has
  // completed (kFlushed): but for what is posted later nothing will be added to the completion queues any more, and no
  // memory that was posted is read or written, whoever still holds this queue pair.
  void abort();
  // What becomes of requests that a queue pair leaves unfinished: they complete nowhere, or with kFlushed.
  enum class Unfinished : std::uint8_t { kDropped, kFlushed };
  // Goes without a loss for the peer: what has completed so far stays in its completion queues and reaches the peer,
  // and an orderly end follows behind the scenes, for up to endpoint::Options::close_timeout. Everything else that was
  // posted, or is posted later, comes to `what`, at once. When this returns no memory that was posted is read or
  // written. What libibverbs' applications expect of ibv_destroy_qp() and, with kFlushed, of ibv_modify_qp() to the
  // error state. If a message has left in part, the peer sees TCP end inside an FPDU: kConnectionLost there.
  void leave(Unfinished what = Unfinished::kDropped);

  // With endpoint::Options::outlive_peer, when the peer has gone: no longer does anything that is to be sent wait for
  // it. Else nothing happens.
  void give_up_peer();

  // Where it is in its life, at this moment; kError in a forked child. A peer that has gone unnoticed
  // (Options::outlive_peer) leaves it in kRts.
  [[nodiscard]] QueuePairState state() const;
  // Whether its completion queues hold completions of it that succeeded and that nobody has polled. At no cost; so
  // where CompletionQueue::drop() took others of the same queue it may say yes for longer.
  [[nodiscard]] bool unpolled() const;
  // What it was made with, what waits in it and what was agreed on with the peer: one moment of all of it.
  struct Attributes {
    QueuePairState state = QueuePairState::kInit;  // as state()
    bool draining = false;                         // in kSqDrain: what was posted before is not all done yet
    std::size_t sq_depth = 0;                      // requests that the send queue takes
    std::size_t rq_depth = 0;         // likewise the receive queue; 0: Receives are those of a shared receive queue
    std::size_t sends_posted = 0;     // requests that hold a place there, for they or earlier ones have not completed
    std::size_t receives_posted = 0;  // likewise
    std::size_t max_sge = rdmap::kMaxSge;  // pieces of a request, of either queue
    std::size_t max_inline = 0;            // octets of SendWr::inline_data
    bool rfc7306 = false;                  // Immediate Data and Atomics are sent: both ends are said to know them
    bool send_immediate = false;           // likewise Sends with Immediate
    bool established = false;              // it is or was connected. What follows is 0 or false before kRts
    std::uint16_t ird = 0;                 // Reads and Atomics of the peer that may be under way
    std::uint16_t ord = 0;                 // likewise to the peer
    std::size_t mulpdu = 0;                // octets of a DDP segment that is sent, at most; follows the path MTU
    bool crc = false;                      // FPDUs have a CRC
    bool markers_sent = false;             // FPDUs sent have Markers
    bool markers_received = false;         // FPDUs received have Markers
  };
  // kInvalidArgument: not usable(), used after fork().
  [[nodiscard]] Result<Attributes> query() const;
  // Asks for another state, as ibv_modify_qp() does it of an iWARP device. kSqDrain, when connected: the orderly end,
  // Connection::disconnect(). kError, in any state: abort(). The state that it is in: nothing is done. Anything else is
  // kInvalidArgument, which names both states: connecting and accepting bring it to kRts.
  [[nodiscard]] Result<void> modify(QueuePairState to);
  // A mark behind all that was posted to the send queue so far: when that has completed, well or not, a completion with
  // WcOp::kDrain, kOk and this `wr_id` comes to `send_cq`. Sends nothing, holds nothing up, and takes a place of the
  // send queue until then. kQueueFull, kResource as post_send(). Of the receive queue: a post_recv() behind the end.
  [[nodiscard]] Result<void> drain(std::uint64_t wr_id);

  // Which messages beyond RFC 5040 the peer is known to understand, in place of stream.rfc7306 and send_immediate, from
  // here to its end: for an agreement with the peer's application, before accept(). Who connects says it with
  // cm::ConnectOptions::judge_reply. kInvalidArgument: it is connected already, or has been; not usable().
  [[nodiscard]] Result<void> set_extensions(rdmap::Extensions known);

  // Unique in this process; completions carry it.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  // Its Protection Domain: memory of others is out of reach.
  [[nodiscard]] const ProtectionDomain& pd() const { return pd_; }
  // Receives of the shared receive queue that it has taken so far, messages that did not come whole included. Without
  // waiting.
  [[nodiscard]] std::uint64_t receives_taken() const { return share_ ? share_->taken() : 0; }
  // For memory that only this connection may reach.
  [[nodiscard]] ddp::StreamId stream() const { return who_.stream; }

  // --- For the driver (cm, sctp_cm).
  using Lock = std::unique_lock<TurnMutex>;
  [[nodiscard]] Lock lock() { return Lock(mu_); }
  // The members below need the lock.
  // What a half puts on its lower layer.
  [[nodiscard]] endpoint::Endpoint& endpoint() { return endpoint_; }
  // Who moves its octets from here on, and with what; null: nobody. `half` may be null while there is no connection.
  void set_driver(Driver* driver, endpoint::Half* half = nullptr);
  [[nodiscard]] Driver* driver() const { return driver_; }
  // Who polls its completion queues by way of `engine` drives `driver` from now on, until part_queues().
  void join_queues(const Progress& engine, const std::weak_ptr<Driver>& driver, const Driver* key);
  void part_queues(const Driver* key);
  // Lets the threads that wait for the lock have it first. Without any it does nothing.
  void give_way() {
    if (mu_.wanted()) mu_.give_way();
  }
  [[nodiscard]] bool lock_wanted() const { return mu_.wanted(); }
  // Moves completions from the core to the completion queues.
  void drain_completions();
  // For its shared receive queue, where a message waits for a Receive. Without the lock.
  void receives_came();
  // For who ends the queue pair's life though others may still share it: no asynchronous event but kCqOverflow names it
  // from here on. Without the lock.
  void drop_events();

 private:
  using Cq = std::shared_ptr<CompletionQueue::Shared>;
  static constexpr const char* kNoRoom =
      "the connection is over, and the completion queue has no room for what is flushed";
  // Its way to a shared receive queue.
  class Share final : public rdmap::ReceiveSource {
   public:
    // `waits`: hears when Receives are posted after there was none; or null.
    Share(std::shared_ptr<SharedReceiveQueue::Shared> queue, QueuePair* waits);
    void let_go();
    [[nodiscard]] bool take(rdmap::RecvWr& wr) override;
    [[nodiscard]] std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }

   private:
    std::shared_ptr<SharedReceiveQueue::Shared> queue_;
    std::shared_ptr<SharedReceiveQueue::Waiter> waiter_;  // null: it does not wait
    std::atomic<std::uint64_t> taken_{0};
  };

  // Places of a completion queue for requests that complete in the call that posts them, or refused for want of these.
  // With mu_ held from its making to its end.
  class Room {
   public:
    // `at_once`: they do; else there is no limit.
    Room(QueuePair& qp, const Cq& cq, bool at_once, std::size_t posts);
    ~Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    // Of `posts`, those that may be posted.
    [[nodiscard]] std::size_t most() const { return most_; }

   private:
    QueuePair& qp_;
    const Cq& cq_;
    std::size_t most_;
  };
  // Whether a request of the send queue completes when it is posted.
  [[nodiscard]] bool sends_end_at_once() const {
    return endpoint_.phase() > endpoint::Phase::kDraining && !endpoint_.waits_alone();
  }
  // Whether there is a connection, and somebody who goes on with it by the clock.
  [[nodiscard]] bool driven() const { return driver_ != nullptr && half_ != nullptr; }
  void finish_post();
  // Precondition: mu_ held.
  [[nodiscard]] Result<void> post_in_turn(std::span<const SendWr> list, const Room& room, std::size_t* posted);
  [[nodiscard]] QueuePairState locked_state() const;
  // A message that waited for a Receive may have one.
  void go_on();
  // Moves what waits.
  void move_completions();
  // Raises the events of an end, each once.
  void tell_end();
  void kick();
  void disconnect(TimePoint now);
  void end(const Error& reason);
  void end_at_once(const Error& reason);
  // What keeps a request from being posted at all.
  [[nodiscard]] Result<void> may_post() const;
  // False when the queue overflowed, which has ended the connection.
  [[nodiscard]] bool move(const Cq& cq, std::optional<rdmap::Completion> (endpoint::Endpoint::*poll)(),
                          std::atomic<std::uint64_t>& last_good);

  ProtectionDomain pd_;
  ddp::StreamKey who_;
  Cq send_cq_, recv_cq_;
  Result<void> usable_;
  std::uint32_t number_;
  mutable TurnMutex mu_;
  std::optional<Share> share_;
  endpoint::Endpoint endpoint_;
  std::size_t promised_ = 0;  // places that a Room has
  const CompletionQueue::Shared* promised_by_ = nullptr;
  Driver* driver_ = nullptr;
  endpoint::Half* half_ = nullptr;
  Driver::Agreed agreed_;  // with a peer whose driver has gone
  bool told_fatal_ = false, told_last_ = false;
  void* const user_;
  bool left_ = false;                                                 // leave(): nothing completes any more
  std::atomic<std::uint64_t> last_good_send_{0}, last_good_recv_{0};  // positions in the completion queues; 0: none
  AsyncEvents::Source fatal_, last_;
};

}  // namespace iwarp::verbs
