// What NFSv4.1 and 4.2 sessions limit Replies to (RFC 8267 s6.2.2): the ca_maxresponsesize that a server answers
// CREATE_SESSION with holds for every Reply of that session, and bounds those that nothing else does. A few sessions
// are remembered, the last ones; of others nothing is known. Bounded work over untrusted XDR. Internal to rpcrdma.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp::rpcrdma {

// CREATE_SESSION names a session like this, SEQUENCE repeats it.
using SessionId = std::array<std::byte, 16>;

class SessionLimits {
 public:
  static constexpr std::size_t kMaxSessions = 8;

  // `reply`: to a COMPOUND that has a CREATE_SESSION (ResultBinding::creates_session()).
  void learn(ConstBytes reply);
  // Most octets of the RPC Reply to the RPC Call `call`, transport header not included. Nothing: it names no session,
  // or none that is known.
  [[nodiscard]] std::optional<std::size_t> limit(ConstBytes call) const;

 private:
  struct Session {
    SessionId id{};
    std::uint32_t max_response = 0;  // 0: none
  };

  std::array<Session, kMaxSessions> sessions_{};
  std::size_t next_ = 0;  // to be overwritten
};

}  // namespace iwarp::rpcrdma
