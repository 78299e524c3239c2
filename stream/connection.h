// The driven core of one iWARP connection: MPA startup, FPDUs and the two ends of TCP. It is the half that puts an
// endpoint::Endpoint, which has the queues, DDP and RDMAP, on a byte stream. It never blocks, never calls back and
// never sees a socket, a clock or a thread; the driver moves bytes and tells the time (docs/DRIVING.md). Not
// thread-safe.
//
// Nothing here throws: when there is no memory to go on with, the connection ends with kResource. What was delivered
// before is intact.
//
// Contract: after any input (1) send tx_buffers() until empty, (2) drain poll_event() and the completions, (3) re-read
// deadline() and link_action(), (4) ask rx_buffers(). `now` never goes backwards.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/time.h"
#include "iwarp/endpoint/endpoint.h"
#include "iwarp/endpoint/half.h"
#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/negotiation.h"
#include "iwarp/stream/carry.h"
#include "iwarp/stream/early_wake.h"
#include "iwarp/stream/link.h"
#include "iwarp/stream/tx_gather.h"

namespace iwarp::stream {

using endpoint::Input;
using endpoint::kClosedHere;
using endpoint::name;
using endpoint::Phase;

// How an Endpoint is driven over MPA and TCP.
struct MpaOptions {
  // How long FPDUs may get; see mpa::FpduPolicy. Default kEmss: the only one that every RNIC takes.
  mpa::FpduPolicy fpdu = mpa::FpduPolicy::kEmss;
  // With CRC and Markers off: receive the rest of a large FPDU straight into its final buffer. Default on: it saves a
  // copy. Off only to compare. With CRC on nothing is placed before it is checked, whatever this says.
  bool direct_placement = true;
  // Responder: for the Reply to leave, then, on a peer-to-peer connection, to the first FPDU. 10 s, as siw waits for a
  // Reply. Lower breaks slow peers, higher lets a silent one hold its resources longer.
  std::chrono::milliseconds first_fpdu_timeout{10000};
  // Initiator: from its first FPDU to the peer's first octets, send a zero-length RDMA Write now and then (EarlyWake),
  // and, with the peer-to-peer model, before an end that comes sooner. Default on: Linux siw overlooks what arrives
  // before it has taken over the socket, until more comes, and crashes when a peer-to-peer connection ends overlooked.
  // Off: such connections stall until the application sends again.
  bool early_wake = true;
  // How long that end waits for the peer's first octets (before an orderly FIN: its first FPDU). 200 ms: emulated, siw
  // takes up to 30 ms for its socket, and the Write of 100 ms has its chance. Shorter risks the peer, longer delays the
  // end of connections that were never used.
  std::chrono::milliseconds unheard_wait{200};

  friend bool operator==(const MpaOptions&, const MpaOptions&) = default;
};

// All of it, for who sets both in one place: a queue pair is made with the first part (queue depths, RFC 7306, the time
// for an end), and connected with the second.
struct Options : endpoint::Options, MpaOptions {
  friend bool operator==(const Options&, const Options&) = default;
};

// As endpoint::validate().
[[nodiscard]] Result<void> validate(const MpaOptions& options);
[[nodiscard]] Result<void> validate(const Options& options);  // both parts

// Different news: never merge them. kSilence: TCP has given up on a peer that answers nothing or takes nothing.
enum class TcpEnd : std::uint8_t { kFin, kReset, kSilence };

// Full operation has begun; for a Responder of a peer-to-peer connection: the first FPDU has arrived.
struct Established {
  mpa::Negotiated negotiated;           // what both ends have agreed on
  std::vector<std::byte> private_data;  // of the peer
};

// The connection is over; the last event. All work requests have completed or are about to be polled as kFlushed.
struct Disconnected {
  Error reason;                                     // kPeerClosed and kAborted are the ordinary ends
  std::optional<rdmap::TerminateMessage> received;  // the peer's Terminate
  std::optional<rdmap::TerminateMessage> sent;      // ours
  bool was_established = false;                     // false: the attempt at a connection failed
  std::optional<mpa::EnhancedData> rejected_with;   // IRD and ORD of a rejecting peer
  std::vector<std::byte> private_data;              // of a rejecting peer
};

// The startup has failed, and another one may succeed: the peer ended TCP before its Reply began, and policy knows
// something else to ask for, or the RetryJudge wants another. The core is idle again, with all that was posted. The
// driver closes this socket and either calls start() with an Initiator of mpa::with_fallback() on a new one, or
// abort().
struct FallBack {
  Error reason;                                  // how the attempt ended
  mpa::Fallback to = mpa::Fallback::kRevision1;  // what to ask for next; kNone: the same again
  std::vector<std::byte> private_data{};         // of another attempt, with kNone
};

using Event = std::variant<Established, Disconnected, FallBack>;  // what poll_event() gives

// Judges the private data of a Reply that accepts, before anything that follows it is looked at and before anything
// else is sent: what both ends know by that (Endpoint::set_extensions()); an error ends the attempt with it.
using ReplyJudge = std::function<Result<rdmap::Extensions>(ConstBytes private_data)>;
// Asked when the startup of an Initiator has failed: the peer has rejected it (kPeerRejected, with the private data of
// its Reply), or there was no Reply to use. The private data of another Request, on a new TCP connection; nullopt:
// none.
using RetryJudge = std::function<std::optional<std::vector<std::byte>>(const Error& failed, ConstBytes private_data)>;

class Connection final : public endpoint::Half {
 public:
  // `endpoint` must outlive the connection, which is the only one to drive it, and is idle. Precondition:
  // validate(options) is ok.
  Connection(endpoint::Endpoint& endpoint, const MpaOptions& options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- Work requests and completions: those of the endpoint, for who has only the connection at hand.
  [[nodiscard]] Result<void> post_send(const rdmap::SendWr& wr) { return endpoint_.post_send(wr); }
  [[nodiscard]] Result<void> post_recv(const rdmap::RecvWr& wr) { return endpoint_.post_recv(wr); }  // likewise
  [[nodiscard]] std::optional<rdmap::Completion> poll_send() { return endpoint_.poll_send(); }       // likewise
  [[nodiscard]] std::optional<rdmap::Completion> poll_recv() { return endpoint_.poll_recv(); }       // likewise

  // --- Startup. Precondition: phase() is kIdle. The Responder has had its accept() called, or will be failed by its
  // own deadline.
  // `judge` may be empty: then nothing of the kind is agreed on. `again` may be empty: the first failure counts, but
  // for what the policy's fallbacks are. Neither may throw but std::bad_alloc.
  void start(mpa::Initiator initiator, TimePoint now, ReplyJudge judge = {}, RetryJudge again = {});
  void start(mpa::Responder responder, TimePoint now);

  // --- Byte stream.
  // Where the next received bytes belong, in order: parts of the lent scratch, or final buffers when that is allowed.
  // Valid until the next non-const call. Empty: do not read. Never returns memory that was revoked before the call.
  [[nodiscard]] std::span<const MutBytes> rx_buffers(MutBytes scratch);
  // `n` bytes arrived there (0: none, the buffers are given up).
  void rx_commit(std::size_t n, TimePoint now);
  // The peer's half of the stream has ended, or TCP has. No rx_commit() after that.
  void rx_end(TcpEnd how, TimePoint now);
  // A message waits for a Receive (Options::receive_wait), and nothing is read.
  [[nodiscard]] bool holding() const { return endpoint_.holding(); }
  // The peer's FIN has come behind the message: what is left may still be read (Endpoint::end_is_behind()).
  void fin_is_behind(TimePoint now);
  // Looks whether there is one now, and goes on with what came behind the message. An input: afterwards there may be
  // completions, something to send and something to read.
  void resume(TimePoint now) override;
  // What to send next: a gather list over many FPDUs. Valid until the next non-const call; always followed by
  // tx_commit(), if with 0.
  [[nodiscard]] std::span<const ConstBytes> tx_buffers(TimePoint now);
  // `n` octets of tx_buffers() were handed to TCP. Owed after each call of that, with 0 as well.
  void tx_commit(std::size_t n, TimePoint now);
  // Whether tx_buffers() would give anything.
  [[nodiscard]] bool tx_pending() const;

  // When on_deadline() is wanted; nullopt: never, unless an input changes it.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  // The time has come. Does nothing before deadline().
  void on_deadline(TimePoint now);

  // Oldest event not yet taken; nullopt: there is none.
  [[nodiscard]] std::optional<Event> poll_event();
  // The next thing to do with the socket; ask after sending. Each action is given once.
  [[nodiscard]] LinkAction link_action();

  // --- Control.
  // Orderly close: what was posted goes out, then FIN, then the wait for the peer's FIN (RFC 5040 s6.2). Before the
  // FIN, a peer that must be heard first (Options::early_wake) gets a wake and Options::unheard_wait.
  void disconnect(TimePoint now) override;
  // Abortive close with RST, at once.
  void abort(const Error& reason) override;
  // Abortive close that spares a peer which must be heard first (Options::early_wake): all work completes as kFlushed
  // at once, the RST and Disconnected follow when the peer's first octets come, or after Options::unheard_wait. A wait
  // that an orderly end or our Terminate began is not begun anew, and a Terminate that is due still leaves. Of any
  // other peer, and of one whose wait is over, it is abort().
  void abort_sparing(const Error& reason, TimePoint now) override;
  // An orderly end that serves nobody here any more: what was posted is flushed at once, the peer gets a FIN behind
  // what TCP has taken, and whatever it sends until its own is dropped. The rest of an FPDU that TCP has taken in part
  // does not follow. Before full operation it is abort(); an end that is under way goes on.
  void leave(const Error& reason, TimePoint now) override;
  // The peer's IRD and ORD (0..16382) as its application tells them, for what MPA startup has left open (revision 1, or
  // 0x3FFF in its frames): ORD is lowered to the peer's IRD, IRD raised to the peer's ORD, but not from 0. How much
  // memory that takes is the caller's to limit. kInvalidArgument: out of range, or startup has
  // settled both; kNotConnected: not in full operation; kResource. Reads that are posted though ORD comes to 0 end the
  // connection as they would at startup.
  [[nodiscard]] Result<void> settle_depths(std::uint16_t peer_ird, std::uint16_t peer_ord, TimePoint now);
  // Effective maximum segment size of TCP, octets; may change at any time. Takes effect with the next segment cut.
  void set_emss(std::size_t emss) { emss_ = emss; }
  // MULPDU: the most octets of a segment that is sent (RFC 5044 s4.5). Follows that size and what was agreed on.
  [[nodiscard]] std::size_t mulpdu() const { return mpa::mulpdu_for(options_.fpdu, emss_, negotiated_.markers_sent); }

  // Where it is in its life.
  [[nodiscard]] Phase phase() const { return endpoint_.phase(); }
  // What both ends have agreed on; meaningful after Established.
  [[nodiscard]] const mpa::Negotiated& negotiated() const { return negotiated_; }
  // The octets behind a Reply with R=1, or behind one that the judge has refused; else null. TCP belongs to the
  // application then (RFC 5044 s7.1.2 rule 3), and so do they.
  [[nodiscard]] const std::vector<std::byte>* behind_reject() const {
    return behind_reject_ ? &*behind_reject_ : nullptr;
  }
  // What was received so far.
  [[nodiscard]] const rdmap::RxCounters& rx_counters() const { return endpoint_.rx_counters(); }
  // What was sent so far.
  [[nodiscard]] const rdmap::TxCounters& tx_counters() const { return endpoint_.tx_counters(); }
  // Whether its members suit its phase: for tests and assertions.
  [[nodiscard]] bool is_consistent() const;

 private:
  // Where rx_buffers() sent the next bytes.
  enum class RxMode : std::uint8_t { kNone, kDiscard, kStartup, kCarry, kDirect };

  // One step of the protocol. What a want of memory leaves half done cannot be continued: it ends the connection.
  template <class Step>
  void attempt(const Step& step_of_protocol) {
    try {
      step_of_protocol();
    } catch (const std::bad_alloc&) {
      out_of_memory();
    }
  }
  void out_of_memory();
  bool follow();
  void drain_startup();
  void on_negotiated(const mpa::Established& established);
  void on_startup_failed(const mpa::Failed& failed);
  [[nodiscard]] bool tries_again(const Error& failed, ConstBytes private_data);
  void broken(const Error& error);
  void startup_expired(TimePoint now);
  void check_drained();
  [[nodiscard]] Disconnected disconnected(const endpoint::Ended& how);
  void heard();
  [[nodiscard]] bool must_be_heard() const;
  [[nodiscard]] bool waits_for_peer() const;
  // Without CRC and Markers octets may be placed before their FPDU is whole.
  [[nodiscard]] bool may_place_early() const { return !negotiated_.crc && !negotiated_.markers_received; }
  // An FPDU came that is valid as far as MPA can tell.
  void heard_fpdu() {
    if (endpoint_.heard_segment()) linger_end_.reset();
  }

  void choose_rx_buffers();
  void received(std::size_t n, TimePoint now);
  void octets_taken();
  // Where the endpoint takes nothing any more.
  void drop_received();
  void rx_startup(MutBytes bytes, TimePoint now);
  void rx_direct(std::size_t& n);
  void rx_carry(std::size_t& n);
  // How many octets at the end are left, since a message waits for a Receive.
  [[nodiscard]] std::size_t process(MutBytes bytes);
  // The same; keeps those.
  void process_and_keep(MutBytes bytes);
  void go_on();
  void process_fpdu(const mpa::FpduFrame& frame);
  void stash(ConstBytes partial, std::size_t need);
  void process_carry();
  [[nodiscard]] bool begin_direct(ConstBytes partial);

  [[nodiscard]] ConstBytes startup_octets() const;
  void next_batch();
  void encode_batch();
  void batch_taken(std::size_t n, TimePoint now);
  void encode(const endpoint::Endpoint::Segment& segment);
  void encode_marked(const endpoint::Endpoint::Segment& segment);

  endpoint::Endpoint& endpoint_;
  MpaOptions options_;
  Phase followed_;  // what follow() has seen
  bool is_initiator_ = false;
  bool peer_is_awake_ = false;  // octets of full operation came from it, good or bad
  Link link_ = Link::kOpen;
  std::size_t emss_ = 1448;

  std::variant<std::monostate, mpa::Initiator, mpa::Responder> startup_;
  ReplyJudge judge_;
  RetryJudge again_;
  mpa::Negotiated negotiated_;
  std::vector<std::byte> peer_private_data_;
  std::optional<mpa::EnhancedData> rejected_with_;
  std::optional<std::vector<std::byte>> behind_reject_;
  std::optional<FallBack> fall_back_;
  std::optional<TimePoint> startup_deadline_;
  EarlyWake wake_;
  std::optional<TimePoint> linger_end_;  // of the wait for an unheard peer before our FIN

  // Receive side.
  mpa::FpduDecoder decoder_{true};
  Carry carry_;  // the incomplete FPDU at the end of the last bytes received
  struct Direct {
    mpa::FpduDecoder::Layout layout;
    std::size_t trailer_left = 0;
  };
  std::optional<Direct> direct_;  // an FPDU whose payload goes straight to its final buffer
  std::array<std::byte, 8> trailer_{};
  std::size_t last_fpdu_bytes_ = 0;
  // While a message waits for a Receive: its segment, and from `next` on what came behind that.
  struct Held {
    std::vector<std::byte> ulpdu, behind;
    std::size_t next = 0;
  };
  Held held_;
  std::vector<ddp::Pin> rx_pins_;
  std::vector<MutBytes> rx_spans_;
  MutBytes scratch_;
  RxMode rx_mode_ = RxMode::kNone;

  // Transmit side.
  TxGather gather_;
  std::span<const ConstBytes>
      batch_;  // of gather_, as given out; a member because GCC 12 loses a local one in attempt()
  std::vector<ddp::Pin> segment_pins_;
  std::vector<endpoint::Endpoint::Done> done_;
  std::array<ConstBytes, 1> startup_span_;
};

}  // namespace iwarp::stream
