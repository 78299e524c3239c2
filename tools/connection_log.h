// Log lines of connection events, on standard error, with key=value fields that scripts may rely on.
#pragma once

#include <string>

#include "iwarp/llp/lower_layer.h"

namespace iwarp::tools {

// Logging to standard error, as log_format.h says, of a command such as "iwarp perf run". Call once.
void set_up_logging(const std::string& command, bool verbose);

// "established local=... peer=... role=... rev=... crc=... ..."
void log_established(const llp::Connection& connection);
// "closed peer=... end=... tx_write=... tx_wake=... ..." as cm::describe_end() says it, in 120 columns unless debug
// lines are logged: what is zero is left out, such as tx_wake, the empty RDMA Writes that woke the peer. A warning,
// unless it ended as connections do, or a server's client has left.
void log_closed(const llp::Connection& connection, const stream::Disconnected& how);
// "connect failed peer=... reason=...: text"; without the reason where a system call failed: the text is that of errno.
void log_failed(const std::string& peer, const Error& error);

}  // namespace iwarp::tools
