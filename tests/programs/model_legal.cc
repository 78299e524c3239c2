// What the rules allow.
#include <algorithm>

#include "tests/programs/model.h"

namespace iwarp::programs {

using rdmap::SendOp;

namespace {

bool overlap(const std::vector<Piece>& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Piece &a = pieces[i], &b = pieces[j];
      if (a.region == b.region && a.offset < b.offset + b.length && b.offset < a.offset + a.length) return true;
    }
  }
  return false;
}

}  // namespace

bool Model::idle(std::size_t qp, std::size_t region) const {
  return memory_.region(qp, region).uses.empty();
}

bool Model::valid(std::size_t qp, std::size_t region) const {
  return memory_.region(qp, region).state == Region::State::kValid;
}

std::size_t Model::fence_of(const Step& s) const {
  return s.fence ? qps_[s.qp].sends.size() : qps_[s.qp].fence;
}

bool Model::legal(const Step& s) const {
  if (s.qp >= qps_.size()) return false;
  const Qp& q = qps_[s.qp];
  const Pair& pair = pairs_[pair_of(s.qp)];
  const bool both_established = q.established && qps_[peer_of(s.qp)].established;
  switch (s.what) {
    case Do::kConnect:
      return !pair.connected;
    case Do::kReceive:
      return legal_receive(s);
    case Do::kPost:
      return legal_post(s);
    case Do::kTrespass:
      return both_established && !stands_still(s.qp) && legal_trespass(s);
    case Do::kInvalidate:
      return s.region != kReadOnly && valid(s.qp, s.region) && idle(s.qp, s.region);
    case Do::kRereg:
      return s.region != kReadOnly && memory_.region(s.qp, s.region).state != Region::State::kDying &&
             idle(s.qp, s.region);
    case Do::kFill:
      return legal_fill(s);
    case Do::kSrqLimit:
      return setup_.hosts[host_of(s.qp)].shares && s.amount <= setup_.hosts[host_of(s.qp)].srq_depth;
    case Do::kDisconnect:
      // A Responder that was not spoken to cannot send what is left to send.
      return both_established && !q.ended_here && !q.ended && !stands_still(s.qp) &&
             (host_of(s.qp) == setup_.initiator || opened(pair_of(s.qp)));
    case Do::kLeave:
      return both_established && pair.causes.empty() && !stands_still(s.qp) && legal_leave(s.qp);
    case Do::kAbort: {
      const bool aborted = std::any_of(pair.causes.begin(), pair.causes.end(), [&](const Cause& c) {
        return c.what == Do::kLose || (c.what == Do::kAbort && c.qp == s.qp);
      });
      return both_established && !aborted && !q.ended && !q.left && !stands_still(s.qp);
    }
    case Do::kLose:
      return both_established && !q.ended && !qps_[peer_of(s.qp)].ended && !stands_still(s.qp) &&
             std::none_of(pair.causes.begin(), pair.causes.end(), [](const Cause& c) { return c.what == Do::kLose; });
    case Do::kDrain:
      return !q.left;
    case Do::kMove:
    case Do::kPoll:
    case Do::kSettle:
    case Do::kTime:
    case Do::kEmss:
    case Do::kArm:
    case Do::kResize:
    case Do::kEvents:
      return true;
  }
  return false;
}

// Of memory that nothing reads but Reads of the peer: what these bring is open then (RFC 5040 s5.5 item 8), so nothing
// may count on it.
bool Model::legal_fill(const Step& s) const {
  if (s.pieces.size() != 1 || s.pieces[0].region == kReadOnly || !memory_.within(s.qp, s.pieces[0])) return false;
  const Piece& p = s.pieces[0];
  const auto& uses = memory_.region(s.qp, p.region).uses;
  return std::all_of(uses.begin(), uses.end(), [&](const Use& u) {
    if (!u.overlaps(p.offset, p.offset + p.length)) return true;
    if (u.kind != Use::Kind::kRemoteRead) return false;
    const auto& sinks = qps_[u.qp].sends[u.request].pieces;
    return std::none_of(sinks.begin(), sinks.end(), [&](const Piece& sink) {
      const auto& others = memory_.region(u.qp, sink.region).uses;
      return std::any_of(others.begin(), others.end(), [&](const Use& other) {
        return other.kind != Use::Kind::kSink && other.overlaps(sink.offset, sink.offset + sink.length);
      });
    });
  });
}

bool Model::legal_receive(const Step& s) const {
  if (s.pieces.size() > rdmap::kMaxSge || overlap(s.pieces) || qps_[s.qp].left) return false;
  if (s.length() < needed(s.qp)) return false;
  return std::all_of(s.pieces.begin(), s.pieces.end(), [&](const Piece& p) {
    const Use wanted{Use::Kind::kReceive, s.qp, 0, p.offset, p.offset + p.length};
    return memory_.within(s.qp, p) && (p.length == 0 || (p.region != kReadOnly && valid(s.qp, p.region) &&
                                                         memory_.may_use(s.qp, p.region, wanted, 0)));
  });
}

bool Model::legal_post(const Step& s) const {
  const bool revokes = s.op == SendOp::kSendInvalidate || invalidates_here(s.op);
  if ((revokes && qps_[s.qp].walled) || qps_[s.qp].left) return false;
  return s.pieces.size() <= rdmap::kMaxSge && legal_operands(s) && legal_local(s) && legal_remote(s) &&
         legal_revocation(s);
}

bool Model::legal_operands(const Step& s) const {
  const HostSetup& host = setup_.hosts[host_of(s.qp)];
  if (is_rfc7306(s.op) && !setup_.rfc7306) return false;
  if (awaits_response(s.op) && setup_.ord(host_of(s.qp)) == 0) return false;
  if (s.inlined && (!may_be_inline(s.op) || s.length() > host.max_inline)) return false;
  if ((s.op == SendOp::kImmediate || s.op == SendOp::kLocalInvalidate) && !s.pieces.empty()) return false;
  if (is_atomic(s.op) && (s.pieces.size() != 1 || s.pieces[0].length != 8)) return false;
  if (s.op == SendOp::kReadInvalidate && s.pieces.size() != 1) return false;
  if (!is_message(s.op)) return true;
  const auto has_room = room(s.qp);
  return has_room && (has_immediate(s.op) || s.length() <= *has_room);
}

bool Model::legal_local(const Step& s) const {
  const bool sink = awaits_response(s.op);
  if (sink && overlap(s.pieces)) return false;
  const std::size_t number = qps_[s.qp].sends.size();
  return std::all_of(s.pieces.begin(), s.pieces.end(), [&](const Piece& p) {
    if (!memory_.within(s.qp, p)) return false;
    const bool revoked = s.op == SendOp::kReadInvalidate;
    if (p.length == 0 && !revoked) return true;
    if (s.inlined) {
      const auto& uses = memory_.region(s.qp, p.region).uses;
      return std::none_of(uses.begin(), uses.end(),
                          [&](const Use& u) { return u.writes() && u.overlaps(p.offset, p.offset + p.length); });
    }
    const Use wanted{sink ? Use::Kind::kSink : Use::Kind::kSource, s.qp, number, p.offset, p.offset + p.length};
    return valid(s.qp, p.region) && !(sink && p.region == kReadOnly) &&
           memory_.may_use(s.qp, p.region, wanted, fence_of(s));
  });
}

bool Model::legal_remote(const Step& s) const {
  if (!is_write(s.op) && !awaits_response(s.op)) return true;
  if (s.length() == 0) return true;  // any STag will do
  const std::size_t peer = peer_of(s.qp);
  Piece target = s.remote;
  target.length = s.length();
  const bool changes = is_write(s.op) || is_atomic(s.op);
  if (!memory_.within(peer, target) || !valid(peer, target.region)) return false;
  if (target.region == kPrivate || (changes && target.region == kReadOnly)) return false;
  if (is_atomic(s.op) && target.offset % 8 != 0) return false;
  const Use::Kind kind = is_write(s.op)    ? Use::Kind::kRemoteWrite
                         : is_atomic(s.op) ? Use::Kind::kRemoteAtomic
                                           : Use::Kind::kRemoteRead;
  const Use wanted{kind, s.qp, qps_[s.qp].sends.size(), target.offset, target.offset + target.length};
  return memory_.may_use(peer, target.region, wanted, fence_of(s));
}

// Of an STag that nothing names any more when it is revoked.
bool Model::legal_revocation(const Step& s) const {
  if (s.op == SendOp::kSendInvalidate) {
    const std::size_t peer = peer_of(s.qp);
    if (s.region != kRevocable && s.region != kRevocableToo) return false;
    const auto& uses = memory_.region(peer, s.region).uses;
    return valid(peer, s.region) && std::all_of(uses.begin(), uses.end(), [&](const Use& u) {
             return u.qp == s.qp && u.remote() && (u.kind == Use::Kind::kRemoteWrite || u.request < fence_of(s));
           });
  }
  if (!invalidates_here(s.op)) return true;
  const std::size_t region = s.op == SendOp::kLocalInvalidate ? s.region : s.pieces[0].region;
  if (region >= kRegions || region == kReadOnly || !valid(s.qp, region)) return false;
  const auto& uses = memory_.region(s.qp, region).uses;
  return std::all_of(uses.begin(), uses.end(),
                     [&](const Use& u) { return u.qp == s.qp && !u.remote() && u.kind != Use::Kind::kReceive; });
}

// With Receives of its own: of shared ones it may take one along. And when nobody would know whether an STag was
// revoked.
bool Model::legal_leave(std::size_t qp) const {
  const Qp& q = qps_[qp];
  return !setup_.hosts[host_of(qp)].shares &&
         std::none_of(q.sends.begin() + static_cast<std::ptrdiff_t>(q.done), q.sends.end(), [](const Request& r) {
           return !r.drain && (r.op == SendOp::kSendInvalidate || invalidates_here(r.op));
         });
}

// What a peer with a dead STag does is not legal, but what follows is known (RFC 5040 s7.1, RFC 5041 s7.1).
bool Model::legal_trespass(const Step& s) const {
  const Region& target = memory_.region(peer_of(s.qp), s.remote.region);
  return pairs_[pair_of(s.qp)].causes.empty() && may_send(s.qp) && !s.inlined && s.length() != 0 &&
         (s.op == SendOp::kWrite || s.op == SendOp::kRead || s.op == SendOp::kFetchAdd) && legal_operands(s) &&
         legal_local(s) && s.remote.region != kPrivate && target.state == Region::State::kDead &&
         s.pieces.size() <= rdmap::kMaxSge;
}

bool Model::may_terminate(std::size_t qp) const {
  const auto& causes = pairs_[pair_of(qp)].causes;
  return std::any_of(causes.begin(), causes.end(), [](const Cause& c) { return c.what == Do::kTrespass; });
}

// Messages that may have taken a Receive of the shared queue of `host`.
std::size_t Model::messages_to(std::size_t host) const {
  std::size_t sum = 0;
  for (std::size_t qp = host; qp < qps_.size(); qp += kHosts)
    sum += pairs_[pair_of(qp)].over ? qps_[qp].taken : qps_[peer_of(qp)].messages.size();
  return sum;
}

// Octets of those on their way to a shared queue of several connections, of which any may take a Receive posted now.
std::size_t Model::longest_message_to(std::size_t host) const {
  std::size_t longest = 0;
  if (setup_.pairs == 1) return 0;
  for (std::size_t qp = host; qp < qps_.size(); qp += kHosts) {
    const Qp& peer = qps_[peer_of(qp)];
    if (pairs_[pair_of(qp)].over) continue;
    for (std::size_t i = qps_[qp].delivered; i < peer.messages.size(); ++i) {
      const Request& m = peer.sends[peer.messages[i]];
      if (!has_immediate(m.op)) longest = std::max(longest, m.payload.size());
    }
  }
  return longest;
}

// Not where it could keep a connection from ending, nor one that is about to from taking a Receive.
bool Model::may_wait(std::size_t qp) const {
  const bool none_ends =
      std::all_of(pairs_.begin(), pairs_.end(), [](const Pair& pair) { return pair.over || pair.causes.empty(); });
  return setup_.hosts[host_of(peer_of(qp))].receive_wait && none_ends && pairs_[pair_of(qp)].causes.empty();
}

bool Model::waits(std::size_t qp) const {
  if (pairs_[pair_of(qp)].over) return false;
  const std::size_t host = host_of(qp);
  return setup_.hosts[host].shares ? messages_to(host) > hosts_[host].posted
                                   : qps_[peer_of(qp)].messages.size() > qps_[qp].receives.size();
}

std::size_t Model::needed(std::size_t qp) const {
  const std::size_t host = host_of(qp);
  const bool shares = setup_.hosts[host].shares;
  if (shares && setup_.pairs > 1) return longest_message_to(host);
  const Qp& peer = qps_[peer_of(qp)];
  const std::size_t next = shares ? hosts_[host].posted : qps_[qp].receives.size();
  if (pairs_[pair_of(qp)].over || next >= peer.messages.size()) return 0;
  const Request& m = peer.sends[peer.messages[next]];
  return has_immediate(m.op) ? 0 : m.payload.size();
}

std::optional<std::size_t> Model::room(std::size_t qp) const {
  const std::size_t peer = peer_of(qp), host = host_of(peer), sent = qps_[qp].messages.size();
  // Later Receives are made for what waits.
  std::optional<std::size_t> least;
  if (may_wait(qp)) least = setup_.region_bytes / 2;
  if (!setup_.hosts[host].shares) {
    const auto& receives = qps_[peer].receives;
    return sent < receives.size() ? std::optional<std::size_t>(receives[sent].length) : least;
  }
  const Host& h = hosts_[host];
  if (h.posted <= messages_to(host) && (!least || setup_.pairs == 1)) return least;
  // Which of them it takes depends on the other connections.
  for (const Receive& r : h.receives) {
    if (!r.done) least = std::min<std::size_t>(r.length, least.value_or(r.length));
  }
  return setup_.pairs == 1 ? h.receives[sent - (h.posted - h.receives.size())].length : least;
}

std::size_t Model::receives_waiting(std::size_t qp) const {
  const std::size_t host = host_of(qp);
  if (setup_.hosts[host].shares) return hosts_[host].posted - std::min(hosts_[host].posted, messages_to(host));
  return qps_[qp].receives.size() - std::min(qps_[qp].receives.size(), qps_[peer_of(qp)].messages.size());
}

std::size_t Model::sends_room(std::size_t qp) const {
  const std::size_t depth = setup_.hosts[host_of(qp)].sq_depth, waiting = sends_waiting(qp);
  return depth - std::min(depth, waiting);
}

std::optional<std::size_t> Model::next_message(std::size_t qp) const {
  const Qp& peer = qps_[peer_of(qp)];
  const std::size_t next = qps_[qp].delivered;
  return next < peer.messages.size() ? std::optional(peer.messages[next]) : std::nullopt;
}

std::size_t Model::shared_left(std::size_t host) const {
  std::size_t taken = 0;
  for (std::size_t qp = host; qp < qps_.size(); qp += kHosts) taken += qps_[qp].taken;
  return hosts_[host].posted - taken;
}

bool Model::may_be_full(const Step& s) const {
  const Qp& q = qps_[s.qp];
  const HostSetup& host = setup_.hosts[host_of(s.qp)];
  if (s.what != Do::kReceive) return q.sends.size() - q.done >= host.sq_depth;
  if (host.shares) return shared_left(host_of(s.qp)) >= host.srq_depth;
  return q.receives.size() - q.received >= host.rq_depth;
}

bool Model::must_be_full(const Step& s) const {
  if (!may_be_full(s)) return false;
  const Qp& q = qps_[s.qp];
  if (s.what == Do::kReceive && setup_.hosts[host_of(s.qp)].shares) return messages_to(host_of(s.qp)) == 0;
  // A mark with nothing before it is done at once.
  return !pairs_[pair_of(s.qp)].connected &&
         (s.what == Do::kReceive ||
          std::none_of(q.sends.begin(), q.sends.end(), [](const Request& r) { return r.drain; }));
}

}  // namespace iwarp::programs
