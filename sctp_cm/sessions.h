// The DDP Stream Sessions of one association, driven: puts an sctp::Association on a Transport. It moves session
// control by itself; segments are given to it one by one, and come out with the events of their sessions. One thread:
// that of the io_context. SessionsUser is called from its loop, never inside a call of Sessions.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "iwarp/sctp/association.h"
#include "iwarp/sctp_cm/deadline.h"
#include "iwarp/sctp_cm/transport.h"

namespace iwarp::sctp_cm {

class SessionsUser {
 public:
  virtual ~SessionsUser() = default;
  // The association is up and carries DDP: open() may be called, and the peer may begin sessions.
  virtual void on_ready() = 0;
  // Of a session; what it points to is valid during the call.
  virtual void on_event(sctp::StreamId stream, const sctp::Session::Event& event) = 0;
  // A segment of a session has come before others in front of it. How many octets at its end were placed: they are not
  // kept until it is delivered (session::Half::on_early()). Calls nothing of Sessions.
  [[nodiscard]] virtual std::size_t on_early(sctp::StreamId stream, const sctp::Session::Early& early) = 0;
  // send_segment() may be tried again, on any stream.
  virtual void on_room() = 0;
  // Last: the association is over. Sessions that were not have heard Ended before. kAdaptation: the peer has not
  // indicated DDP.
  virtual void on_end(const Error& why) = 0;
};

class Sessions final : public TransportUser {
 public:
  // `user` outlives it. Precondition: validate(options.session).
  Sessions(boost::asio::io_context& io, const sctp::AssociationOptions& options, sctp::Association::Side side,
           SessionsUser& user);
  // Aborts what is not over; nobody is told.
  ~Sessions() override;
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // The association, which knows this as its user; once, before anything is heard of it.
  void attach(std::shared_ptr<Transport> transport) { transport_ = std::move(transport); }

  // Begins a session; Established, Rejected or Ended follows. Errors as sctp::Association::open().
  [[nodiscard]] Result<sctp::StreamId> open(const sctp::SessionOptions& options, ConstBytes private_data);
  // Decisions on Requested, as those of sctp::Association.
  [[nodiscard]] Result<void> accept(sctp::StreamId stream, const enhanced::Depths& depths, ConstBytes private_data,
                                    const std::optional<enhanced::Depths>& told = std::nullopt);
  [[nodiscard]] Result<void> reject(sctp::StreamId stream, ConstBytes private_data,
                                    std::optional<std::uint16_t> required_ord = std::nullopt);
  // Ends a session, behind what was sent on it; the others go on.
  void terminate(sctp::StreamId stream);
  // Sends a DDP Segment. `message`: two octets of room, which are overwritten, then the segment, of at most
  // max_segment_bytes(). False: not now; nothing has happened, on_room() follows. Errors: kNotConnected (no such
  // session, or it takes no segment any more), kInvalidArgument (too long).
  [[nodiscard]] Result<bool> send_segment(sctp::StreamId stream, MutBytes message);
  // MULPDU: octets of a segment, at most. 0: not up.
  [[nodiscard]] std::size_t max_segment_bytes() const { return max_segment_; }
  // Whether segments of that session may leave now, as far as its state goes.
  [[nodiscard]] bool may_send(sctp::StreamId stream) const;

  // Ends all sessions, then the association, in order; on_end() follows. A peer that does not end its own is waited
  // for.
  void close();
  // At once.
  void abort();
  [[nodiscard]] const sctp::Association& association() const { return association_; }

  // --- TransportUser
  void on_up(const TransportUp& up) override;
  void on_message(sctp::StreamId stream, const sctp::Message& message) override;
  void on_room() override;
  void on_all_arrived() override;
  void on_end(const Error& why) override;

 private:
  void send_control();
  // After each input from the loop: what is to be told. False: this is gone.
  bool drain();
  void later();
  void after();
  void broken(const Error& why);

  boost::asio::io_context& io_;
  Deadline deadline_;
  sctp::Association association_;
  SessionsUser* user_;
  std::shared_ptr<Transport> transport_;
  std::size_t max_segment_ = 0;
  bool up_ = false, over_ = false, closing_ = false, shut_ = false, owes_ = false, wants_room_ = false;
  std::optional<Error> broken_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::sctp_cm
