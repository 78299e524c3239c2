// Log lines of connection events, on standard error, with key=value fields that scripts may rely on.
#pragma once

#include <string>

#include "iwarp/cm/connection.h"

namespace iwarp::tools {

// Logging to standard error, as log_format.h says, of a command such as "iwarp perf run". Call once.
void set_up_logging(const std::string& command, bool verbose);

// "established local=... peer=... role=... rev=... crc=... ..."
void log_established(const cm::Connection& connection);
// "closed peer=... reason=... tx_send=... ... rx_read_bytes=..." and, on error, what the Terminate said.
void log_closed(const cm::Connection& connection, const stream::Disconnected& how);
// "connect failed peer=... reason=...: text"
void log_failed(const std::string& peer, const Error& error);

}  // namespace iwarp::tools
