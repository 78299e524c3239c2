// Remembers which source port the backend connection of a client had, so that a client that reconnects gets it again:
// servers key their duplicate-request caches by client address AND port (nfs-ganesha and Linux alike), and only there
// can they recognise a replayed MKDIR or REMOVE. Bounded in addresses and ports, with expiry; time is passed in.
// Thread-safe.
//
// A client with several connections has several ports here. A connection lost with calls outstanding is the one whose
// replay matters, and such clients reconnect in the order of their losses: those ports go first, oldest first; after
// them the others, latest first.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "iwarp/base/time.h"
#include "iwarp/gateway/source_ports.h"

namespace iwarp::gateway {

struct PortMemoryOptions {
  // Clients remembered; beyond it the one that was longest untouched is forgotten.
  std::size_t max_addresses = 1024;
  // Ports remembered for one client; beyond it the one that would be handed out last is forgotten.
  std::size_t max_ports_per_address = 16;
  // How long a port is of use: as long as servers keep replies. Linux keeps 2 minutes, nfs-ganesha 10.
  std::chrono::seconds expiry{600};
};

class PortMemory {
 public:
  explicit PortMemory(const PortMemoryOptions& options) : options_(options) {}

  // The backend connection of `client` ended; it used local port `port`. Port 0 is ignored. IPv4-mapped addresses are
  // the IPv4 address.
  void remember(const boost::asio::ip::address& client, std::uint16_t port, bool calls_outstanding, TimePoint now);
  // The port to bind for a new backend connection of `client`, removed from memory: two connections never get the same
  // one. Nothing: let the system choose. Binding can fail (the port was taken meanwhile): then take again, or let it
  // choose.
  [[nodiscard]] std::optional<std::uint16_t> take(const boost::asio::ip::address& client, TimePoint now);

  // A connection of `client` has the port, until the value returned is destroyed: then entries() leaves it out.
  using Use = std::shared_ptr<const void>;
  [[nodiscard]] static Use use(const std::shared_ptr<PortMemory>& memory, const boost::asio::ip::address& client,
                               std::uint16_t port);

  struct Entry {
    boost::asio::ip::address client;
    std::uint16_t port = 0;
    bool calls_outstanding = false;
    TimePoint until{};
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  // All that is known, for a process that comes after this one: in the order in which it is to restore() them. A port
  // in use is one that is lost with calls outstanding.
  [[nodiscard]] std::vector<Entry> entries(TimePoint now) const;
  // Behind what is known of its client. Within the limits and the expiry of this memory.
  void restore(const Entry& entry, TimePoint now);

  // The reserved ports remembered for any client: better not given to another.
  [[nodiscard]] ReservedPortSet reserved(TimePoint now) const;

  [[nodiscard]] std::size_t addresses() const {
    const std::lock_guard lock(mu_);
    return by_address_.size();
  }

 private:
  struct Remembered {
    std::uint16_t port;
    TimePoint until;
  };
  struct Client {
    boost::asio::ip::address address;
    std::vector<Remembered> ports;     // in the order in which they are handed out
    std::size_t with_outstanding = 0;  // the first so many were lost with calls outstanding
  };

  // The members below need the lock.
  // Its client, latest touched, without what has expired and without this port. Null: nothing is to be remembered.
  Client* touch(const boost::asio::ip::address& client, std::uint16_t port, TimePoint now);
  static void drop(Client& client, std::size_t index);
  static void expire(Client& client, TimePoint now);
  void forget(std::list<Client>::iterator client);

  const PortMemoryOptions options_;
  mutable std::mutex mu_;  // guards all that follows
  std::multiset<std::pair<boost::asio::ip::address, std::uint16_t>> used_;
  std::list<Client> clients_;  // latest touched first
  std::map<boost::asio::ip::address, std::list<Client>::iterator> by_address_;
};

}  // namespace iwarp::gateway
