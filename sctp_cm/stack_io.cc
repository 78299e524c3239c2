// The way of packets between UDP and SCTP.
#include <usrsctp.h>

#include <algorithm>
#include <chrono>

#include "iwarp/base/wire.h"
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

Listener* Stack::listener_of(const Peer& peer) const {
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

void Stack::input(UdpPort& port, const udp::endpoint& from, ConstBytes packet) {
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
  const Peer peer{&port, from, head->source, head->destination};
  if (const Handle handle = peers_.known(peer); handle != kNoHandle) {
    // Nobody has to know anything to send an INIT with a forged address, and usrsctp 0.9.5 does not come back from
    // some. A peer that has begun anew is served when its old association has ended, or from another port.
    if (head->first == ChunkType::kInit) {
      ++counters_.not_plain;
      return;
    }
    give(handle, packet);
    if (const auto it = associations_.find(handle); it != associations_.end()) mark(*it->second.association);
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
  Listener& listener = *listener_of(peer);
  use(handle);
  give(handle, packet);
  accept(listener);
  if (associations_.contains(handle))
    peers_.settle(peer, Clock::now());
  else
    ++counters_.bad_cookies;  // it asks still
}

void Stack::accept(Listener& listener) {
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

int Stack::on_output(void* handle, void* packet, std::size_t bytes, std::uint8_t, std::uint8_t) {
  if (only_ == nullptr) return 0;
  return only_->output(Handle{reinterpret_cast<std::uintptr_t>(handle)}, {static_cast<std::byte*>(packet), bytes});
}

// SCTP holds locks meanwhile: nothing of it may be called.
int Stack::output(Handle handle, MutBytes packet) {
  const Peer* peer = handle == kOutOfTheBlue ? stranger_ : peers_.find(handle);
  if (peer == nullptr || packet.size() < kMinPacketBytes) return 0;
  if (const auto head = FixedView<kMinPacketBytes + 4>::of(packet);
      head && head->be<std::uint8_t, 12>() == static_cast<std::uint8_t>(ChunkType::kInitAck))
    peers_.answered(handle, head->be<std::uint32_t, 16>());
  write_checksum(packet);
  peer->by->queue(peer->at, packet);
  return 0;
}

}  // namespace iwarp::sctp_cm
