// The end of a client's connection, in the log and in the counters.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/rdma_provider.h"
#include "iwarp/gateway/siw_crc_trap.h"

namespace iwarp::gateway {

// "closed peer=... tcp_peer=... end=... counters ...": both far ends are named, whichever of them is the client. The
// line has 120 columns, unless debug lines are logged. And what `trap` recognises, by the peer's Terminate.
void tell_end(EventLog& log, Stats& stats, SiwCrcTrap& trap, const RdmaLink& connection,
              const stream::Disconnected& how, const boost::asio::ip::tcp::endpoint& tcp_peer);

// "closing peer=... tcp_peer=... reason=... why=...": the gateway itself is about to end it.
void tell_given_up(EventLog& log, Stats& stats, const RdmaLink& connection, EndReason why, const Error& error,
                   const boost::asio::ip::tcp::endpoint& tcp_peer);

}  // namespace iwarp::gateway
