// How many connections each client has: none may take the places of all. One thread.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <map>
#include <memory>

namespace iwarp::gateway {

class ClientPlaces {
 public:
  // A connection's place, which is free again when this is destroyed. It may outlive the ClientPlaces.
  using Place = std::shared_ptr<const void>;

  // `limit`: connections of one client at a time. A client is an IPv4 address, or an IPv6 network of 64 bits: whoever
  // has one of its addresses has them all.
  explicit ClientPlaces(std::size_t limit) : limit_(limit) {}

  // From now on. Places that are taken stay, though they be more than that.
  void set_limit(std::size_t limit) { limit_ = limit; }

  // Null when the client has as many as it may have.
  [[nodiscard]] Place take(const boost::asio::ip::address& client);
  // Places that it has.
  [[nodiscard]] std::size_t of(const boost::asio::ip::address& client) const;

 private:
  using Counts = std::map<boost::asio::ip::address, std::size_t>;

  std::size_t limit_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace iwarp::gateway
