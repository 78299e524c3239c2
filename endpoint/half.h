// A half as the owner of its Endpoint sees it: what it asks of the lower layer, whichever that is (stream::Connection
// for MPA over TCP, session::Half for SCTP). What the halves do beside it is theirs. Like the Endpoint not thread-safe.
#pragma once

#include "iwarp/base/error.h"
#include "iwarp/base/time.h"

namespace iwarp::endpoint {

class Half {
 public:
  // A Receive may have been posted, and a message waits for one (Endpoint::holding()): goes on with what came behind.
  virtual void resume(TimePoint now) = 0;
  // Orderly, behind what was posted.
  virtual void disconnect(TimePoint now) = 0;
  // Orderly for the peer, at once for the owner: Endpoint::leave().
  virtual void leave(const Error& reason, TimePoint now) = 0;
  // Abruptly.
  virtual void abort(const Error& reason) = 0;
  // Abruptly, but for a peer that has to be heard first: Endpoint::abort_unheard().
  virtual void abort_sparing(const Error& reason, TimePoint now) = 0;

 protected:
  ~Half() = default;  // nobody owns one as this
};

}  // namespace iwarp::endpoint
