// The ends of rpc_null, rpc_read and rpc_write, and of their baselines; see end.h for the contracts. Those over iWARP
// use the C++ API for RPC (iwarp/rpc): all connections of a test have one rpc::Server with its engine at the passive
// end, and at the active one an rpc::Client each, whose Calls make the next ones in their handlers, and one engine.
// Those over plain TCP frame the same messages with record marks (RFC 5531 s11), and have a thread for each connection,
// which sleeps in send() and recv().
#pragma once

#include "tools/perf/end.h"

namespace iwarp::tools::perf {

[[nodiscard]] std::unique_ptr<Active> rpc_active(const Spec& spec, const std::string& host, std::uint16_t port);
// For the same spec and host, one server while any of them lives.
[[nodiscard]] std::unique_ptr<Passive> rpc_passive(const Spec& spec, const std::string& host);

[[nodiscard]] std::unique_ptr<Active> tcp_rpc_active(const Spec& spec, const std::string& host, std::uint16_t port);
[[nodiscard]] std::unique_ptr<Passive> tcp_rpc_passive(const Spec& spec, const std::string& host);

}  // namespace iwarp::tools::perf
