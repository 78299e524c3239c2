// The DDP Stream Sessions of one SCTP association: at most one at a time on each pair of streams with the same number
// (RFC 5043 s6 to s8), each begun and ended by itself. It knows no SCTP: the driver tells that the association is up,
// what came on which stream and what has arrived, and takes session control messages from here.
//
// Driving contract: after any input (1) give control() to SCTP and report with control_taken(), until there is none,
// (2) drain poll_event(), before the next receive(), (3) re-read deadline(). All messages leave unordered. Not
// thread-safe.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "iwarp/sctp/session.h"

namespace iwarp::sctp {

struct AssociationOptions {
  SessionOptions session{};  // of sessions that the peer begins
  // SCTP streams that are asked for, the same number each way. Default 64: a stream costs nothing until a session is on
  // it. The lesser number of the two ends counts.
  std::uint16_t streams = 64;
  // Initiates that wait for the application's decision at a time; more are answered with a Terminate. Default 32.
  std::size_t max_deciding = 32;
  // Octets of early messages that all sessions keep together. Less than what a peer has under way while one message is
  // missing ends sessions.
  std::size_t hold_bytes = HoldBudget::kDefaultBytes;
};

class Association {
 public:
  // Which end has sent the INIT. Each takes streams for its own Initiates from one half of them, even or odd numbers,
  // so that the Initiates of both ends do not meet on one stream, which no legal sequence knows.
  enum class Side : std::uint8_t { kConnected, kAccepted };

  struct Event {
    StreamId stream{};    // of the session
    Session::Event what;  // spans are valid until the next call of poll_event() or receive()
  };

  // Not up yet. Precondition: validate(options.session).
  Association(const AssociationOptions& options, Side side);

  // SCTP has established the association. `indication`: the adaptation indication of the peer; `inbound`, `outbound`:
  // the streams that INIT and INIT ACK have settled. kAdaptation: end the association, no DDP may be done on it.
  [[nodiscard]] Result<void> up(std::optional<std::uint32_t> indication, std::uint16_t inbound, std::uint16_t outbound);
  // The association is gone: each session ends with `why`, kConnectionLost for one. No RDMAP Terminate is owed.
  void lost(const Error& why);

  // Begins a session, on a stream of this end's choice. kNotConnected: not up; kInvalidArgument: options or private
  // data impossible; kResource: no stream is free.
  [[nodiscard]] Result<StreamId> open(const SessionOptions& options, ConstBytes private_data, TimePoint now);
  // The session that has the stream, or had it last; nullptr: there is none. Calls other than those below are fine.
  [[nodiscard]] const Session* find(StreamId stream) const;
  // Of that session, from 1 on in the order in which they began; 0: there is none. The next one of a stream has
  // another.
  [[nodiscard]] std::uint64_t number(StreamId stream) const;
  // As those of Session. kInvalidArgument also when there is no session.
  [[nodiscard]] Result<void> accept(StreamId stream, const enhanced::Depths& depths, ConstBytes private_data,
                                    const std::optional<enhanced::Depths>& told = std::nullopt);
  [[nodiscard]] Result<void> reject(StreamId stream, ConstBytes private_data,
                                    std::optional<std::uint16_t> required_ord = std::nullopt);
  void terminate(StreamId stream);
  // Precondition: its may_send_segment().
  void segment_taken(StreamId stream);

  // As Session::early(), before receive().
  [[nodiscard]] std::optional<Session::Early> early(StreamId stream, const Message& message) const;
  // A message has come. Its octets stay valid until the events are drained. kSessionSequence: on a stream that has no
  // counterpart; end the association.
  [[nodiscard]] Result<void> receive(StreamId stream, const Message& message);
  // Of the messages of a stream that SCTP has taken, the oldest `messages` have arrived.
  void arrived(StreamId stream, std::size_t messages);
  // All messages of all streams have (SENDER_DRY of the sockets API).
  void all_arrived();
  // Oldest undelivered event of some session.
  [[nodiscard]] std::optional<Event> poll_event();

  // A session control message to be given to SCTP, PPID 17, unordered.
  struct Control {
    StreamId stream{};
    ConstBytes message{};  // DDP-SSN first; valid until the next non-const call
  };
  // The next one; nullopt: none.
  [[nodiscard]] std::optional<Control> control() const;
  // SCTP has taken it.
  void control_taken(StreamId stream);

  // When on_deadline() is wanted.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  // Does nothing before deadline().
  void on_deadline(TimePoint now);

  // No session lives, and no control message waits: the association may be shut down without harm to anyone.
  [[nodiscard]] bool idle() const;
  // Streams that can carry sessions; 0: not up.
  [[nodiscard]] std::uint16_t streams() const { return streams_; }
  // What is kept of early messages.
  [[nodiscard]] const HoldBudget& budget() const { return budget_; }

 private:
  using Sessions = std::map<std::uint16_t, std::unique_ptr<Session>>;

  [[nodiscard]] Session* session(StreamId stream) const;
  Session& add(StreamId stream, std::unique_ptr<Session> session);
  void touched(StreamId stream);
  [[nodiscard]] bool has_room_to_decide();

  AssociationOptions options_;
  Side side_;
  HoldBudget budget_;
  std::uint16_t streams_ = 0;
  Sessions sessions_;
  std::map<std::uint16_t, std::uint64_t> numbers_;
  std::uint64_t begun_ = 0;
  std::deque<StreamId> ready_;        // may have events
  std::set<std::uint16_t> deciding_;  // those that the application was asked about
  std::deque<Event> left_;            // of sessions that are replaced, without spans
};

}  // namespace iwarp::sctp
