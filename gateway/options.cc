#include "iwarp/gateway/options.h"

#include <charconv>
#include <tuple>

#include "iwarp/rpcrdma/buffer_pool.h"

namespace iwarp::gateway {

Parsed<HostPort> HostPort::parse(std::string_view text) {
  const auto wrong = [&](const char* what) {
    return Parsed<HostPort>{std::nullopt,
                            "'" + std::string(text) + "' " + what +
                                "; write HOST:PORT, ADDRESS:PORT or [IPV6]:PORT, e.g. 127.0.0.1:2049 or [::1]:20049"};
  };
  std::string_view host;
  std::string_view rest;
  if (!text.empty() && text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return wrong("lacks the closing ]");
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return wrong("has no port");
    if (text.find(':', colon + 1) != std::string_view::npos) return wrong("is an IPv6 address without brackets");
    host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (host.empty()) return wrong("has no host");
  if (rest.size() < 2 || rest.front() != ':') return wrong("has no port");
  unsigned port = 0;
  const auto [end, ec] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), port);
  if (ec != std::errc{} || end != rest.data() + rest.size() || port > 65535)
    return wrong("has no valid port (0 to 65535)");
  return {HostPort{std::string(host), static_cast<std::uint16_t>(port)}, {}};
}

namespace {

// The names of all members stand here, so that a new one does not compile before it is compared.
bool same(const mpa::Policy& a, const mpa::Policy& b) {
  const auto& [revision, crc, peer_to_peer, p2p_fallback, rtr_write, rtr_read, ird, ord, max_ird, startup_timeout,
               revision_fallback, private_data] = a;
  return std::tie(revision, crc, peer_to_peer, p2p_fallback, rtr_write, rtr_read) ==
             std::tie(b.revision, b.crc, b.peer_to_peer, b.allow_peer_to_peer_fallback, b.rtr_write, b.rtr_read) &&
         std::tie(ird, ord, max_ird, startup_timeout, revision_fallback, private_data) ==
             std::tie(b.ird, b.ord, b.max_ird, b.startup_timeout, b.allow_revision_1_fallback,
                      b.max_private_data_bytes);
}

bool same(const stream::Options& a, const stream::Options& b) {
  const auto& [sq_depth, rq_depth, fpdu, direct, first_fpdu, close, drain, early_wake, unheard] = a;
  return std::tie(sq_depth, rq_depth, fpdu, direct, first_fpdu) ==
             std::tie(b.sq_depth, b.rq_depth, b.fpdu, b.direct_placement, b.first_fpdu_timeout) &&
         std::tie(close, drain, early_wake, unheard) ==
             std::tie(b.close_timeout, b.drain_timeout, b.early_wake, b.unheard_wait);
}

}  // namespace

bool operator==(const Options& a, const Options& b) {
  const auto& [policy, stream, allow, source_map, reserved_port, insecure_ports, pnfs, max_record, credits,
               inline_bytes, memory, process_memory, keep_idle, max_connections, per_client, backend, backward,
               delivery, lost_call, record, read, reply, drain] = a;
  return same(policy, b.policy) && same(stream, b.stream) && allow == b.allow && source_map == b.source_map &&
         std::tie(reserved_port, insecure_ports, pnfs, max_record, credits, inline_bytes, memory, process_memory) ==
             std::tie(b.reserved_port, b.insecure_ports, b.pnfs, b.max_record_bytes, b.credits, b.inline_bytes,
                      b.memory_bytes, b.process_memory_bytes) &&
         std::tie(keep_idle, max_connections, per_client, backend, backward, delivery) ==
             std::tie(b.keep_idle_memory, b.max_connections, b.max_connections_per_client, b.backend_timeout,
                      b.backward_timeout, b.delivery_timeout) &&
         std::tie(lost_call, record, read, reply, drain) ==
             std::tie(b.lost_call_limit, b.record_deadline, b.read_deadline, b.reply_deadline, b.drain_timeout);
}

std::size_t Options::least_part() const {
  constexpr std::size_t kMoreReceives = 32;  // of the backward direction, and what a slab holds beyond
  const std::size_t receives = (credits + kMoreReceives) * rpcrdma::BufferPool::charged_bytes(inline_bytes);
  return receives + 2 * (max_record_bytes + kMessageRoom);
}

std::string HostPort::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace iwarp::gateway
