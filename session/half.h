// Puts an endpoint::Endpoint on a DDP Stream Session of sctp, as stream::Connection puts one on MPA and TCP: segments
// leave as messages and come in the order of the DDP-SSN, a Session Terminate is the end of the stream, the loss of the
// association is a reset. It knows no SCTP, clock or thread.
//
// A segment that comes before others in front of it is placed at once where that is possible (on_early()), and
// delivered in its place in the order. What is wrong with it, or with its memory, is found then.
//
// Driving contract: after any input (1) while next() gives a message and the session takes segments, give it to SCTP
// and report with taken(); (2) ask must_terminate(); (3) drain the endpoint's events and completions; (4) re-read
// deadline(). The owner of the endpoint posts to it; then (1) to (4) as well. Not thread-safe.
//
// A Send that waits for a Receive (endpoint::Options::receive_wait) holds up its own session only: what comes behind it
// is kept here, within Options::max_held_bytes. When the peer's Terminate is behind it the session is over: Receives
// still take what waits, and nothing leaves any more.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "iwarp/endpoint/endpoint.h"
#include "iwarp/endpoint/half.h"
#include "iwarp/sctp/session.h"
#include "iwarp/session/early_placement.h"

namespace iwarp::session {

struct Options {
  // Octets that are kept behind a Send that waits for a Receive, with some 32 a segment for the keeping, 128 of one
  // that is placed. Default 320 KiB, as over TCP. A peer that sends more meanwhile ends its session with a Terminate
  // 1/2/2.
  std::size_t max_held_bytes = std::size_t{320} << 10;
};

class Half final : public endpoint::Half {
 public:
  // `endpoint` outlives it, and is of this session alone.
  explicit Half(endpoint::Endpoint& endpoint, const Options& options = {}) : endpoint_(endpoint), options_(options) {}
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;

  // The session is being set up: an Initiate leaves, or is accepted.
  void start(TimePoint now);
  // News of the session, in order; `role`: this end's. Requested is the application's business and not given here.
  void on_event(const sctp::Session::Event& event, sctp::Role role, TimePoint now);
  // Places the payload of a segment that is early, if it is known where it belongs. How many octets at its end that
  // were, all of the payload or 0: for sctp::Message::placed of the message, which has to be given to the session next.
  [[nodiscard]] std::size_t on_early(const sctp::Session::Early& early);

  // The next message that is to leave: room for the DDP-SSN, then the segment, of at most `max_segment_bytes` (MULPDU);
  // empty: none. Valid, and given again, until taken() or an input that ends the stream.
  [[nodiscard]] MutBytes next(std::size_t max_segment_bytes, TimePoint now);
  // SCTP has taken it. Precondition: next() gave one, and nothing was called since.
  void taken(TimePoint now);
  // True once: the session is to be terminated, behind what was given to SCTP. Whether it still can is its business.
  [[nodiscard]] bool must_terminate();

  void disconnect(TimePoint now) override;
  void leave(const Error& reason, TimePoint now) override;
  void abort(const Error& reason) override;
  void abort_sparing(const Error& reason, TimePoint now) override;  // no peer has to be heard: as abort()
  void resume(TimePoint now) override;
  // When on_deadline() is wanted.
  [[nodiscard]] std::optional<TimePoint> deadline() const { return endpoint_.deadline(); }
  // Does nothing before deadline().
  void on_deadline(TimePoint now);

  // What the peer's application said in its Accept or Reject; empty before, or on the passive side.
  [[nodiscard]] ConstBytes private_data() const { return private_data_; }
  // Octets that are kept.
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_; }

 private:
  template <class F>
  void attempt(F&& step);
  void established(const sctp::Session::Established& e, sctp::Role role);
  void ended(const Error& error);
  void delivered(const sctp::Session::Delivered& segment);
  void keep(const sctp::Session::Delivered& segment);
  void receive(ConstBytes segment, std::size_t placed);
  void receive_among_early(ConstBytes segment, std::size_t placed);
  void follow();

  endpoint::Endpoint& endpoint_;
  Options options_;
  std::vector<std::byte> message_;  // encoded, not taken
  endpoint::Endpoint::Done done_{};
  struct Held {
    std::vector<std::byte> segment;
    std::size_t placed;  // as sctp::Session::Delivered
  };
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
  EarlyPlacement early_;
  std::vector<ddp::Pin> targets_;  // of one call
  std::vector<std::byte> private_data_;
  endpoint::Phase followed_ = endpoint::Phase::kIdle;
  bool started_ = false, peer_has_ended_ = false, told_ = false, unsuited_ = false;
};

}  // namespace iwarp::session
