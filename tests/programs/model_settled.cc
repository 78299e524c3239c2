// What must have happened when nothing moves any more.
#include <algorithm>
#include <utility>

#include "tests/programs/model.h"

namespace iwarp::programs {

using rdmap::SendOp;

void Model::established(std::size_t qp) {
  if (qps_[qp].established) wrong("qp" + std::to_string(qp) + " was established twice");
  qps_[qp].established = true;
}

void Model::ended(std::size_t qp, const Error& reason) {
  Qp& q = qps_[qp];
  if (q.ended) wrong("qp" + std::to_string(qp) + " ended twice");
  if (!ending(qp)) wrong("qp" + std::to_string(qp) + " ended by itself: " + iwarp::name(reason.code));
  q.ended = true;
  q.reason = reason.code;
  if (!may_end_with(qp, reason.code))
    wrong("qp" + std::to_string(qp) + " ended with " + iwarp::name(reason.code) + ": " + reason.why);
}

bool Model::may_end_with(std::size_t qp, Errc reason) const {
  const auto& causes = pairs_[pair_of(qp)].causes;
  return std::any_of(causes.begin(), causes.end(), [&](const Cause& c) {
    if (c.what == Do::kLose) return reason == Errc::kConnectionLost || (c.how == 2 && reason == Errc::kPeerClosed);
    if (c.what == Do::kTrespass) {
      const bool write = c.how == static_cast<std::uint32_t>(SendOp::kWrite);
      if (c.qp != qp) return reason == (write ? Errc::kTaggedInvalidStag : Errc::kReadInvalidStag);
      // Whose end is due does not say why any more.
      return reason == Errc::kRemoteTerminate || (reason == Errc::kConnectionLost && causes.size() > 1);
    }
    if (c.qp == qp) return reason == Errc::kAborted;
    // Who leaves may do so inside an FPDU.
    if (c.what == Do::kLeave && c.how != 0 && reason == Errc::kConnectionLost) return true;
    const bool in_order = c.what == Do::kDisconnect || c.what == Do::kLeave;
    return reason == (in_order ? Errc::kPeerClosed : Errc::kConnectionLost);
  });
}

void Model::happened(std::size_t host, const verbs::AsyncEvent& event, std::size_t qp) {
  switch (event.type) {
    case verbs::AsyncEventType::kSrqLimitReached: {
      Host& h = hosts_[host];
      const bool may_be_of_this = h.limit != 0 && h.may_warn && (!h.warned || h.unsure);
      if (!may_be_of_this && !h.may_wait) wrong("host " + std::to_string(host) + ": limit event without a cause");
      h.warned = may_be_of_this;
      h.unsure = may_be_of_this && h.may_wait;
      h.may_wait = false;
      return;
    }
    case verbs::AsyncEventType::kQpFatal:
      ++qps_[qp].fatal;
      qps_[qp].fatal_reason = event.reason.code;
      return;
    case verbs::AsyncEventType::kLastWqeReached:
      ++qps_[qp].last;
      return;
    case verbs::AsyncEventType::kCqOverflow:
      return wrong("host " + std::to_string(host) + ": completion queue overflow");
  }
}

void Model::check_events(std::size_t qp) {
  const Qp& q = qps_[qp];
  const bool fatal = q.ended && q.reason != Errc::kPeerClosed && q.reason != Errc::kAborted;
  if (q.fatal != (fatal ? 1U : 0U)) wrong("qp" + std::to_string(qp) + ": " + std::to_string(q.fatal) + " fatal events");
  if (q.fatal != 0 && q.fatal_reason != q.reason)
    wrong("qp" + std::to_string(qp) + ": a fatal event of another reason");
  const bool last = q.ended && setup_.hosts[host_of(qp)].shares;
  if (q.last != (last ? 1U : 0U)) wrong("qp" + std::to_string(qp) + ": " + std::to_string(q.last) + " last-WQE events");
}

void Model::limit_left(std::size_t host, std::size_t limit) {
  Host& h = hosts_[host];
  const std::string id = "host " + std::to_string(host) + ": ";
  h.may_wait = false;
  if (std::exchange(h.unsure, false)) h.warned = limit == 0;
  if (!h.warned && shared_left(host) < h.limit) wrong(id + "no event at the limit of the shared receive queue");
  if (limit != (h.warned ? 0 : h.limit)) wrong(id + "a limit of " + std::to_string(limit));
}

// An Initiator speaks first, or sends an RTR. Until then the other end is silent.
bool Model::opened(std::size_t pair) const {
  if (setup_.peer_to_peer) return true;
  const auto& sends = qps_[pair * kHosts + setup_.initiator].sends;
  return std::any_of(sends.begin(), sends.end(),
                     [](const Request& r) { return !r.drain && !r.posted_late && r.op != SendOp::kLocalInvalidate; });
}

void Model::settled() {
  for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
    if (pairs_[pair].over || !pairs_[pair].connected) continue;
    if (!pairs_[pair].causes.empty()) {
      settle_ended(pair);
      continue;
    }
    for (std::size_t qp = pair * kHosts; qp < (pair + 1) * kHosts; ++qp) {
      if (!qps_[qp].established) wrong("qp" + std::to_string(qp) + " was not established");
      if (stands_still(qp)) {
        settle_waiting(qp);
      } else if (opened(pair) || host_of(qp) == setup_.initiator) {
        settle_live(qp);
      }
    }
  }
  for (std::size_t qp = 0; qp < qps_.size(); ++qp) {
    if (pairs_[pair_of(qp)].over) resolve_silent(qp);
    check_events(qp);
  }
  check_memory();
}

// What has no completion by now never gets one: it is done, well, if it is unsignaled.
void Model::resolve_silent(std::size_t qp) {
  Qp& q = qps_[qp];
  while (q.done < q.sends.size() && fault_.empty()) {
    if (q.sends[q.done].signaled) return wrong(who(qp, q.sends[q.done].id) + "never completed");
    resolve(qp, q.done, Status::kOk);
  }
}

// What was sent to `qp` before the message that waits has come, unless the other direction stands still as well: then
// its sender may wait for Responses.
void Model::settle_waiting(std::size_t qp) {
  tally_.waited += waits(qp) ? 1 : 0;
  if (setup_.hosts[host_of(qp)].shares || waits(peer_of(qp)) || !may_send(peer_of(qp))) return;
  if (qps_[qp].delivered != std::min(qps_[qp].receives.size(), qps_[peer_of(qp)].messages.size()))
    wrong("qp" + std::to_string(qp) + ": " + std::to_string(qps_[qp].delivered) +
          " messages have come, and a Receive waits");
}

void Model::settle_live(std::size_t qp) {
  resolve_silent(qp);
  Qp& q = qps_[qp];
  const Qp& peer = qps_[peer_of(qp)];
  if (peer.delivered != q.messages.size())
    wrong("qp" + std::to_string(qp) + ": of " + std::to_string(q.messages.size()) + " messages " +
          std::to_string(peer.delivered) + " have come");
  if (fault_.empty()) placed(qp, q.sends.size());
}

void Model::settle_ended(std::size_t pair) {
  const auto& causes = pairs_[pair].causes;
  const bool in_order =
      std::all_of(causes.begin(), causes.end(), [](const Cause& c) { return c.what == Do::kDisconnect; });
  const bool left = causes.size() == 1 && causes[0].what == Do::kLeave;
  for (std::size_t qp = pair * kHosts; qp < (pair + 1) * kHosts; ++qp) {
    Qp& q = qps_[qp];
    const std::string id = "qp" + std::to_string(qp);
    if (!q.ended) wrong(id + " was not told of the end");
    resolve_silent(qp);
    if (!setup_.hosts[host_of(qp)].shares && q.received != q.receives.size())
      wrong(id + ": " + std::to_string(q.receives.size() - q.received) + " Receives were not flushed");
  }
  for (std::size_t qp = pair * kHosts; qp < (pair + 1) * kHosts && fault_.empty(); ++qp) {
    Qp& q = qps_[qp];
    const std::size_t came = qps_[peer_of(qp)].delivered;
    const auto sent = static_cast<std::size_t>(std::count_if(
        q.messages.begin(), q.messages.end(), [&](std::size_t i) { return q.sends[i].status == Status::kOk; }));
    // Nothing comes that was not sent whole, and at an orderly end all that was sent does. What is flushed by an error,
    // or by an abort that spares the peer, still leaves if it has begun to.
    const bool one_leaves = std::any_of(causes.begin(), causes.end(), [](const Cause& c) {
      return c.what == Do::kTrespass || (c.what == Do::kAbort && c.how == 1);
    });
    // Of who leaves that comes of which it has heard, and maybe more.
    const bool may_be_more = q.left;
    if ((came > sent + (one_leaves ? 1 : 0) && !may_be_more) || (in_order && came != sent) ||
        (left && q.left && came < sent))
      wrong("qp" + std::to_string(qp) + ": " + std::to_string(came) + " messages have come, " + std::to_string(sent) +
            " were sent");
    if (in_order || (left && q.left)) {
      const auto first_unsent = std::find_if(q.sends.begin(), q.sends.end(), [](const Request& r) {
        return r.posted_late || (r.status == Status::kFlushed && !r.answered());
      });
      placed(qp, static_cast<std::size_t>(first_unsent - q.sends.begin()));
    }
    settle_writes(qp);
  }
  memory_.end_uses([&](const Use& u) { return u.kind != Use::Kind::kReceive && pair_of(u.qp) == pair; });
  for (std::size_t qp = pair * kHosts; qp < (pair + 1) * kHosts; ++qp) {
    for (std::size_t i = 0; i < kRegions; ++i) {
      Region& r = memory_.region(qp, i);
      if (r.state == Region::State::kDying) r.state = Region::State::kValid;  // nobody got that far
    }
  }
  pairs_[pair].over = true;
  ++(in_order ? tally_.ended_in_order : tally_.ended_otherwise);
}

// Of what changes the peer's memory and may not have come: each octet is there or is not.
void Model::settle_writes(std::size_t qp) {
  Qp& q = qps_[qp];
  const std::size_t peer = peer_of(qp);
  std::vector<const Request*> open;
  for (std::size_t i = 0; i < q.sends.size(); ++i) {
    const Request& r = q.sends[i];
    if (r.changes_peer() && (r.answered() ? r.status != Status::kOk : i >= q.placed)) open.push_back(&r);
  }
  for (const Request* r : open) {
    const ConstBytes actual = memory_.region(peer, r->remote.region).actual;
    for (std::uint32_t i = 0; i < r->remote.length && !actual.empty(); ++i) {
      const std::uint32_t at = r->remote.offset + i;
      const bool known = std::any_of(open.begin(), open.end(), [&](const Request* o) {
        const std::uint32_t n = at - o->remote.offset;  // wraps where it is not within
        return o->remote.region == r->remote.region && n < o->remote.length &&
               (o->remote_before[n] == actual[at] || o->remote_after[n] == actual[at]);
      });
      if (!known) return wrong(who(qp, r->id) + "its target holds what nobody has written");
    }
  }
  for (const Request* r : open) memory_.accept(peer, r->remote);
}

void Model::check_memory() {
  for (std::size_t qp = 0; qp < qps_.size() && fault_.empty(); ++qp) {
    for (std::size_t i = 0; i < kRegions; ++i) {
      const std::size_t size = memory_.region(qp, i).octets.size();
      // What is not done because the peer has not spoken yet is entered already.
      const std::size_t at = memory_.first_difference(qp, i);
      if (at == size || memory_.holds_but_uses(qp, i, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size)))
        continue;
      wrong("qp" + std::to_string(qp) + " region " + std::to_string(i) + ": octet " + std::to_string(at) +
            " is not what it must be");
    }
  }
}

void Model::assume_settled() {
  for (std::size_t qp = 0; qp < qps_.size(); ++qp) {
    Qp& q = qps_[qp];
    Pair& pair = pairs_[pair_of(qp)];
    if (!pair.connected) continue;
    q.established = true;
    const bool over = !pair.causes.empty();
    if (!over && stands_still(qp)) continue;
    if (!over && !opened(pair_of(qp)) && host_of(qp) != setup_.initiator) continue;
    for (; q.done < q.sends.size(); ++q.done) {
      const Request& r = q.sends[q.done];
      if (!r.drain && !r.posted_late && invalidates_here(r.op))
        memory_.region(qp, r.region).state = Region::State::kDead;
    }
    Qp& peer = qps_[peer_of(qp)];
    for (; peer.delivered < q.messages.size(); ++peer.delivered, ++peer.taken) {
      const Request& m = q.sends[q.messages[peer.delivered]];
      if (m.op == SendOp::kSendInvalidate) memory_.region(peer_of(qp), m.region).state = Region::State::kDead;
      assume_received(peer_of(qp));
    }
    memory_.end_uses([&](const Use& u) { return u.qp == qp && u.kind != Use::Kind::kReceive; });
    if (!over) continue;
    q.ended = true;
    while (!setup_.hosts[host_of(qp)].shares && q.received < q.receives.size()) assume_received(qp);
  }
  for (Pair& pair : pairs_) pair.over = !pair.causes.empty();
}

// The oldest Receive was used up.
void Model::assume_received(std::size_t qp) {
  Qp& q = qps_[qp];
  auto& shared = hosts_[host_of(qp)].receives;
  const bool shares = setup_.hosts[host_of(qp)].shares;
  if (shares ? shared.empty() : q.received == q.receives.size()) return;
  const std::uint64_t id = shares ? shared.front().id : q.receives[q.received++].id;
  if (shares) shared.pop_front();
  memory_.end_uses([&](const Use& u) { return u.kind == Use::Kind::kReceive && u.request == id; });
}

}  // namespace iwarp::programs
