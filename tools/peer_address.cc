#include "tools/peer_address.h"

#include <algorithm>
#include <boost/asio/ip/address_v6.hpp>
#include <string>

namespace iwarp::tools {

gateway::Parsed<gateway::HostPort> peer_address(std::string_view text, std::uint16_t port) {
  const auto alone = [port](std::string_view host) {
    return gateway::Parsed<gateway::HostPort>{gateway::HostPort{std::string(host), port}, {}};
  };
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') return alone(text.substr(1, text.size() - 2));
  const auto colons = std::ranges::count(text, ':');
  if (colons == 0 && !text.empty() && text.front() != '[') return alone(text);
  boost::system::error_code no_address;
  if (colons > 1) (void)boost::asio::ip::make_address_v6(std::string(text), no_address);
  if (colons > 1 && !no_address) return alone(text);
  return gateway::HostPort::parse(text);
}

}  // namespace iwarp::tools
