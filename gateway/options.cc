#include "iwarp/gateway/options.h"

#include <algorithm>
#include <charconv>

#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/transport_header.h"

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

std::size_t Options::least_part() const {
  constexpr std::size_t kMoreReceives = 32;  // of the backward direction, and what a slab holds beyond
  const std::uint32_t receive_bytes =
      rpcrdma_version == rpcrdma::kVersion1 ? inline_bytes : std::max(inline_bytes, rpcrdma::kDefaultInlineBytes2);
  const std::size_t receives = (credits + kMoreReceives) * rpcrdma::BufferPool::charged_bytes(receive_bytes);
  return receives + 2 * (max_record_bytes + kMessageRoom);
}

rpcrdma::Draft2005Options Options::draft_of_connection() const {
  rpcrdma::Draft2005Options out = draft_2005;
  out.incoming_reads = static_cast<std::uint32_t>(policy.ird);
  out.done.max_bytes = std::min(out.done.max_bytes, memory_bytes / 2);
  return out;
}

std::string HostPort::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace iwarp::gateway
