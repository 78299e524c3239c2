// Who may use the gateway, and as whom: the values of --allow and --source-map. Behind a gateway every client has the
// gateway's address, so the server's export rules see only us; these lists take their place. Pure: parsing
// and matching, no I/O, no name look-up. An IPv4-mapped IPv6 address (::ffff:a.b.c.d) always counts as the IPv4
// address.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iwarp::gateway {

// The value, or the complete sentence that tells the operator what is wrong with it and what would be right.
template <class T>
struct Parsed {
  std::optional<T> value{};
  std::string error{};

  explicit operator bool() const { return value.has_value(); }
};

// ::ffff:a.b.c.d as a.b.c.d; every other address unchanged.
[[nodiscard]] boost::asio::ip::address unmapped(const boost::asio::ip::address& address);

// A network in CIDR notation, IPv4 or IPv6.
class Network {
 public:
  // "10.0.0.0/8", "fd00::/8", or one address without a slash. Host bits must be zero: 10.1.0.0/8 is mostly a typing
  // error.
  [[nodiscard]] static Parsed<Network> parse(std::string_view text);

  // IPv6 scope (%eth0) plays no part in the comparison.
  [[nodiscard]] bool contains(const boost::asio::ip::address& address) const;
  [[nodiscard]] unsigned prefix_bits() const { return prefix_bits_; }
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Network&, const Network&) = default;

 private:
  Network(boost::asio::ip::address base, unsigned prefix_bits) : base_(std::move(base)), prefix_bits_(prefix_bits) {}

  boost::asio::ip::address base_;  // unmapped, host bits zero
  unsigned prefix_bits_;
};

// --allow: the client addresses that are served.
class AccessList {
 public:
  // The default: 127.0.0.0/8 and ::1.
  AccessList();
  // Networks separated by commas. An empty list is an error: it would refuse everybody.
  [[nodiscard]] static Parsed<AccessList> parse(std::string_view text);

  [[nodiscard]] bool allows(const boost::asio::ip::address& client) const;
  // In the notation of parse().
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const AccessList&, const AccessList&) = default;

 private:
  explicit AccessList(std::vector<Network> networks) : networks_(std::move(networks)) {}

  std::vector<Network> networks_;
};

// --source-map: the local address that the connection to the server is bound to, by client. It lets the server tell
// clients apart: for a server on loopback, 127.x.y.z for each client network.
class SourceMap {
 public:
  // Maps nothing: the system chooses the source address.
  SourceMap() = default;
  // CIDR=ADDR entries separated by commas. Two entries for the same network are an error.
  [[nodiscard]] static Parsed<SourceMap> parse(std::string_view text);

  // The address of the most specific network that contains `client`.
  [[nodiscard]] std::optional<boost::asio::ip::address> source_for(const boost::asio::ip::address& client) const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const SourceMap&, const SourceMap&) = default;

 private:
  struct Entry {
    Network clients;
    boost::asio::ip::address source;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  std::vector<Entry> entries_;  // most specific first
};

}  // namespace iwarp::gateway
