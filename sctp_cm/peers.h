// Who is who: what arrives from a UDP address, with its SCTP ports, belongs to a handle, and SCTP's packets for a
// handle go to that address. Handles are small numbers; the state cookies that this end gives out are bound to them,
// and to SCTP ports and the tag of the answer. A cookie counts for its handle and tag together, so that a handle which
// was only asked with may serve another peer at once. No sockets. One thread.
#pragma once

#include <array>
#include <boost/asio/ip/udp.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <set>

#include "iwarp/base/time.h"

namespace iwarp::sctp_cm {

class UdpPort;

enum class Handle : std::uint64_t {};
// For packets of nobody that is known; kNone is none.
inline constexpr Handle kNoHandle{0};
inline constexpr Handle kOutOfTheBlue{1};

struct Peer {
  UdpPort* by = nullptr;  // our end
  boost::asio::ip::udp::endpoint at;
  std::uint16_t peer_port = 0;  // of SCTP
  std::uint16_t own_port = 0;   // of SCTP
  // The address of this host that it speaks to; unspecified: not known, or the only one of `by`. Tells no peers apart.
  boost::asio::ip::address own{};

  friend auto operator<=>(const Peer& a, const Peer& b) {
    if (const auto c = a.by <=> b.by; c != 0) return c;
    if (a.at != b.at) return a.at < b.at ? std::strong_ordering::less : std::strong_ordering::greater;
    if (const auto c = a.peer_port <=> b.peer_port; c != 0) return c;
    return a.own_port <=> b.own_port;
  }
  friend bool operator==(const Peer& a, const Peer& b) { return a <=> b == 0; }
};

class Peers {
 public:
  // How long a state cookie is good; a handle rests twice as long behind its association.
  static constexpr std::chrono::milliseconds kCookieLife{10000};

  // `max_asking`: peers that have sent an INIT and no cookie yet, at a time; a new one takes the place of the oldest,
  // which may ask again. `max_in_use`: handles that SCTP may know.
  explicit Peers(std::size_t max_asking, std::size_t max_in_use = SIZE_MAX)
      : max_asking_(max_asking), max_in_use_(max_in_use) {}

  // The association's; kNoHandle: it has none.
  [[nodiscard]] Handle known(const Peer& peer) const;
  // Of one that has asked; kNoHandle: it has not, or too long ago.
  [[nodiscard]] Handle asking(const Peer& peer) const;
  // It asks, maybe again. A handle that SCTP knows already is taken before a new one: a handle that was only asked with
  // need not rest.
  Handle ask(const Peer& peer, TimePoint now);
  // The Initiate Tag of an INIT ACK that goes to a handle. Its COOKIE ECHO has it for Verification Tag (RFC 9260 s8.5),
  // so who sends under a forged address, and sees no INIT ACK, does not know it.
  void answered(Handle handle, std::uint32_t tag);
  // Whether one of the last kTags answers to this peer, which asks, had that tag.
  [[nodiscard]] bool expects(const Peer& peer, std::uint32_t tag) const;
  // Those that asked kCookieLife ago or earlier ask no more.
  void expire(TimePoint now);
  // It gets an association, asked for or not.
  Handle settle(const Peer& peer, TimePoint now);
  // It has none any more.
  void forget(Handle handle, TimePoint now);
  // Where packets for the handle go; nullptr: nowhere any more.
  [[nodiscard]] const Peer* find(Handle handle) const;
  // It was spoken to at that address of this host.
  void heard_at(Handle handle, const boost::asio::ip::address& own);
  // All peers of an end that goes.
  void drop_asking(const UdpPort* by);
  // Marks a handle as known to SCTP. True: it was not.
  [[nodiscard]] bool first_use(Handle handle);
  // Whether SCTP knows it, or may hear of it.
  [[nodiscard]] bool may_use(Handle handle) const { return in_use_.contains(handle) || in_use_.size() < max_in_use_; }
  // Handles that SCTP knows, those that rest included.
  [[nodiscard]] std::size_t in_use() const { return in_use_.size(); }
  // Whether anybody, asking or not, is by that end of ours.
  [[nodiscard]] bool has_any(const UdpPort* by) const;
  // An SCTP port of `first`..65535 that is not `taken` and under which that peer is not known, from `start` on and
  // around. 0: there is none.
  [[nodiscard]] std::uint16_t free_own_port(Peer peer, std::uint16_t first, std::uint32_t start,
                                            const std::function<bool(std::uint16_t)>& taken) const;

  [[nodiscard]] std::size_t asking() const { return asking_.size(); }
  [[nodiscard]] std::size_t settled() const { return known_.size(); }
  // Peers that lost their place to others.
  [[nodiscard]] std::uint64_t displaced() const { return displaced_; }

 private:
  static constexpr std::size_t kTags = 4;  // INITs that were sent again before the first answer came
  struct Asked {
    Handle handle;
    std::list<Peer>::iterator place;
    TimePoint since;                          // the last time
    std::array<std::uint32_t, kTags> tags{};  // 0: none
    std::size_t answers = 0;
  };
  using AskedOf = std::map<Peer, Asked>;
  void drop(AskedOf::iterator asked);
  [[nodiscard]] bool has_rested(TimePoint now) const;
  [[nodiscard]] Handle fresh(TimePoint now);

  std::size_t max_asking_;
  std::size_t max_in_use_;
  std::uint64_t last_ = 1;       // the greatest handle so far
  std::uint64_t displaced_ = 0;  //
  std::map<Peer, Handle> known_;
  AskedOf asking_;
  std::list<Peer> order_;  // of those that ask, by the last time, oldest first
  std::map<Handle, Peer> by_handle_;
  struct Resting {
    Handle handle;
    TimePoint until;
  };
  std::deque<Resting> resting_;  // known to SCTP, and of nobody; the next to be free first
  std::set<Handle> in_use_;      // known to SCTP
};

}  // namespace iwarp::sctp_cm
