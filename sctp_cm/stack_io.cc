// The way of packets between UDP and SCTP.
#include <usrsctp.h>

#include <algorithm>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <chrono>

#include "iwarp/base/wire.h"
#include "iwarp/cm/system_cause.h"
#include "iwarp/sctp_cm/stack.h"

namespace iwarp::sctp_cm {
namespace {

using Clock = std::chrono::steady_clock;

void* raw(Handle handle) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
}

}  // namespace

// From here on SCTP takes the handle for an address of its own.
void Stack::use(Handle handle) {
  if (peers_.first_use(handle)) usrsctp_register_address(raw(handle));
}

void Stack::give(Handle handle, ConstBytes packet) {
  usrsctp_conninput(raw(handle), packet.data(), packet.size(), 0);
}

AssociationListener* Stack::listener_of(const Peer& peer) const {
  for (const Port& p : udp_) {
    if (p.port.get() == peer.by)
      return p.listener != nullptr && p.listener->sctp_port() == peer.own_port ? p.listener : nullptr;
  }
  return nullptr;
}

bool Stack::listens(std::uint16_t sctp_port) const {
  return std::ranges::any_of(
      udp_, [&](const Port& p) { return p.listener != nullptr && p.listener->sctp_port() == sctp_port; });
}

void Stack::input(UdpPort& port, const udp::endpoint& from, const UdpPort::Address& own, ConstBytes packet) {
  ++counters_.packets;
  const auto head = PacketHead::parse(packet);
  if (!head) {
    ++counters_.malformed;
    return;
  }
  if (!has_good_checksum(packet)) {
    ++counters_.bad_checksum;
    return;
  }
  if (!is_plain(packet)) {
    ++counters_.not_plain;
    return;
  }
  const Peer peer{&port, from, head->source, head->destination, own};
  if (const Handle handle = peers_.known(peer); handle != kNoHandle) {
    // Nobody has to know anything to send an INIT with a forged address, and usrsctp 0.9.5 does not come back from
    // some. A peer that has begun anew is served when its old association has ended, or from another port.
    if (head->first == ChunkType::kInit) {
      ++counters_.not_plain;
      return;
    }
    const auto it = associations_.find(handle);
    if (head->first == ChunkType::kInitAck) {
      peers_.heard_at(handle, own);
      if (it != associations_.end()) it->second.asks_with = 0;
    }
    give(handle, packet);
    if (it != associations_.end()) mark(*it->second.association);
    return;
  }
  if (head->first == ChunkType::kInit && head->tag == 0 && listener_of(peer) != nullptr) return on_init(peer, packet);
  if (head->first == ChunkType::kCookieEcho && listener_of(peer) != nullptr) return on_cookie(peer, head->tag, packet);
  // SCTP's listeners have no address: there, one of another UDP port would answer, past all bounds.
  if ((head->first == ChunkType::kInit || head->first == ChunkType::kCookieEcho) && listens(peer.own_port)) {
    ++counters_.elsewhere;
    return;
  }
  on_stranger(peer, packet);
}

// SCTP keeps nothing of it: what it has to know comes back with the cookie.
void Stack::on_init(const Peer& peer, ConstBytes packet) {
  ++counters_.inits;
  give(peers_.ask(peer, Clock::now()), packet);
  arm();
}

// An address that SCTP has seen it keeps, so it sees none whose peer may be forged, and of others not more than a
// bound.
void Stack::on_cookie(const Peer& peer, std::uint32_t tag, ConstBytes packet) {
  const Handle handle = peers_.asking(peer);
  if (!peers_.expects(peer, tag) || associations_.size() >= options_.max_associations || !peers_.may_use(handle)) {
    ++counters_.no_such_peer;
    return;
  }
  AssociationListener& listener = *listener_of(peer);
  peers_.heard_at(handle, peer.own);
  use(handle);
  give(handle, packet);
  accept(listener);
  if (associations_.contains(handle))
    peers_.settle(peer, Clock::now());
  else
    ++counters_.bad_cookies;  // it asks still
}

void Stack::accept(AssociationListener& listener) {
  while (auto accepted = listener.socket_.accept()) {
    const Handle handle = accepted->second;
    if (peers_.find(handle) == nullptr || associations_.contains(handle)) continue;  // closed again
    auto association =
        std::make_shared<Association>(*this, std::move(accepted->first), handle, nullptr, TimePoint::max());
    association->listen_to(&Stack::on_association);
    associations_.emplace(handle, Held{association, &listener, true});
    mark(*association);
  }
}

// Of nobody: SCTP answers most of it with an ABORT, and a SHUTDOWN ACK that it has forgotten as it has to be.
void Stack::on_stranger(const Peer& peer, ConstBytes packet) {
  const TimePoint now = Clock::now();
  const std::chrono::duration<double> passed = now - blue_since_;
  blue_since_ = now;
  const double limit = options_.out_of_the_blue;
  blue_allowance_ = std::min(limit, blue_allowance_ + passed.count() * limit);
  if (blue_allowance_ < 1) {
    ++counters_.blue_dropped;
    return;
  }
  blue_allowance_ -= 1;
  ++counters_.blue;
  stranger_ = &peer;
  give(kOutOfTheBlue, packet);
  stranger_ = nullptr;
}

// The front of an INIT, as far as it tells whose it is, and this tells who has seen it.
using InitFront = FixedView<kMinPacketBytes + 4>;

// Who waits for the answer to an INIT hears of it at once; all others go by SCTP's own timers. Who tells has to have
// seen the INIT, so nobody ends an association by a forged ICMP message (RFC 9260 s10, RFC 6951).
void Stack::on_undelivered(UdpPort& port, const udp::endpoint& to, ConstBytes packet, int error) {
  const auto init = InitFront::of(packet);
  if (!init || init->be<std::uint8_t, 12>() != static_cast<std::uint8_t>(ChunkType::kInit)) return;
  const Peer peer{&port, to, init->be<std::uint16_t, 2>(), init->be<std::uint16_t, 0>(), {}};
  const auto it = associations_.find(peers_.known(peer));
  if (it == associations_.end() || it->second.asks_with == 0) return;
  if (it->second.asks_with != init->be<std::uint32_t, 16>()) return;
  it->second.association->refuse(
      error == ECONNREFUSED
          ? make_error(Errc::kConnectionRefused,
                       "Connection refused: no program has that UDP port there, or a firewall refuses it")
          : cm::connect_error({error, boost::system::system_category()}));
}

int Stack::on_output(void* handle, void* packet, std::size_t bytes, std::uint8_t, std::uint8_t) {
  if (only_ == nullptr) return 0;
  return only_->output(Handle{reinterpret_cast<std::uintptr_t>(handle)}, {static_cast<std::byte*>(packet), bytes});
}

// SCTP holds locks meanwhile: nothing of it may be called.
int Stack::output(Handle handle, MutBytes packet) {
  const Peer* peer = handle == kOutOfTheBlue ? stranger_ : peers_.find(handle);
  if (peer == nullptr || packet.size() < kMinPacketBytes) return 0;
  if (const auto front = InitFront::of(packet)) {
    const auto type = static_cast<ChunkType>(front->be<std::uint8_t, 12>());
    const auto tag = front->be<std::uint32_t, 16>();
    if (type == ChunkType::kInitAck) peers_.answered(handle, tag);
    if (type == ChunkType::kInit) {
      if (const auto it = associations_.find(handle); it != associations_.end()) it->second.asks_with = tag;
    }
  }
  write_checksum(packet);
  peer->by->queue(peer->at, packet, peer->own);
  return 0;
}

}  // namespace iwarp::sctp_cm
