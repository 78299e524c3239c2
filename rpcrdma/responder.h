// The server's end of an RPC-over-RDMA connection, of version 1 (RFC 8166) or 2 (see highest_version): takes Calls, in
// line or in Read chunks, hands them over as contiguous RPC messages, and returns Replies in line, in Write chunks or
// in the Reply chunk; and what the draft of 2005 has beyond that, where options say so. It also sends backward Calls
// (RFC 8167), in line only unless options say otherwise. It does no I/O: it posts to an Endpoint and is driven by
// completions.
//
// Driving: construct with what private data negotiated, start() before the peer may send, then after every input
// (on_completion, reply, send_backward_call, progress, on_deadline) drain poll_event() and re-read deadline(). Call
// progress() after Buffers were given back: delayed RDMA Reads go on. After MustClose only completions are accepted;
// close the connection.
//
// Lifetime: endpoint and pool outlive the Responder. Memory is in use by the endpoint until the completions came:
// destroy the Responder only after the connection is closed and no further access by the endpoint is possible. Not
// thread-safe.
#pragma once

#include <chrono>
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
#include "iwarp/rpcrdma/option_exchange.h"
#include "iwarp/rpcrdma/outstanding_call.h"
#include "iwarp/rpcrdma/private_data.h"
#include "iwarp/rpcrdma/receive_ring.h"
#include "iwarp/rpcrdma/reply_plan.h"
#include "iwarp/rpcrdma/transmit_queue.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// What a Responder grants and takes.
struct ResponderOptions {
  // Calls the client may have outstanding, granted in every Reply; at least 1. 64 is what Linux grants. Each costs two
  // Receive buffers. Lower values slow parallel clients.
  std::uint32_t credits = 64;
  // Backward Calls outstanding at a time; also what our backward Calls request. 2 is what Linux servers use, Linux
  // clients serve up to 16. 0 switches the backward direction off.
  std::uint32_t backward_credits = 2;
  // How long a backward Call may wait for a credit and for its Reply, together. Default 60 s, as the Linux server.
  // Shorter ones give up on slow clients, longer ones keep the RPC server waiting for dead ones.
  std::chrono::milliseconds backward_timeout{60000};
  // Send backward Calls that do not fit in line as Position-Zero Read chunk, and offer a Reply chunk for their Replies
  // (RFC 8167 s5.3): this end exposes memory then. For clients of version 1 that are known to take them; others answer
  // ERR_CHUNK. In version 2 there are none, and without `backward_chunks`.
  bool backward_chunks = false;
  // Largest backward Reply, octets: the size of its Reply chunk, for which the pool must have memory.
  std::size_t max_backward_reply_bytes = 64u << 10;
  // Keep each backward Call until its Reply, for take_outstanding_backward().
  bool backward_retransmission = false;
  // Size of each Receive, and of the largest Send, octets: 1024..262144 in steps of 1024. 4096 is what Linux uses;
  // larger ones move more in line and cost credits x 2 times as much memory.
  std::uint32_t inline_bytes = 4096;
  // Of the largest Send, where that is another: the same range. 0: the same.
  std::uint32_t send_bytes = 0;
  // Largest Call pulled together, octets; larger ones get ERR_CHUNK. Must hold a WRITE of the file server's maximum.
  std::size_t max_call_bytes = (1u << 20) + (64u << 10);
  // Allow the client's STags to be invalidated by our Replies, when it asks for that.
  bool remote_invalidation = true;
  // Refuse Read chunks that the Upper-Layer Binding does not allow, as RFC 8166 s6.1 demands. Off: reassemble whatever
  // comes, like the Linux server, e.g. for RPC programs whose binding we do not know.
  bool enforce_binding = true;
  // Bulk data of other programs than NFS; null: none.
  std::shared_ptr<const DeclaredBinding> declared{};
  // Highest version that is spoken, kVersion1 or kVersion2. Calls of another get ERR_VERS and the range; each Reply has
  // the version of its Call. Version 2 with its defaults is for Receives of 4096 octets or more.
  std::uint32_t highest_version = kVersion1;
  // Bounds for chunk lists; more gets ERR_CHUNK. The dialect follows from the version.
  Limits header_limits{};
  OptionRegistry extensions{};  // of version 2 that are known; others get RDMA_ERR_INVAL_OPTION
  // Replies that fit nowhere else, or their data, become Read chunks, which stay exposed until the client's RDMA_DONE;
  // RDMA_MSGP is taken, and sent where the options say so; CONFIG_RDMA is answered, and not handed over.
  Draft2005Options draft_2005{};
};

// Private data to announce for these options.
[[nodiscard]] PrivateData private_data(const ResponderOptions& options);
// Pool options whose control budget suits these options; the others keep their defaults.
[[nodiscard]] BufferPool::Options pool_options(const ResponderOptions& options);

// Names one Call until it is answered. Never valid again afterwards.
struct CallToken {
  std::uint32_t slot = 0;        // its place in a table
  std::uint32_t generation = 0;  // tells those apart that had the same place
  friend constexpr bool operator==(const CallToken&, const CallToken&) = default;
};

class Responder {
 public:
  // A complete Call. Answer it with reply() or abandon(). `message` has kHeadroomBytes in front and should be given
  // back soon: until then its memory counts against the pool.
  struct CallReceived {
    CallToken token{};                    // names it until it is answered
    std::uint32_t xid = 0;                // as the client chose it
    Buffer message{};                     // the RPC Call
    std::uint64_t read_chunk_bytes = 0;   // of it came by RDMA Read
    std::uint64_t write_chunk_bytes = 0;  // room offered for DDP-eligible results
    std::uint64_t reply_chunk_bytes = 0;  // room offered for a long Reply
  };
  // A Call was dropped because one of that xid is outstanding: the client repeats it, perhaps since its Reply is lost.
  struct CallRepeated {
    std::uint32_t xid = 0;  // of both Calls
  };
  // The Reply to send_backward_call(). `message` has kHeadroomBytes in front.
  struct BackwardReply {
    std::uint32_t xid = 0;  // of the backward Call
    Buffer message{};       // the RPC Reply
  };
  // That backward Call ends without a Reply: the client cannot take it (it answered with RDMA_ERROR), its chunks could
  // not be exposed or came back with no Reply in them, or the client did not answer in time (a late Reply is dropped).
  struct BackwardFailed {
    std::uint32_t xid = 0;   // of the backward Call
    bool timed_out = false;  // false: one of the others
  };
  // The last event. Close the connection.
  struct MustClose {
    Error error{};  // why
  };
  using Event =
      std::variant<CallReceived, CallRepeated, BackwardReply, BackwardFailed, MustClose>;  // what poll_event() gives

  // Counts since construction.
  struct Stats {
    std::uint64_t calls = 0;                   // CallReceived events
    std::uint64_t calls_with_read_chunks = 0;  // Calls that came with Read chunks
    std::uint64_t replies_in_line = 0;         // RDMA_MSG, nothing reduced
    std::uint64_t replies_reduced = 0;         // some result went into a Write chunk
    std::uint64_t replies_in_reply_chunk = 0;  // RDMA_NOMSG
    std::uint64_t replies_in_read_chunk = 0;   // of the draft of 2005: with a Read list, wholly or in part
    std::uint64_t replies_data_in_chunk = 0;   // of these: RDMA_MSG, their data in Read chunks
    std::uint64_t replies_padded = 0;          // of the draft of 2005: sent as RDMA_MSGP, of those in line
    std::uint64_t replies_not_done = 0;        // of those with a Read list: without RDMA_DONE in time
    std::uint64_t dones = 0;                   // likewise: with it
    std::uint64_t calls_padded = 0;            // of the draft of 2005: Calls that came as RDMA_MSGP
    std::uint64_t configurations = 0;          // likewise: Calls of CONFIG_RDMA, answered here
    std::uint64_t err_chunk_sent = 0;          // RDMA_ERROR, ERR_CHUNK
    std::uint64_t replies_as_err_chunk = 0;    // of these: Replies that did not fit what their Calls offered
    std::uint64_t err_vers_sent = 0;           // RDMA_ERROR, ERR_VERS
    std::uint64_t inval_option_sent = 0;       // RDMA_ERROR, RDMA_ERR_INVAL_OPTION
    std::uint64_t garbage_args_sent = 0;       // chunks that contradict their Call
    std::uint64_t duplicate_xids = 0;          // Calls dropped: their xid was still outstanding
    std::uint64_t dropped_messages = 0;        // unusable, and no answer due; unknown backward xids
    std::uint64_t delayed_calls = 0;           // had to wait for pool memory
    std::uint64_t backward_calls = 0;          // sent to the client
    std::uint64_t backward_replies = 0;        // those answered in time
    std::uint64_t backward_timeouts = 0;       // those that were not
    std::uint64_t late_backward_replies = 0;   // dropped: their Calls had timed out or were cancelled
    std::uint64_t rdma_read_bytes = 0;         // pulled from the client
    std::uint64_t rdma_write_bytes = 0;        // pushed to the client
    std::uint64_t send_payload_bytes = 0;      // RPC message octets in Sends, both directions
    std::uint64_t receive_payload_bytes = 0;   // of what came in: likewise
  };

  // `limits`: negotiate(client's private data, private_data(options)).
  // `shared`: Receives of a shared receive queue, in place of own ones; of at least the size of the options.
  Responder(Endpoint& endpoint, BufferPool& pool, const ConnectionLimits& limits, const ResponderOptions& options,
            ReceiveRing* shared = nullptr);
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Posts all Receives. Call before the connection is accepted. On failure: refuse the connection. kInvalidArgument: a
  // version that there is not, or a backward Reply for which the pool has no memory.
  [[nodiscard]] Result<void> start();
  // A posted operation has ended. Each one, flushed ones too, has to be told here.
  void on_completion(const Completion& completion);
  // Oldest event not yet taken. Drain until nullopt.
  [[nodiscard]] std::optional<Event> poll_event();

  // Answers a Call with a complete RPC Reply of that xid, in a Buffer of this connection's pool (purpose kReply, or
  // any), which is taken over. How it travels, ERR_CHUNK included, is decided here (reply_plan.h). Errors, with
  // `message` untouched: kInvalidArgument (unknown token, or not the Reply to that Call), kNotConnected (after
  // MustClose). `now`: of use with options.draft_2005 only; without it a Reply waits for its RDMA_DONE without limit.
  [[nodiscard]] Result<void> reply(CallToken token, Buffer&& message, TimePoint now = TimePoint::max());
  // No Reply will come. The client is told nothing and may wait for ever: meant for connections about to close.
  void abandon(CallToken token);

  // Sends or queues a backward Call, a whole RPC message. Errors, with `message` untouched: kInvalidArgument (no Call;
  // xid still outstanding; longer than max_backward_bytes(), which no retry will change, unless options.backward_chunks
  // and version 1), kQueueFull (enough are waiting: try again after a BackwardReply), kNotConnected.
  [[nodiscard]] Result<void> send_backward_call(Buffer&& message, TimePoint now);
  // Its Reply, should it come, is dropped; until then it keeps its xid and its credit, since the client may still be at
  // it. False if that xid is not outstanding.
  bool cancel_backward_call(std::uint32_t xid);
  // The backward Calls without a Reply, in the order they came, for send_backward_again() of the Responder of the
  // client's next connection; this one forgets them. For when the connection has ended (MustClose, on_disconnect()) and
  // is closed. Empty without options.backward_retransmission. Those that have timed out or were cancelled are not among
  // them. A server does not connect: it keeps them until the client does, for as long as it likes (RFC 8167 s5.4).
  [[nodiscard]] std::vector<OutstandingCall> take_outstanding_backward();
  // Sends or queues a backward Call of a former connection, with its xid. It has the whole of backward_timeout again.
  // For when the client is known to be ready for it, as after BIND_CONN_TO_SESSION. Errors, with `call` untouched: as
  // send_backward_call(); kQueueFull also if there is no memory for it now.
  [[nodiscard]] Result<void> send_backward_again(OutstandingCall&& call, TimePoint now);
  // Largest RPC message of the backward direction without chunks: what CREATE_SESSION has to be clamped to.
  [[nodiscard]] std::uint32_t max_backward_bytes() const;

  // When the oldest backward Call times out, or the oldest Reply that waits for RDMA_DONE. MustClose results when a
  // Call finds no credit in all its time because none of those before it was answered: credits lost in that way come
  // back with the next connection only.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  // The time has come: BackwardFailed or MustClose may result. Does nothing before deadline().
  void on_deadline(TimePoint now);

  // Sends a message of an extension, once a Call of version 2 was answered. `message` is empty, or the RPC message that
  // its type always has. That the client has a Receive for it, the extension says. Errors, with `message` untouched:
  // kInvalidArgument (type or payload; too long; not version 2), kNotConnected.
  [[nodiscard]] Result<void> send_option(std::uint32_t xid, OptionBody option, Buffer&& message = {});
  // Oldest event of extensions not yet taken. Drain it as poll_event(): there is room for as many as Calls.
  [[nodiscard]] std::optional<OptionEvent> poll_option() { return options_known_.poll(); }

  // Grants so many credits from the next Reply on, 1 or more; each costs two Receive buffers, for which the pool must
  // have memory. More are granted when their Receives are posted. Fewer: the Receives of the others are given up when
  // the client can have no Call under way that was sent for them. Errors, and nothing changes: kInvalidArgument (more
  // than the endpoint's receive queue has, beside those for backward Replies), kResource (no memory), kNotConnected.
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
  // Calls of the client that are not answered, those included that are still pulled together.
  [[nodiscard]] std::size_t outstanding_calls() const { return outstanding_; }
  // The version of the client's latest Call; kVersion1 before the first.
  [[nodiscard]] std::uint32_t client_version() const { return client_version_; }
  // Of the draft of 2005: whether the client has configured the connection.
  [[nodiscard]] bool configured() const { return config_.configured(); }
  // Likewise: what may be sent and taken on this connection.
  [[nodiscard]] const ConfigTerms& config_terms() const { return config_.terms(); }
  // Replies that wait for RDMA_DONE.
  [[nodiscard]] std::size_t replies_kept() const { return kept_.replies(); }
  // RDMA Reads that the client owes an answer, and how many it has answered.
  [[nodiscard]] std::size_t reads() const { return assembler_.reads(); }
  // RDMA Reads that the client has answered so far.
  [[nodiscard]] std::uint64_t reads_answered() const { return assembler_.reads_answered(); }
  // Sends and RDMA Writes that have not left, and how many have.
  [[nodiscard]] std::size_t unsent() const { return transmit_.unsent(); }
  // Sends and RDMA Writes that have left so far.
  [[nodiscard]] std::uint64_t sent() const { return transmit_.sent(); }
  // Nothing outstanding in either direction, nothing waiting to be sent: SIGTERM may close now.
  [[nodiscard]] bool idle() const;
  // Nothing waits to be sent, and what was posted has completed.
  [[nodiscard]] bool all_sent() const { return transmit_.backlog() == 0 && transmit_.posted() == 0; }

 private:
  struct Call {
    bool used = false;
    bool delivered = false;  // its CallReceived was queued
    std::uint32_t generation = 0;
    std::uint32_t xid = 0;
    std::uint32_t version = kVersion1;
    ReplyOffer offer{};
    std::uint64_t read_chunk_bytes = 0;
  };
  struct BackwardCall {
    std::uint32_t xid = 0;
    Buffer message{};  // while it waits for a credit
    TimePoint expires{};
    std::uint32_t version = kVersion1;  // for which it is short enough
    bool sent = false;
    bool cancelled = false;  // sent, and nobody wants the Reply any more
    TimePoint since{};
    std::uint32_t times_sent = 0;   // here and on other connections
    std::vector<std::byte> copy{};  // of one that was sent and may be again
    Buffer reply{};                 // its Reply chunk
    std::optional<ExposedMemory> reply_memory{};
    std::optional<ExposedMemory> call_memory{};  // of `message`, which is a Read chunk then
  };

  void on_message(Buffer message);
  void on_call(Buffer message, ParsedHeader& parsed);
  void on_backward_reply(Buffer message, const ParsedHeader& parsed);
  void on_error_message(const Header& header);
  void on_option(Buffer message, const ParsedHeader& parsed);
  void deliver(std::uint32_t slot, Buffer message);
  void deliver_assembled(CallAssembler::Done done);
  void refuse_arguments(std::uint32_t slot);
  void answer_error(const ParseError& error);
  void answer_err_chunk(std::uint32_t xid, std::uint32_t version);
  // Octets of a message of this version to the client, where both ends have agreed on `agreed`.
  [[nodiscard]] std::uint32_t inline_bytes(std::uint32_t version, std::uint32_t agreed) const;
  void pump();
  // Whether the Reply to the next backward Call has a Receive.
  [[nodiscard]] bool has_receive() const { return shares_ ? receives_.posted() > 0 : receives_.missing() == 0; }
  void pump_backward();
  [[nodiscard]] Result<void> queue_backward(Buffer& message, TimePoint since, TimePoint now, std::uint32_t times_sent);
  // Makes the message of a backward Call; false: there is no memory now, nullopt: its chunks cannot be exposed.
  [[nodiscard]] std::optional<bool> make_backward(BackwardCall& call, OutgoingMessage& out);
  // Ends the client's access to the chunks of a backward Call; false: the connection is being closed.
  [[nodiscard]] bool fence(BackwardCall& call);
  // Whether the Reply's chunks are what its Call offered.
  [[nodiscard]] static bool chunks_acceptable(const BackwardCall& call, const Header& header);
  [[nodiscard]] bool sends_chunks(std::uint32_t version) const {
    return options_.backward_chunks && version == kVersion1;
  }
  void free_call(std::uint32_t slot);
  void fail(Error error);
  [[nodiscard]] bool overrun();
  // A backward Call that was sent and is not answered.
  [[nodiscard]] BackwardCall* find_backward(std::uint32_t xid);
  // Forgets a backward Call that was sent, with its credit; its chunks are fenced.
  void end_backward_call(const BackwardCall& call);
  [[nodiscard]] bool names_delivered_call(CallToken token) const;
  [[nodiscard]] bool is_outstanding(std::uint32_t xid) const;
  [[nodiscard]] std::uint32_t grant() const;
  void send_reply(std::uint32_t slot, Buffer message, TimePoint now);
  // Of the draft of 2005, in responder_2005.cc.
  struct Kept {
    Buffer message{};
    Stag handle{};
  };
  [[nodiscard]] bool configures() const { return options_.draft_2005.enabled && options_.draft_2005.configure; }
  [[nodiscard]] std::uint32_t reply_inline_bytes() const;
  [[nodiscard]] bool take_padding_out(const Buffer& message, ParsedHeader& parsed);
  [[nodiscard]] bool answer_configuration(std::uint32_t slot, ConstBytes call);
  void pad_reply(OutgoingMessage& out, const ResultBinding& results);
  [[nodiscard]] bool offer_reply(std::uint32_t xid, const ReplyOffer& offer, Buffer& message, TimePoint now);
  // Makes the data of the message Read chunks; false: the whole message has to be one.
  [[nodiscard]] bool offer_data(const ReplyOffer& offer, ConstBytes message, OutgoingMessage& out, ByteRange& exposed);
  void on_done(const Header& header);
  void on_done_deadline(TimePoint now);
  void release(Kept kept);
  void release_all();

  Endpoint& endpoint_;
  BufferPool& pool_;
  ConnectionLimits limits_;
  ResponderOptions options_;
  ReceiveRing own_receives_;
  ReceiveRing& receives_;  // these, or those that are shared
  bool shares_;
  TransmitQueue transmit_;
  CallAssembler assembler_;
  CreditWindow backward_window_;
  OptionExchange options_known_;
  ConfigServer config_;
  DoneBook<Kept> kept_;
  std::vector<Buffer> still_exposed_;  // until the connection is closed
  std::vector<Call> calls_;
  std::vector<std::uint32_t> free_calls_;
  std::deque<BackwardCall> backward_calls_;
  std::deque<Event> events_;
  std::size_t outstanding_ = 0;
  // Calls that may still come for the credits that were granted before they became fewer, and how many those were.
  std::uint32_t old_calls_ = 0;
  std::uint32_t old_credits_ = 0;
  std::uint32_t client_version_ = kVersion1;  // of its latest Call
  bool answered_in_2_ = false;                // so both ends use the sizes of version 2
  Stats stats_{};
  bool dead_ = false;
};

}  // namespace iwarp::rpcrdma
