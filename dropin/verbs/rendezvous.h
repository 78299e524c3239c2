// How ibv_modify_qp() connects queue pairs of the RoCE presentation, without a daemon. The number of a queue pair has
// the TCP port of its process in its lower 16 bits, where this listens at the device's address, and an index above
// them. So both ends know from (GID, number) where the other is to be found. Of the two the smaller connects, with a
// Request that names both numbers and both PSNs; the other accepts what names it so, and comes from the address that
// its application has said.
//
// Nothing here blocks. A Request that comes before its queue pair is in RTR is held until then. Who is the smaller
// knows all of the Request when it is in RTS; if it stays in RTR, for it only serves, the other one knocks.
//
// Ends that do not come together in time, or are refused, lose their peer as one that has gone: what is posted to the
// send queue fails, and nothing happens where nothing is (stream::Options::outlive_peer).
#pragma once

#include <infiniband/verbs.h>

#include <bitset>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dropin/verbs/rendezvous_message.h"
#include "iwarp/cm/connect_request.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin {

// The other end, as ibv_modify_qp() to RTR names it.
struct Peer {
  ibv_gid gid{};
  std::uint32_t number = 0;
  std::uint32_t psn = 0;  // that its requests begin with
};

// The queue pairs of one end. One of them, unless the queue pair is its own peer: then what is sent is sent by another.
struct Ends {
  std::shared_ptr<verbs::QueuePair> receiver, sender;
};

// Thread-safe. One per process, never destroyed: see PerProcess.
class Rendezvous {
 public:
  using TcpEndpoint = boost::asio::ip::tcp::endpoint;
  using Patience = std::chrono::milliseconds;
  // From RTS on, at least. Longer than what InfiniBand makes of the usual attributes: the other process may be slow.
  static constexpr Patience kLeastPatience{60000};

  // A number that no other queue pair of this process has. An errno value: there is no port to listen at.
  [[nodiscard]] int take_number(std::uint32_t& number);
  // It is another's from now on. Nothing is done any more to what begin() was given.
  void give_back(std::uint32_t number);

  // RTR. Precondition: the number was taken, and is not begun with, or was reset().
  void begin(std::uint32_t number, const Ends& ends, const Peer& peer);
  // RTS: the requests of this end begin with `psn`. Precondition: begin().
  void ready(std::uint32_t number, std::uint32_t psn, Patience patience);
  // The number stays taken.
  void reset(std::uint32_t number);

 private:
  struct Held {
    RendezvousMessage message;
    std::shared_ptr<cm::ConnectRequest> request;
    boost::asio::ip::address from;
  };
  struct Entry {
    Ends ends;
    Peer peer;
    bool connects = false, accepts = false;  // at RTR; both of its own peer
    bool connecting = false, accepted = false;
    std::optional<std::uint32_t> psn;
    Patience patience = kLeastPatience;
    std::vector<Held> held;
    std::shared_ptr<boost::asio::steady_timer> timer;
  };
  struct Port {
    std::unique_ptr<cm::Listener> listener;
    std::uint32_t number;
    std::bitset<256> taken;
    std::size_t next = 0;
  };
  // What is to be done without the lock.
  class Work;

  [[nodiscard]] int open_port();
  void wait_for_request(cm::Listener& listener);
  void on_request(std::shared_ptr<cm::ConnectRequest> request);
  // With the lock.
  void match(std::uint32_t number, Entry& entry, Held held, Work& work);
  void connect(std::uint32_t number, Entry& entry, Work& work);
  void knock(std::uint32_t number, Entry& entry, Work& work);
  void limit(std::uint32_t number, Entry& entry);
  // Without.
  void on_knocked(std::uint32_t number, const std::shared_ptr<verbs::QueuePair>& receiver, bool heard);
  void on_patience_over(std::uint32_t number, const std::shared_ptr<boost::asio::steady_timer>& which);

  std::mutex mutex_;
  std::vector<Port> ports_;
  std::unordered_map<std::uint32_t, Entry> entries_;
};

[[nodiscard]] Rendezvous& rendezvous();

// The address of a GID, with the scope that the device's interface gives it.
[[nodiscard]] boost::asio::ip::address address_of(const ibv_gid& gid);

}  // namespace iwarp::dropin
