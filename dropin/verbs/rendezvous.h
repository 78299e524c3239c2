// How ibv_modify_qp() connects queue pairs of the RoCE presentation, without a daemon. The number of a queue pair has
// the TCP port of its process in its lower 16 bits, where this listens at the device's address, and an index above
// them. So both ends know from (GID, number) where the other is to be found. Of the two the smaller connects, with a
// Request that names both numbers and both PSNs; the other accepts what names it so, and comes from the address that
// its application has said.
//
// Nothing here blocks. A Request that comes before its queue pair is in RTR is held until then, kHeldFor at most. Who
// is the smaller knows all of the Request when it is in RTS; if it stays in RTR, for it only serves, the other one
// knocks, and names the PSN that it expects.
//
// An end in RTR does not know its own PSN. What it accepts, or what a knock made it send, is compared when it is in
// RTS: with another PSN the queue pair comes to the error state then.
//
// What fails and may pass is tried again until the time that ready() gives is over: a Request that found too many
// others, one that TCP has lost. Where nobody has the number, or nobody listens, that is tried for kTries. Ends that do
// not come together in that time, or are refused, lose their peer as one that has gone: what is posted to the send
// queue fails, and nothing happens where nothing is (endpoint::Options::outlive_peer).
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
#include "iwarp/base/time.h"
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
  // Requests and knocks that are held: for one queue pair, and for all. Their senders try again.
  static constexpr std::size_t kMostHeld = 8, kMostHeldOfAll = 256;
  // How long one is held: whoever sent it may have gone, and tries again if not.
  static constexpr std::chrono::milliseconds kHeldFor{4000};
  // From RTS to the first knock. Usually the peer's Request comes before; and from a knock to the next: that was heard,
  // or has failed.
  static constexpr std::chrono::milliseconds kBeforeKnock{30}, kAfterHeard{1000}, kAfterFailure{100};

  // A number that no other queue pair of this process has. An errno value: there is no port to listen at.
  [[nodiscard]] int take_number(std::uint32_t& number);
  // It is another's from now on. Nothing is done any more to what begin() was given.
  void give_back(std::uint32_t number) noexcept;

  // RTR. Precondition: the number was taken, and is not begun with, or was reset().
  void begin(std::uint32_t number, const Ends& ends, const Peer& peer);
  // RTS: the requests of this end begin with `psn`. Precondition: begin().
  void ready(std::uint32_t number, std::uint32_t psn, Patience patience);
  // The number stays taken.
  void reset(std::uint32_t number) noexcept;
  // rdma_cm connects that queue pair: until begin() nothing that comes for its number is held.
  void leave_to_rdma_cm(std::uint32_t number) noexcept;

 private:
  // Differs for each Request that is held, and for each begin(): handlers know by it whether they are late.
  using Ticket = std::uint64_t;
  using Timer = std::unique_ptr<boost::asio::steady_timer>;  // used with the lock only

  struct Held {
    RendezvousMessage message;
    std::shared_ptr<cm::ConnectRequest> request;
    boost::asio::ip::address from;
    Ticket ticket = 0;
    Timer expiry;
  };
  struct Entry {
    Ticket ticket = 0;
    Ends ends;
    Peer peer;
    bool of_rdma_cm = false;
    bool connects = false, accepts = false;  // at RTR; both of its own peer
    bool connecting = false, connected = false, accepted = false;
    bool lost = false;                        // the peer, or this end: nothing is accepted any more
    std::optional<std::uint32_t> psn;         // of this end, at RTS
    std::optional<std::uint32_t> heard_psn;   // likewise, as the last knock has it
    std::optional<std::uint32_t> tried_psn;   // likewise, in the Request under way
    std::optional<std::uint32_t> called_psn;  // likewise, in what was accepted
    Patience patience = kLeastPatience;
    TimePoint since{};                      // it connects, or is ready
    std::optional<TimePoint> absent_since;  // nobody is there, as far as is known
    Timer knock, limit;
  };
  struct Port {
    std::unique_ptr<cm::Listener> listener;
    std::uint32_t number;
    std::bitset<256> taken;
    std::size_t next = 0;
  };
  // What is to be done without the lock.
  class Work;
  // What became of an attempt.
  enum class Verdict : std::uint8_t { kAgain, kHeard, kLost };

  [[nodiscard]] int open_port();
  void wait_for_request(cm::Listener& listener);
  void on_request(const std::shared_ptr<cm::ConnectRequest>& request);
  void on_expired(Ticket held);
  void on_knock_due(std::uint32_t number, Ticket ticket);
  void on_knocked(std::uint32_t number, Ticket ticket, const Error& error,
                  const std::shared_ptr<cm::Connection>& connection);
  void on_limit(std::uint32_t number, Ticket ticket);
  void on_connected(std::uint32_t number, Ticket ticket, const std::shared_ptr<verbs::QueuePair>& qp,
                    const Error& error, const std::shared_ptr<cm::Connection>& connection);
  void on_accepted(std::uint32_t number, Ticket ticket, const std::shared_ptr<verbs::QueuePair>& qp, const Error& error,
                   const std::shared_ptr<cm::Connection>& connection);
  // With the lock of the queue pair, perhaps.
  [[nodiscard]] std::optional<std::vector<std::byte>> try_again(std::uint32_t number, Ticket ticket,
                                                                const Error& failed, ConstBytes answer);
  // With the lock.
  [[nodiscard]] Entry* current(std::uint32_t number, Ticket ticket);
  [[nodiscard]] std::shared_ptr<cm::ConnectRequest> take_held(std::uint32_t number, RendezvousMessage& message,
                                                              boost::asio::ip::address& from);
  void hold(Held held, Work& work);
  void match(std::uint32_t number, Entry& entry, const RendezvousMessage& message,
             const std::shared_ptr<cm::ConnectRequest>& request, const boost::asio::ip::address& from, Work& work);
  void connect(std::uint32_t number, Entry& entry, Work& work);
  void knock(std::uint32_t number, const Entry& entry, Work& work);
  void knock_after(std::uint32_t number, Entry& entry, std::chrono::milliseconds pause);
  void limit(std::uint32_t number, Entry& entry);
  // Leaves both ends if the peer has named another PSN of this end.
  void compare(Entry& entry, Work& work);
  [[nodiscard]] static Verdict judge(Entry& entry, const Error& error, ConstBytes answer);

  std::mutex mutex_;  // behind the lock of a queue pair
  Ticket tickets_ = 0;
  std::vector<Port> ports_;
  std::unordered_map<std::uint32_t, Entry> entries_;
  std::vector<Held> held_;
};

[[nodiscard]] Rendezvous& rendezvous();

// What both ends ask of MPA.
[[nodiscard]] mpa::Policy rendezvous_policy();

// The address of a GID, with the scope that the device's interface gives it.
[[nodiscard]] boost::asio::ip::address address_of(const ibv_gid& gid);

}  // namespace iwarp::dropin
