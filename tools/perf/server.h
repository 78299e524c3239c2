// `iwarp perf serve`: offers the passive ends of tests over a control connection.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>

#include "tools/perf/spec.h"

namespace iwarp::tools::perf {

// CPU seconds of this process so far, user and system.
[[nodiscard]] double cpu_seconds();

// Binds the calling thread, and those it starts, to a processor; -1: leaves it as it is. Throws std::runtime_error when
// there is no such processor, or not for this process.
void bind_to_cpu(int cpu);
// Throws as bind_to_cpu() would, and binds nothing.
void check_cpu(int cpu);
// How long a client may say nothing while its test runs.
[[nodiscard]] std::chrono::milliseconds longest_silence(const Spec& spec);

// Sets `interrupted` and makes serve() return. For signal handlers.
void interrupt();

// Serves control connections one after the other until interrupted; a second one at the same time is told so.
// A client that starts no test for `patience`, or is silent in one for longer than longest_silence(), is sent away,
// since it keeps the others out; so is one whose machine answers no more.
// `listening` hears the address first. With `once` it returns when the first client has gone. Throws
// boost::system::system_error when it cannot listen.
void serve(const boost::asio::ip::tcp::endpoint& endpoint, bool once, std::chrono::milliseconds patience,
           const std::function<void(const boost::asio::ip::tcp::endpoint&)>& listening);

}  // namespace iwarp::tools::perf
