#include "iwarp/gateway/access.h"

#include <algorithm>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <charconv>

namespace iwarp::gateway {
namespace {

namespace ip = boost::asio::ip;

constexpr unsigned kMappedPrefixBits = 96;  // of ::ffff:0:0/96

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::optional<ip::address> parse_address(std::string_view text) {
  boost::system::error_code failed;
  const ip::address address = ip::make_address(std::string(text), failed);
  if (failed) return std::nullopt;
  return address;
}

// The address with all bits behind the prefix cleared, scope dropped.
ip::address masked(const ip::address& address, unsigned prefix_bits) {
  if (address.is_v4()) {
    return ip::make_network_v4(address.to_v4(), static_cast<unsigned short>(prefix_bits)).network();
  }
  const ip::address_v6 plain(address.to_v6().to_bytes());
  return ip::make_network_v6(plain, static_cast<unsigned short>(prefix_bits)).network();
}

unsigned max_prefix_bits(const ip::address& address) {
  return address.is_v4() ? 32 : 128;
}

// Blanks around an entry are harmless: "10.0.0.0/8, ::1".
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t comma = text.find(',');
    out.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

ip::address unmapped(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

Parsed<Network> Network::parse(std::string_view text) {
  if (text.empty()) {
    return {std::nullopt,
            "a network is missing: give CIDR notation such as 10.0.0.0/8 or fd00::/8, with one comma between two"};
  }
  const std::size_t slash = text.find('/');
  const std::string_view address_text = text.substr(0, slash);
  const auto address = parse_address(address_text);
  if (!address) {
    return {std::nullopt, quoted(address_text) +
                              " is not an IPv4 or IPv6 address (names are not resolved): give CIDR "
                              "notation such as 10.0.0.0/8 or fd00::/8"};
  }
  const unsigned max_bits = max_prefix_bits(*address);
  unsigned bits = max_bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (failed != std::errc{} || end != digits.data() + digits.size() || bits > max_bits) {
      return {std::nullopt, quoted(text) + " has a bad prefix length: behind the slash of an " +
                                (address->is_v4() ? "IPv4" : "IPv6") + " network comes a number from 0 to " +
                                std::to_string(max_bits)};
    }
  }
  const ip::address base = masked(*address, bits);
  if (base != masked(*address, max_bits)) {
    return {std::nullopt, quoted(text) + " has bits set behind its prefix: write " + base.to_string() + "/" +
                              std::to_string(bits) + " for the network or " + std::string(address_text) + "/" +
                              std::to_string(max_bits) + " for the one address"};
  }
  if (base.is_v6() && base.to_v6().is_v4_mapped() && bits >= kMappedPrefixBits) {
    return {Network(unmapped(base), bits - kMappedPrefixBits), {}};
  }
  return {Network(base, bits), {}};
}

bool Network::contains(const ip::address& address) const {
  const ip::address plain = unmapped(address);
  return plain.is_v4() == base_.is_v4() && masked(plain, prefix_bits_) == base_;
}

std::string Network::to_string() const {
  return base_.to_string() + "/" + std::to_string(prefix_bits_);
}

AccessList::AccessList() : networks_{*Network::parse("127.0.0.0/8").value, *Network::parse("::1/128").value} {}

Parsed<AccessList> AccessList::parse(std::string_view text) {
  std::vector<Network> networks;
  for (const std::string_view item : split_list(text)) {
    Parsed<Network> network = Network::parse(item);
    if (!network) return {std::nullopt, std::move(network.error)};
    networks.push_back(*std::move(network.value));
  }
  return {AccessList(std::move(networks)), {}};
}

bool AccessList::allows(const ip::address& client) const {
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& n) { return n.contains(client); });
}

std::string AccessList::to_string() const {
  std::string out;
  for (const Network& network : networks_) out += (out.empty() ? "" : ",") + network.to_string();
  return out;
}

Parsed<SourceMap> SourceMap::parse(std::string_view text) {
  SourceMap map;
  for (const std::string_view item : split_list(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return {std::nullopt, quoted(item) +
                                " is not CIDR=ADDR: write the clients' network, '=' and the local source address, "
                                "such as 10.1.0.0/16=127.0.1.1"};
    }
    Parsed<Network> clients = Network::parse(trimmed(item.substr(0, equals)));
    if (!clients) return {std::nullopt, std::move(clients.error)};
    const std::string_view source_text = trimmed(item.substr(equals + 1));
    const auto source = parse_address(source_text);
    if (!source || source->is_unspecified() || source->is_multicast()) {
      return {std::nullopt, quoted(source_text) + " in " + quoted(item) +
                                " cannot be a source address: behind '=' comes one address of this machine, such as "
                                "127.0.1.1"};
    }
    for (const Entry& other : map.entries_) {
      if (other.clients == *clients.value) {
        return {std::nullopt, clients.value->to_string() + " is mapped twice, to " + other.source.to_string() +
                                  " and to " + source->to_string() + ": keep one of them"};
      }
    }
    map.entries_.push_back({*clients.value, unmapped(*source)});
  }
  // Families cannot both contain an address, so comparing lengths across them is harmless.
  std::stable_sort(map.entries_.begin(), map.entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.clients.prefix_bits() > b.clients.prefix_bits(); });
  return {std::move(map), {}};
}

std::optional<ip::address> SourceMap::source_for(const ip::address& client) const {
  for (const Entry& entry : entries_) {
    if (entry.clients.contains(client)) return entry.source;
  }
  return std::nullopt;
}

std::string SourceMap::to_string() const {
  std::string out;
  for (const Entry& e : entries_) out += (out.empty() ? "" : ",") + e.clients.to_string() + "=" + e.source.to_string();
  return out;
}

}  // namespace iwarp::gateway
