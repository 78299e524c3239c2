// What carries the messages of DDP over SCTP, as its user sees it: an association with streams, unordered delivery and
// message boundaries, whoever speaks SCTP below. Narrow on purpose: sctp::Association (sctp/association.h) needs no
// more, and a test or another SCTP can stand in its place.
//
// One thread: that of the event loop which moves it. Calls of TransportUser are made from that loop, never inside a
// call of Transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"
#include "iwarp/sctp/chunk.h"
#include "iwarp/sctp/ssn_window.h"

namespace iwarp::sctp_cm {

// What INIT and INIT ACK have settled.
struct TransportUp {
  std::optional<std::uint32_t> indication{};  // of the peer (RFC 5061 s4.2.6), nullopt: it has sent none
  std::uint16_t inbound = 0;                  // streams of the peer's direction
  std::uint16_t outbound = 0;                 // of this end's
  std::size_t fragmentation_point = 0;        // octets of a message that leaves in one chunk, at most
};

// Hears of one association.
class TransportUser {
 public:
  virtual ~TransportUser() = default;
  // First, unless on_end() is.
  virtual void on_up(const TransportUp& up) = 0;
  // A whole message, as it came: unordered ones may overtake others. `message.bytes` is valid during the call.
  virtual void on_message(sctp::StreamId stream, const sctp::Message& message) = 0;
  // send() may be tried again.
  virtual void on_room() = 0;
  // All that was given to send() has been acknowledged by the peer's SCTP.
  virtual void on_all_arrived() = 0;
  // Last. kPeerClosed: shut down in order by the peer; kAborted: as shutdown() or abort() asked for; kPeerRejected: the
  // peer has aborted it; kTimeout, kConnectionRefused, kConnectionLost: as their texts say.
  virtual void on_end(const Error& why) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Gives a message to SCTP. False: no room for it now, nothing has happened, on_room() follows. Errors: kNotConnected
  // (not up, or no longer), kInvalidArgument (empty, longer than kMaxMessageBytes, no such stream), kSystem.
  [[nodiscard]] virtual Result<bool> send(sctp::StreamId stream, sctp::Ppid ppid, bool unordered,
                                          ConstBytes message) = 0;
  // While on, no message is handed up, so that the peer's SCTP stops sending at last. It stops all streams, and
  // the end is heard of when it is off again.
  virtual void hold(bool on) = 0;
  // Orderly: what was given to send() still arrives, then on_end().
  virtual void shutdown() = 0;
  // At once; on_end() follows. `why` goes to the peer.
  virtual void abort(const char* why) = 0;
  // As abort(), and nothing is heard of it any more: for users that go.
  virtual void leave() = 0;
};

// Octets of a message that is sent or taken, at most; one that is longer ends the association.
inline constexpr std::size_t kMaxMessageBytes = 65536;

}  // namespace iwarp::sctp_cm
