// A simple model of the verbs: from what is posted alone it says what each completion must be, and what memory must
// hold. It knows nothing of MPA, DDP or segments, nor of when something happens; only of what must come after what:
//
//   - every request completes exactly once, an unsignaled one without a completion unless it is flushed
//   (work_request.h)
//   - requests of a send queue in the order of posting (RFC 5040 s5.5 item 15)
//   - a Receive for each Send or Immediate Data, in the order of posting at either end (item 10, RFC 7306 s6.4); of a
//   shared
//     receive queue in the order in which messages began (shared_receive_queue.h)
//   - the octets of Writes are there once a later Send or Immediate Data has come, or a later Read or Atomic is done
//     (items 5, 12 and 17)
//   - a Read brings what earlier Writes and Atomics have put there (item 12), an Atomic what was there (RFC 7306 s5)
//   - all other memory stays as it is
//   - a message that finds no Receive waits where it may, and so does all behind it; it is no end of the connection
//   - who leaves hears of nothing more, and its memory stays as it is from then on
//   - nothing fails before an end; an orderly one (RFC 5040 s6.2) lets what was posted before it complete well; at
//   others
//     what was not done is flushed
//
// Each call that judges something calls wrong() when it may not be so; only the first is kept.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "iwarp/verbs/async_event.h"
#include "iwarp/verbs/completion_queue.h"
#include "tests/programs/memory.h"
#include "tests/programs/program.h"

namespace iwarp::programs {

// What has happened, as the model sees it.
struct Tally {
  std::array<std::size_t, kSendOps> done{}, flushed{};  // by operation
  std::size_t received = 0, receives_flushed = 0;
  std::size_t waited = 0;                               // times that nothing moved, as a message waited for a Receive
  std::size_t ended_in_order = 0, ended_otherwise = 0;  // connections
};

class Model {
 public:
  explicit Model(const Setup& setup);

  // --- What the applications do.
  // Whether the rules allow a step, whatever is under way and whenever it comes to be.
  [[nodiscard]] bool legal(const Step& step) const;
  // The id of the request that the step posts.
  [[nodiscard]] std::uint64_t next_id() const { return next_id_; }
  // The step is done: a request was taken, memory filled, and so on. Precondition: legal(step).
  void apply(const Step& step);
  // Whether the queue for the request of `step` may be full, and whether it must be.
  [[nodiscard]] bool may_be_full(const Step& step) const;
  [[nodiscard]] bool must_be_full(const Step& step) const;

  // --- What was seen.
  // A completion from the queue of sends or of receives.
  void completed(std::size_t qp, bool receive, const verbs::Completion& c);
  void established(std::size_t qp);
  void ended(std::size_t qp, const Error& reason);
  void happened(std::size_t host, const verbs::AsyncEvent& event, std::size_t qp);
  // Nothing moves any more, and all completions and events were polled: the time for what must have happened by now.
  void settled();
  // Then, too: the limit of the shared receive queue that was not reached.
  void limit_left(std::size_t host, std::size_t limit);
  // Instead of what follows from a run: all goes as it should until nothing moves any more. The contents of memory are
  // not known after that.
  void assume_settled();

  // --- What there is.
  [[nodiscard]] Memory& memory() { return memory_; }
  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] const Setup& setup() const { return setup_; }
  // What was wrong first; empty: nothing.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] const Tally& tally() const { return tally_; }
  void wrong(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  [[nodiscard]] bool connected(std::size_t qp) const { return pairs_[pair_of(qp)].connected; }
  [[nodiscard]] bool is_established(std::size_t qp) const { return qps_[qp].established; }
  // Whether something has been done that ends the connection.
  [[nodiscard]] bool ending(std::size_t qp) const { return !pairs_[pair_of(qp)].causes.empty(); }
  // Octets that the next message of `qp` may have; nullopt: the peer has no Receive for it, and it may not wait.
  [[nodiscard]] std::optional<std::size_t> room(std::size_t qp) const;
  // Octets that the next Receive of `qp` must have room for: a message is on its way that may take it.
  [[nodiscard]] std::size_t needed(std::size_t qp) const;
  // Whether a message to `qp`, or to another queue pair with the same Receives, waits for one (Options::receive_wait).
  [[nodiscard]] bool waits(std::size_t qp) const;
  // Whether one waits at either end: then nothing behind it comes, Responses neither, and nothing has to.
  [[nodiscard]] bool stands_still(std::size_t qp) const { return waits(qp) || waits(peer_of(qp)); }
  // Requests that certainly find room in the send queue.
  [[nodiscard]] std::size_t sends_room(std::size_t qp) const;
  // Requests whose completions were not seen.
  [[nodiscard]] std::size_t sends_waiting(std::size_t qp) const { return qps_[qp].sends.size() - qps_[qp].done; }
  // Receives of its own, likewise.
  [[nodiscard]] std::size_t receives_open(std::size_t qp) const { return qps_[qp].receives.size() - qps_[qp].received; }
  // The number of the request in the peer's send queue whose message comes next to `qp`; nullopt: none was posted.
  [[nodiscard]] std::optional<std::size_t> next_message(std::size_t qp) const;
  // Whether one end may be told by the other that it broke a rule.
  [[nodiscard]] bool may_terminate(std::size_t qp) const;
  // Whether this end closes in order, and has not seen the peer's end.
  [[nodiscard]] bool closes(std::size_t qp) const {
    const auto& causes = pairs_[pair_of(qp)].causes;
    return !qps_[qp].ended && causes.size() == 1 && causes[0].what == Do::kDisconnect && causes[0].qp == qp;
  }
  // Whether the end of this connection has settled.
  [[nodiscard]] bool is_over(std::size_t qp) const { return pairs_[pair_of(qp)].over; }
  // Whether both ends may send.
  [[nodiscard]] bool may_send(std::size_t qp) const {
    return connected(qp) && (host_of(qp) == setup_.initiator || opened(pair_of(qp)));
  }
  // Receives posted for `qp` and not known to be used up.
  [[nodiscard]] std::size_t receives_waiting(std::size_t qp) const;
  // Receives of the shared queue of `host` that were not taken, once all has settled.
  [[nodiscard]] std::size_t shared_left(std::size_t host) const;
  [[nodiscard]] std::size_t receives_taken(std::size_t qp) const { return qps_[qp].taken; }

 private:
  enum class Status : std::uint8_t { kOpen, kOk, kFlushed };

  // Of a send queue.
  struct Request {
    std::uint64_t id = 0;
    rdmap::SendOp op = rdmap::SendOp::kSend;
    bool drain = false;
    bool signaled = true, solicited = false, fence = false, inlined = false;
    bool posted_late = false;  // behind this end's own end: flushed, without any effect
    bool loose = false;        // a Read whose source has changed meanwhile
    bool vain = false;         // the peer refuses it, or what was before it: it may have left, without any effect there
    Status status = Status::kOpen;
    std::vector<Piece> pieces;  // of the owner
    Piece remote;
    std::uint8_t region = 0;  // that is revoked
    Stag stag{};              // of it
    std::uint64_t immediate = 0;
    Bytes payload;                      // that was sent or written
    Bytes before, after;                // of `pieces`, where something is read into them
    Bytes remote_before, remote_after;  // of `remote`, where something is written to it

    [[nodiscard]] bool answered() const { return !drain && awaits_response(op); }
    [[nodiscard]] bool message() const;  // takes a Receive of the peer
    [[nodiscard]] bool changes_peer() const { return !remote_after.empty(); }
  };
  struct Receive {
    std::uint64_t id = 0;
    std::size_t qp = 0;  // whose memory it is
    std::vector<Piece> pieces;
    std::uint32_t length = 0;
    bool done = false;
  };
  // How one end, or the network, ended a connection. `how`: of kLose Step::amount, of kAbort Step::more, of kTrespass
  // the operation, of kLeave whether a message of that end may have been under way.
  struct Cause {
    Do what;
    std::size_t qp;
    std::uint32_t how;
  };
  struct Pair {
    bool connected = false;
    std::vector<Cause> causes;
    bool over = false;  // and all of it has settled
  };
  struct Qp {
    std::vector<Request> sends;
    std::size_t done = 0;               // of them
    std::size_t placed = 0;             // those before have changed the peer's memory
    std::vector<std::size_t> messages;  // those that take a Receive of the peer
    std::size_t fence = 0;              // the last that waits for earlier Reads
    std::size_t served = 0;             // Reads before that have come, when the peer ended the connection in order
    bool walled = false;                // a Write was posted that the peer refuses: nothing behind it gets there
    bool flushed_read = false, flushed_other = false;
    std::vector<Receive> receives;  // its own
    std::size_t received = 0;       // of them
    bool flushed_receive = false;
    std::size_t delivered = 0;  // messages of the peer that came
    std::size_t taken = 0;      // Receives that completed, flushed ones too
    bool established = false, ended = false, ended_here = false, left = false;
    Errc reason = Errc::kOk, fatal_reason = Errc::kOk;
    std::size_t fatal = 0, last = 0;  // asynchronous events
  };
  struct Host {
    std::deque<Receive> receives;  // shared; those that are done at the front are dropped
    std::size_t posted = 0;        // in all
    std::size_t limit = 0;
    bool may_warn = false, warned = false;
    bool may_wait = false;  // the event of an earlier limit, not polled yet
    bool unsure = false;    // `warned`, as the event may have been that one
  };

  [[nodiscard]] bool legal_receive(const Step& s) const;
  [[nodiscard]] bool legal_post(const Step& s) const;
  [[nodiscard]] bool legal_operands(const Step& s) const;
  [[nodiscard]] bool legal_local(const Step& s) const;
  [[nodiscard]] bool legal_remote(const Step& s) const;
  [[nodiscard]] bool legal_revocation(const Step& s) const;
  [[nodiscard]] bool legal_trespass(const Step& s) const;
  [[nodiscard]] bool legal_leave(std::size_t qp) const;
  [[nodiscard]] bool legal_fill(const Step& s) const;
  [[nodiscard]] bool idle(std::size_t qp, std::size_t region) const;
  [[nodiscard]] bool valid(std::size_t qp, std::size_t region) const;
  [[nodiscard]] std::size_t fence_of(const Step& s) const;
  [[nodiscard]] std::size_t messages_to(std::size_t host) const;
  [[nodiscard]] std::size_t longest_message_to(std::size_t host) const;
  [[nodiscard]] bool may_wait(std::size_t qp) const;

  void post(const Step& s);
  void enter(const Step& s, Request& r, std::size_t number);
  void fill(const Step& s);
  void use(std::size_t qp, const Piece& piece, Use::Kind kind, std::size_t by, std::size_t request);
  void end(const Step& s);
  void leave(std::size_t qp);
  [[nodiscard]] bool mid_message(std::size_t qp) const;

  void send_completed(std::size_t qp, const verbs::Completion& c);
  void check_completion(std::size_t qp, const Request& r, const verbs::Completion& c);
  void resolve(std::size_t qp, std::size_t number, Status status);
  void resolve_silent(std::size_t qp);
  [[nodiscard]] bool may_be(std::size_t qp, const Request& r, Status status) const;
  [[nodiscard]] bool guaranteed(std::size_t qp, const Request& r) const;
  void response_came(std::size_t qp, std::size_t number);
  void placed(std::size_t qp, std::size_t upto);
  void receive_completed(std::size_t qp, const verbs::Completion& c);
  [[nodiscard]] std::optional<Receive> take_receive(std::size_t qp, std::uint64_t id);
  void delivered(std::size_t qp, const Receive& r, const verbs::Completion& c);
  void receive_flushed(std::size_t qp, const Receive& r);
  [[nodiscard]] bool may_end_with(std::size_t qp, Errc reason) const;

  [[nodiscard]] bool opened(std::size_t pair) const;
  void settle_live(std::size_t qp);
  void settle_waiting(std::size_t qp);
  void settle_ended(std::size_t pair);
  void settle_writes(std::size_t qp);
  void check_events(std::size_t qp);
  void check_memory();
  void assume_received(std::size_t qp);
  [[nodiscard]] std::string who(std::size_t qp, std::uint64_t id) const;

  Setup setup_;
  Memory memory_;
  std::vector<Pair> pairs_;
  std::vector<Qp> qps_;
  std::array<Host, kHosts> hosts_;
  std::uint64_t next_id_ = 1;
  std::string fault_;
  Tally tally_;
};

}  // namespace iwarp::programs
