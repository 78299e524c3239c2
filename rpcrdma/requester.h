// The client's end of an RPC-over-RDMA connection, of version 1 (RFC 8166) or 2
// (draft-cel-nfsv4-rpcrdma-version-two-00), for RPC programs it knows nothing about: sends Calls in line or as
// Position-Zero Read chunk, offers a Reply chunk wherever a Reply may be long, and hands Replies over as contiguous RPC
// messages, after fencing the memory the server had access to. It also takes backward Calls (RFC 8167), in line only
// unless options say otherwise. Where options say so, it speaks the draft of 2005 as well: the connection is configured
// before the first Call, data are aligned for the server, and Replies in Read chunks are fetched.
// It does no I/O: it posts to an Endpoint and is driven by completions.
//
// Driving: construct when private data was exchanged, start(), then after every input (on_completion, call,
// reply_backward, progress) drain poll_event(). Call progress() after Buffers were given back: waiting Calls go on.
// After MustClose only completions are accepted; close the connection.
//
// Lifetime: endpoint and pool outlive the Requester; destroy it only after the connection is closed and no further
// access by the endpoint or the peer is possible. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/time.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/call_assembly.h"
#include "iwarp/rpcrdma/credits.h"
#include "iwarp/rpcrdma/draft_2005.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/offer_policy.h"
#include "iwarp/rpcrdma/option_exchange.h"
#include "iwarp/rpcrdma/outstanding_call.h"
#include "iwarp/rpcrdma/private_data.h"
#include "iwarp/rpcrdma/receive_ring.h"
#include "iwarp/rpcrdma/reply_plan.h"
#include "iwarp/rpcrdma/responder.h"
#include "iwarp/rpcrdma/session_limits.h"
#include "iwarp/rpcrdma/transmit_queue.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/rpcrdma/version_negotiation.h"

namespace iwarp::rpcrdma {

struct OfferPlan;

// What a Requester asks for and takes.
struct RequesterOptions {
  // Calls outstanding at most, requested in every Call; the server's grant may be lower. Each costs two Receive
  // buffers.
  std::uint32_t credits = 64;
  // Backward Calls the server may have outstanding, granted in backward Replies; 16 like Linux clients. Each costs two
  // Receive buffers.
  std::uint32_t backward_credits = 16;
  // Take chunks in backward Calls of version 1 and answer into them (RFC 8167 s5.3): the RDMA Reads and Writes are then
  // ours, and need an ORD, and an IRD of the server. Off, and in version 2 always, such Calls get ERR_CHUNK.
  bool backward_chunks = false;
  // Largest backward Call with Read chunks, octets; larger ones get ERR_CHUNK.
  std::size_t max_backward_call_bytes = 64u << 10;
  // Size of each Receive, and of the largest Send, octets: 1024..262144 in steps of 1024. The Linux server sends
  // Replies of up to 4096 octets in line whatever we announce: less than 4096 breaks with it.
  std::uint32_t inline_bytes = 4096;
  // Of the largest Send, where that is another: the same range. 0: the same.
  std::uint32_t send_bytes = 0;
  // Largest Reply expected, octets: the size of the Reply chunk of each Call whose Reply has no lower bound. Must hold
  // a READ of the file server's maximum.
  std::size_t max_reply_bytes = (1u << 20) + (64u << 10);
  // Calls that may wait inside for a credit, memory or room before call() says kQueueFull.
  std::size_t max_queued_calls = 16;
  // Let the server invalidate our STags with its Replies.
  bool remote_invalidation = true;
  // Keep each Call until its Reply, for take_outstanding(): a copy of every Call that goes in line. Off for owners
  // whose clients repeat their Calls themselves, as a gateway's do.
  bool retransmission = false;
  // Which chunks are used where there is a choice. By default those that Linux 6.1 survives.
  OfferPolicy offers{};
  // Bulk data of other programs than NFS; null: none, their long messages travel whole.
  std::shared_ptr<const DeclaredBinding> declared{};
  // The version asked for, kVersion1 or kVersion2, and the lowest that is good enough. With kVersion2 the first Call
  // goes alone, and the server's answer settles the version (version_negotiation.h). kVersion1 asks nothing, as all
  // servers there are expect it. A server may leave the question unanswered: there is no clock here, so the owner has
  // to close the connection after a time of state kAsking, and to remember what it learned (server_versions.h).
  std::uint32_t highest_version = kVersion1;
  std::uint32_t lowest_version = kVersion1;  // of these two as well
  Limits header_limits{};  // bounds for the chunk lists of what the server sends; its dialect follows from the versions
  OptionRegistry extensions{};    // of version 2 that are known; others get RDMA_ERR_INVAL_OPTION
  Draft2005Options draft_2005{};  // goes with highest_version kVersion1 only
};

// Private data to announce for these options.
[[nodiscard]] PrivateData private_data(const RequesterOptions& options);
// Pool options whose control budget suits these options; the others keep their defaults.
[[nodiscard]] BufferPool::Options pool_options(const RequesterOptions& options);

class Requester {
 public:
  // `message` has kHeadroomBytes in front. No STag of this RPC is valid any more.
  struct ReplyReceived {
    std::uint32_t xid = 0;        // of the Call
    Buffer message{};             // the RPC Reply
    bool in_reply_chunk = false;  // it came in a Reply chunk
    std::size_t written = 0;      // octets of it that came by RDMA Write
    TimePoint since{};            // as given to call(), like the tag
    std::uint32_t tag = 0;        // as given to call()
    std::size_t read_bytes = 0;   // of its Call that the server fetched by RDMA Read
    bool larger_chunk = false;    // the Call was sent twice: the Reply did not fit the first Reply chunk
  };
  // Why a Call gets no Reply.
  enum class Failure : std::uint8_t {
    kErrChunk,  // the server could not use our chunks, or its Reply did not fit into them
    kErrVers,   // the server speaks no version that is good enough
    kBadReply,  // the Reply's chunks are not those offered, or do not hold the Reply
    kLocal,     // we could not expose memory for it
  };
  // That Call is on its way, and nothing more of this end is needed for it: TCP has it. It may be lost all the same
  // with the connection. Told of those for which call() or want_again() was asked to, once each, but not of Calls that
  // the server fetches by RDMA Read, nor of the one that asks for the version, nor of those of call_again(): of these
  // the Reply tells.
  struct CallLeft {
    std::uint32_t xid = 0;  // of the Call
    std::uint32_t tag = 0;  // as given to call()
  };
  // That Call gets no Reply, and must not be sent again as it is. Answer the RPC client with an RPC error.
  struct CallFailed {
    std::uint32_t xid = 0;           // of the Call
    Failure why{};                   // why
    std::uint32_t version_low = 0;   // of kErrVers: what the server speaks
    std::uint32_t version_high = 0;  // likewise
    std::uint32_t tag = 0;           // as given to call()
  };
  // A Call from the server. Answer with reply_backward() or abandon_backward(). `message` has kHeadroomBytes in front.
  struct BackwardCall {
    CallToken token{};      // names it until it is answered
    std::uint32_t xid = 0;  // as the server chose it
    Buffer message{};       // the RPC Call
  };
  // The last event. Close the connection. kMalformedRpc: the server sent what cannot be read, and so perhaps a Reply
  // that is lost now.
  struct MustClose {
    Error error{};  // why
  };
  using Event = std::variant<ReplyReceived, CallLeft, CallFailed, BackwardCall, MustClose>;  // what poll_event() gives

  // Counts since construction.
  struct Stats {
    std::uint64_t calls_in_line = 0;           // Calls sent as RDMA_MSG
    std::uint64_t calls_in_read_chunk = 0;     // Calls sent as RDMA_NOMSG
    std::uint64_t calls_again = 0;             // sent before, in a higher version or elsewhere: not counted above again
    std::uint64_t calls_larger = 0;            // sent once more with a larger Reply chunk: likewise
    std::uint64_t calls_reduced = 0;           // Calls whose data went as Read chunks of their own
    std::uint64_t write_chunks_offered = 0;    // Write chunks of Calls
    std::uint64_t replies_reduced = 0;         // Replies whose data came into Write chunks
    std::uint64_t reply_chunks_offered = 0;    // Calls that offered one
    std::uint64_t replies_in_line = 0;         // Replies that came in a Send
    std::uint64_t replies_in_reply_chunk = 0;  // Replies that came by RDMA Write
    std::uint64_t replies_in_read_chunk = 0;   // of the draft of 2005: Replies fetched by RDMA Read, wholly or in part
    std::uint64_t replies_padded = 0;          // likewise: Replies that came as RDMA_MSGP
    std::uint64_t calls_padded = 0;            // likewise: sent as RDMA_MSGP
    std::uint64_t dones_sent = 0;              // likewise: RDMA_DONE
    std::uint64_t failed_calls = 0;            // of the Failures all but kLocal
    std::uint64_t unknown_xids = 0;            // Replies to nothing we sent: dropped
    std::uint64_t dropped_messages = 0;        // malformed: the last message; backward Calls whose xid is outstanding
    std::uint64_t backward_calls = 0;          // from the server
    std::uint64_t backward_calls_by_read = 0;  // of these: with Read chunks
    std::uint64_t backward_replies = 0;        // answers to them
    std::uint64_t err_chunk_sent = 0;          // to backward Calls that we cannot take
    std::uint64_t garbage_args_sent = 0;       // to backward Calls that their chunks contradict
    std::uint64_t inval_option_sent = 0;       // to RDMA_OPTIONAL of a type that we do not know
    std::uint64_t send_payload_bytes = 0;      // RPC message octets in Sends, both directions
    std::uint64_t receive_payload_bytes = 0;   // of what came in: likewise
    std::uint64_t read_chunk_bytes = 0;        // offered to the server's RDMA Reads
    std::uint64_t reply_chunk_bytes = 0;       // returned by the server's RDMA Writes in Reply chunks
    std::uint64_t write_chunk_bytes = 0;       // likewise in Write chunks
  };

  // `limits`: negotiate(private_data(options), server's private data).
  // `shared`: Receives of a shared receive queue, in place of own ones; of at least the size of the options.
  Requester(Endpoint& endpoint, BufferPool& pool, const ConnectionLimits& limits, const RequesterOptions& options,
            ReceiveRing* shared = nullptr);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // Posts all Receives. On failure: close the connection. kInvalidArgument: versions that there are not, or the lowest
  // is above the highest.
  [[nodiscard]] Result<void> start();
  // A posted operation has ended. Each one, flushed ones too, has to be told here.
  void on_completion(const Completion& completion);
  // Oldest event not yet taken. Drain until nullopt.
  [[nodiscard]] std::optional<Event> poll_event();

  // Sends or queues a Call, a whole RPC message in a Buffer of this connection's pool (purpose kCall, or any), which is
  // taken over. Errors, with `message` untouched: kInvalidArgument (no RPC Call, or its xid is outstanding), kQueueFull
  // (stop reading from the RPC client until can_take_call()), kNotConnected. `tag`: the caller's, told again with what
  // becomes of the Call. `max_reply`: octets of the longest RPC Reply, where the caller knows better than
  // max_reply_bytes; a longer one ends the RPC with kErrChunk. `tell_left`: CallLeft is wanted.
  [[nodiscard]] Result<void> call(Buffer&& message, TimePoint now, std::uint32_t tag = 0,
                                  std::size_t max_reply = SIZE_MAX, bool tell_left = false);
  // Whether call() would not say kQueueFull. New Calls wait until those of call_again() have memory.
  [[nodiscard]] bool can_take_call() const {
    return !dead_ && queued_.size() < options_.max_queued_calls && (queued_.empty() || queued_.back().message);
  }
  // Nobody wants the Reply any more: no event will tell of it. Memory and credit of a Call that was sent come back with
  // the Reply. False if that xid is not outstanding. Others may have waited behind it: progress() lets them go.
  bool cancel(std::uint32_t xid);
  // The Reply to a Call that was sent and cancelled is wanted after all: for who sends that very Call again, which the
  // server has already. False: there is no such. `tell_left`: as of call().
  bool want_again(std::uint32_t xid, bool tell_left = false);
  // When the Call of that xid was given to call(); nothing if it is not outstanding. A client that repeats an old one
  // has most likely lost its Reply: only a new connection brings that, and the credit, back.
  [[nodiscard]] std::optional<TimePoint> outstanding_since(std::uint32_t xid) const;
  // Calls that were taken and are not on their way: they wait for a credit, memory or room.
  [[nodiscard]] std::size_t waiting_calls() const { return queued_.size(); }
  // Something cannot go on before memory comes back to the pool, or there is room: one of these, or what is on its way.
  [[nodiscard]] bool waits_for_room() const {
    return !queued_.empty() || transmit_.backlog() > 0 || assembler_.waits_for_memory();
  }
  // Calls wait, and every credit is held by one that the server has not answered.
  [[nodiscard]] bool waits_for_credit() const { return !queued_.empty() && window_.available() == 0; }
  // The first Call that waits cannot be exposed beside those that are out, as where a limit counts what they expose. It
  // is tried again when one of them ends.
  [[nodiscard]] bool waits_for_exposed() const { return !queued_.empty() && window_.in_flight() > 0 && is_held_back(); }
  // Calls that have ended, with a Reply or without: rises with every credit that comes back.
  [[nodiscard]] std::uint64_t calls_ended() const { return calls_ended_; }

  // The Calls without a Reply, in the order they were sent or queued in, for call_again() of the Requester of the next
  // connection; this one forgets them. For when the connection has ended (MustClose, on_disconnect()) and is closed.
  // Without options.retransmission those only that never left or had Read chunks. Those that were cancelled are not
  // among them.
  [[nodiscard]] std::vector<OutstandingCall> take_outstanding();
  // Sends or queues a Call of a former connection, with its xid: before those that call() has queued if it is told
  // first. Not bound by max_queued_calls. Errors, with `call` untouched: as call(), but not kQueueFull.
  [[nodiscard]] Result<void> call_again(OutstandingCall&& call);

  // Answers a backward Call with an RPC Reply of that xid. Errors, with `message` untouched: kInvalidArgument (unknown
  // token; not the Reply to that Call; longer than max_backward_bytes(), or than that of version 1 if the Call is of
  // version 1, and than the chunks that came with it: answer with something shorter), kNotConnected.
  [[nodiscard]] Result<void> reply_backward(CallToken token, Buffer&& message);
  // No Reply will come. The server is told nothing.
  void abandon_backward(CallToken token);
  // Largest RPC message of the backward direction without chunks, both ways: what CREATE_SESSION has to be clamped to.
  [[nodiscard]] std::uint32_t max_backward_bytes() const;

  // Sends a message of an extension, once version 2 is settled. `message` is empty, or the RPC message that its type
  // always has. How many may be under way, and what comes back, the extension says: the base protocol has no answer but
  // OptionRefused. Errors, with `message` untouched: kInvalidArgument (type, payload or xid; too long; not version 2),
  // kQueueFull (no credit is free), kNotConnected.
  [[nodiscard]] Result<void> send_option(std::uint32_t xid, OptionBody option, Buffer&& message = {});
  // Oldest event of extensions not yet taken. Drain it as poll_event(): there is room for as many as backward Calls.
  [[nodiscard]] std::optional<OptionEvent> poll_option() { return options_known_.poll(); }

  // Requests so many credits from the next Call on, 1 or more, and has no more Calls outstanding; each costs two
  // Receive buffers, for which the pool must have memory. Errors, and nothing changes: kInvalidArgument (more than the
  // endpoint's receive queue has, beside those for backward Calls), kResource (no memory), kNotConnected.
  [[nodiscard]] Result<void> set_credits(std::uint32_t credits);

  // Continues work that waited for memory.
  void progress();
  // The connection is idle: gives memory that it need not touch to the system. All completions there are must have been
  // fed in.
  void rest() {
    if (!shares_) receives_.rest();
  }
  // The connection has ended: stops posting. Completions may still come. No MustClose results.
  void on_disconnect();

  // Counts so far.
  [[nodiscard]] const Stats& stats() const { return stats_; }
  // Which version is spoken, and whether that is settled.
  [[nodiscard]] const VersionNegotiation& versions() const { return versions_; }
  // Of the draft of 2005: how the configuration of the connection stands.
  [[nodiscard]] const ConfigClient& configuration() const { return config_; }
  // Credits: granted, and in use.
  [[nodiscard]] const CreditWindow& credits() const { return window_; }
  // Calls sent or queued, and not yet answered.
  [[nodiscard]] std::size_t outstanding_calls() const { return queued_.size() + window_.in_flight(); }
  // Nothing outstanding in either direction, nothing waiting to be sent.
  [[nodiscard]] bool idle() const;

 private:
  struct Queued {
    std::uint32_t xid = 0;
    Buffer message{};
    TimePoint since{};
    std::uint32_t tag = 0;
    std::uint32_t times_sent = 0;   // in another version, with a smaller Reply chunk, or on another connection
    std::vector<std::byte> copy{};  // then it may be here, and `message` empty
    bool no_write_chunks = false;   // their memory could not be had or exposed
    std::size_t max_reply = SIZE_MAX;
    std::uint32_t asked_xid = 0;  // as given to call(); differs from `xid` in Calls with a larger Reply chunk
    bool tell_left = false;
    bool trimmed = false;  // the pool has no idle memory any more, which a limit would count
  };
  // Memory that the server may write to.
  struct Offered {
    ByteRange room{};  // of the view of Call::reply
    std::optional<ExposedMemory> memory{};
  };
  struct Call {
    bool used = false;
    bool cancelled = false;
    bool guessed = false;  // its Reply chunk is of a likely size
    std::uint32_t xid = 0;
    std::uint32_t asked_xid = 0;
    std::uint32_t tag = 0;
    std::size_t max_reply = SIZE_MAX;
    TimePoint since{};
    Buffer message{};               // of a Call with Read chunks, while they are exposed
    std::vector<std::byte> copy{};  // of one in line that may have to be sent again
    std::uint32_t times_sent = 0;
    bool tell_left = false;
    std::uint64_t left_mark = 0;  // that of Leaving
    std::uint64_t order = 0;      // among those sent
    Buffer reply{};               // memory of Write chunks and Reply chunk, while it is exposed
    SmallVector<Offered, 1> write_chunks{};
    std::optional<Offered> reply_chunk{};
    std::optional<ExposedMemory> call_memory{};
    std::size_t read_bytes = 0;  // in Read chunks
    ResultBinding results{};
    bool configuration = false;   // the Call of CONFIG_RDMA: nobody else's
    bool fetching = false;        // its Reply came, and is read
    std::uint64_t done_mark = 0;  // see DoneCredits
  };
  // In the owner of an assembly: that of a Reply, and not of a backward Call.
  static constexpr std::uint32_t kFetchedReply = 0x80000000;
  struct PeerCall {
    bool used = false;
    std::uint32_t generation = 0;
    std::uint32_t xid = 0;
    std::uint32_t version = kVersion1;
    ReplyOffer offer{};
  };

  void on_message(Buffer message);
  void on_reply(Buffer message, const ParsedHeader& parsed);
  void on_error_message(const Header& header);
  void lose_reply();
  void on_option(Buffer message, const ParsedHeader& parsed);
  void on_backward_call(Buffer message, const ParsedHeader& parsed);
  void deliver_backward(std::uint32_t slot, Buffer message);
  void deliver_assembled(CallAssembler::Done done);
  void refuse_backward_arguments(std::uint32_t slot);
  void free_peer_call(std::uint32_t slot);
  // Whether a backward Call of this version may have chunks.
  [[nodiscard]] bool takes_chunks(std::uint32_t version) const {
    return options_.backward_chunks && version == kVersion1;
  }
  // The Reply, put together. Nullopt: its chunks do not go with it.
  [[nodiscard]] std::optional<ReplyReceived> take_reply(Call& call, const ParsedHeader& parsed, Buffer message);
  void complete(Call& call, ReplyReceived reply);
  // Whether a Reply's chunk lists are what was offered with the Call, filled in.
  [[nodiscard]] bool chunks_acceptable(const Call& call, const Header& header) const;
  // Memory for what the plan offers; false: there is none now, nullopt: there will never be.
  [[nodiscard]] std::optional<bool> acquire_reply_memory(const OfferPlan& plan, Call& call);
  // What is sent in line beside Read chunks; false: there is no memory now.
  [[nodiscard]] bool copy_rest(const OfferPlan& plan, ConstBytes message, Buffer& out);
  // Exposes the chunks of a Call; false: that is refused.
  [[nodiscard]] bool expose(const OfferPlan& plan, ConstBytes message, Call& call, Header& header);
  void fail_call(Call& call, Failure why, const ErrorBody& error);
  void tell_left();
  void pump();
  // Whether the Reply to the next Call has a Receive.
  [[nodiscard]] bool has_receive() const { return shares_ ? receives_.posted() > 0 : receives_.missing() == 0; }
  void send_again(Call& call);
  void send_with_larger_chunk(Call& call);
  // Whether the message of a queued Call is in a Buffer now; false: there is no memory now, nullopt: there never will
  // be.
  [[nodiscard]] std::optional<bool> have_message(Queued& queued);
  // Takes a Call back that could not expose its chunks, perhaps as a limit counts what is registered. True: it may go
  // at once, without Write chunks, or as idle memory was given up; false: when one is over that exposes memory, or a
  // Reply is let go of; nullopt: it fails, or the connection does.
  [[nodiscard]] std::optional<bool> take_back(Call& call, Queued& queued, bool in_line);
  void answer(const Header& header, std::uint64_t& count);
  void answer_err_chunk(std::uint32_t xid, std::uint32_t version);
  [[nodiscard]] std::uint32_t max_backward_bytes(std::uint32_t version) const;
  // False: it cannot go out yet.
  [[nodiscard]] bool try_send(Queued& queued);
  // Ends all remote access to the Call's memory; false: the connection is being closed.
  [[nodiscard]] bool fence(Call& call);
  void finish(Call& call);
  // Of the draft of 2005, in requester_2005.cc.
  [[nodiscard]] bool configures() const { return options_.draft_2005.enabled && options_.draft_2005.configure; }
  [[nodiscard]] std::uint32_t call_inline_bytes() const;
  [[nodiscard]] std::uint32_t reply_inline_bytes() const;
  [[nodiscard]] bool may_offer_read_chunks() const;
  // Whether another Call may go out now; asks for the configuration if that is what it waits for.
  [[nodiscard]] bool admits_call();
  void ask_configuration();
  void on_configured(Call& call, ConstBytes reply);
  void pad_call(OutgoingMessage& out);
  [[nodiscard]] bool take_padding_out(const Buffer& message, ParsedHeader& parsed);
  // Reads what a Reply offers.
  void fetch_reply(Call& call, const ParsedHeader& parsed, Buffer message);
  void on_reply_fetched(CallAssembler::Done done);
  void send_done(std::uint32_t xid);
  void fail(Error error);
  // Whether nothing has come back since.
  [[nodiscard]] bool is_held_back() const {
    return held_at_ && held_at_->ended == calls_ended_ &&
           pool_.in_use_bytes(BufferPool::Purpose::kReply) >= held_at_->in_use;
  }
  [[nodiscard]] Call* find(std::uint32_t xid);
  [[nodiscard]] PeerCall* find_peer_call(CallToken token);

  Endpoint& endpoint_;
  BufferPool& pool_;
  ConnectionLimits limits_;
  RequesterOptions options_;
  ReceiveRing own_receives_;
  ReceiveRing& receives_;  // these, or those that are shared
  bool shares_;
  TransmitQueue transmit_;
  CallAssembler assembler_;  // of backward Calls, and of Replies that are fetched
  CreditWindow window_;
  VersionNegotiation versions_;
  SessionLimits sessions_;
  OptionExchange options_known_;
  ConfigClient config_;
  DoneCredits dones_;
  std::deque<Queued> queued_;
  std::vector<Call> calls_;
  // Calls of which CallLeft is to be told, and how many messages of the TransmitQueue have to be finished for that.
  struct Leaving {
    std::uint32_t xid = 0;
    std::uint64_t mark = 0;
  };
  std::deque<Leaving> leaving_;
  std::vector<PeerCall> peer_calls_;
  std::deque<Event> events_;
  Stats stats_{};
  std::uint64_t calls_ended_ = 0;
  // When the first in the queue was held back for others: calls_ended_, and the octets that Replies used.
  struct HeldAt {
    std::uint64_t ended = 0;
    std::size_t in_use = 0;
  };
  std::optional<HeldAt> held_at_;
  std::uint64_t calls_sent_ = 0;
  bool dead_ = false;
};

}  // namespace iwarp::rpcrdma
