#include "iwarp/gateway/client_places.h"

#include <algorithm>

#include "iwarp/gateway/access.h"

namespace iwarp::gateway {
namespace {

using boost::asio::ip::address;

address who(const address& client) {
  const address plain = unmapped(client);
  if (plain.is_v4()) return plain;
  auto bytes = plain.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6(bytes);
}

}  // namespace

ClientPlaces::Place ClientPlaces::take(const address& client) {
  const auto at = counts_->try_emplace(who(client), 0).first;
  if (at->second >= limit_) {
    if (at->second == 0) counts_->erase(at);
    return nullptr;
  }
  ++at->second;
  return {static_cast<const void*>(&at->second), [counts = counts_, at](const void*) {
            if (--at->second == 0) counts->erase(at);
          }};
}

std::size_t ClientPlaces::of(const address& client) const {
  const auto at = counts_->find(who(client));
  return at == counts_->end() ? 0 : at->second;
}

}  // namespace iwarp::gateway
