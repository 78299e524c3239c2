// The ends of the tests over iWARP, one pair a kind; see end.h for the contracts.
#pragma once

#include "tools/perf/rdma_side.h"

namespace iwarp::tools::perf {

// write_bw, read_bw: the passive end only answers notes, and serves latency tests by RDMA Read as well.
[[nodiscard]] std::unique_ptr<Active> bulk_active(const Spec& spec, const std::string& host, std::uint16_t port);
void bulk_passive(RdmaSide& side, const std::atomic<bool>& stop);

// send_bw, send_rate: Sends under credits.
[[nodiscard]] std::unique_ptr<Active> send_active(const Spec& spec, const std::string& host, std::uint16_t port);
void send_passive(RdmaSide& side, const std::atomic<bool>& stop);
// Receives that the passive end posts, each as long as a message.
[[nodiscard]] std::size_t send_credits(const Spec& spec);

// send_lat, write_lat, read_lat.
[[nodiscard]] std::unique_ptr<Active> latency_active(const Spec& spec, const std::string& host, std::uint16_t port);
void latency_passive(RdmaSide& side, const std::atomic<bool>& stop);

// connect_rate.
[[nodiscard]] std::unique_ptr<Active> connect_active(const Spec& spec, const std::string& host, std::uint16_t port);

}  // namespace iwarp::tools::perf
