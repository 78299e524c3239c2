// What completions must be.
#include <algorithm>

#include "tests/programs/model.h"

namespace iwarp::programs {

using rdmap::SendOp;
using rdmap::WcOp;

namespace {

WcOp completion_of(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendInvalidate:
    case SendOp::kSendImmediate:
    case SendOp::kImmediate:
      return WcOp::kSend;
    case SendOp::kWrite:
    case SendOp::kWriteImmediate:
      return WcOp::kWrite;
    case SendOp::kRead:
    case SendOp::kReadInvalidate:
      return WcOp::kRead;
    case SendOp::kLocalInvalidate:
      return WcOp::kLocalInvalidate;
    case SendOp::kFetchAdd:
      return WcOp::kFetchAdd;
    case SendOp::kCmpSwap:
      return WcOp::kCmpSwap;
  }
  return WcOp::kDrain;
}

}  // namespace

void Model::completed(std::size_t qp, bool receive, const verbs::Completion& c) {
  if ((c.op == WcOp::kRecv) != receive) return wrong(who(qp, c.wr_id) + "completed in the other queue");
  if (c.silent) return wrong(who(qp, c.wr_id) + "a silent completion was told");
  receive ? receive_completed(qp, c) : send_completed(qp, c);
}

// --- Of a send queue.

void Model::send_completed(std::size_t qp, const verbs::Completion& c) {
  Qp& q = qps_[qp];
  // Unsignaled requests before it are done, well. RFC 5040 s5.5 item 15
  while (q.done < q.sends.size() && q.sends[q.done].id != c.wr_id && !q.sends[q.done].signaled && fault_.empty())
    resolve(qp, q.done, Status::kOk);
  if (q.done == q.sends.size()) return wrong(who(qp, c.wr_id) + "completed, though nothing is left to complete");
  const Request& r = q.sends[q.done];
  if (r.id != c.wr_id) return wrong(who(qp, c.wr_id) + "completed where " + std::to_string(r.id) + " is to complete");
  if (c.status != Errc::kOk && c.status != Errc::kFlushed)
    return wrong(who(qp, c.wr_id) + "completed with " + iwarp::name(c.status));
  check_completion(qp, r, c);
  if (c.status == Errc::kOk && !r.signaled) return wrong(who(qp, c.wr_id) + "is unsignaled, and completed");
  resolve(qp, q.done, c.status == Errc::kOk ? Status::kOk : Status::kFlushed);
}

void Model::check_completion(std::size_t qp, const Request& r, const verbs::Completion& c) {
  const std::string id = who(qp, r.id);
  if (c.op != (r.drain ? WcOp::kDrain : completion_of(r.op))) return wrong(id + "another operation completed");
  if (c.has_immediate || c.solicited) wrong(id + "completed like a Receive");
  const bool revokes = !r.drain && invalidates_here(r.op) && c.status == Errc::kOk;
  if (c.invalidated != revokes) wrong(id + (revokes ? "revoked nothing" : "revoked an STag"));
  if (revokes && c.invalidated_stag != r.stag) wrong(id + "revoked another STag");
  if (c.status != Errc::kOk) return;
  std::uint32_t length = 0;
  for (const Piece& p : r.pieces) length += r.answered() ? p.length : 0;
  if (c.byte_len != length) wrong(id + "completed with " + std::to_string(c.byte_len) + " octets");
}

// Whether an orderly end lets it complete well: what this end posted before its own end, and Reads that the peer had
// got before that of its.
bool Model::guaranteed(std::size_t qp, const Request& r) const {
  const auto& causes = pairs_[pair_of(qp)].causes;
  if (causes.size() != 1 || causes[0].what != Do::kDisconnect) return false;
  const Qp& q = qps_[qp];
  return causes[0].qp == qp || (r.answered() && static_cast<std::size_t>(&r - q.sends.data()) < q.served);
}

// What has left did so in order, and what was answered was. A fenced request leaves when all Reads before it were
// answered. A Local Invalidate waits only for requests that name its STag.
bool Model::may_be(std::size_t qp, const Request& r, Status status) const {
  const Qp& q = qps_[qp];
  if (r.drain) return status == Status::kOk;
  if (r.posted_late || (r.vain && r.answered())) return status == Status::kFlushed;
  if (status == Status::kFlushed) return ending(qp) && !guaranteed(qp, r);
  if (!may_send(qp) && r.op != SendOp::kLocalInvalidate) return false;
  if (q.flushed_read && (r.answered() || r.fence)) return false;
  if (r.op != SendOp::kLocalInvalidate) return !q.flushed_other;
  return std::none_of(q.sends.begin(), q.sends.end(), [&](const Request& earlier) {
    const auto names_it = [&](const Piece& p) { return p.length != 0 && p.region == r.region; };
    return earlier.status == Status::kFlushed && !earlier.posted_late && !earlier.inlined &&
           std::any_of(earlier.pieces.begin(), earlier.pieces.end(), names_it);
  });
}

void Model::resolve(std::size_t qp, std::size_t number, Status status) {
  Qp& q = qps_[qp];
  Request& r = q.sends[number];
  if (!may_be(qp, r, status))
    return wrong(who(qp, r.id) + (status == Status::kOk ? "completed well, but cannot have been done"
                                                        : "was flushed, but has to complete well"));
  q.done = number + 1;
  r.status = status;
  if (!r.drain) ++(status == Status::kOk ? tally_.done : tally_.flushed).at(static_cast<std::size_t>(r.op));
  if (r.drain || r.posted_late) return;
  if (r.loose) {
    for (const Piece& p : r.pieces) memory_.accept(qp, p);
    r.before = r.after = memory_.read(qp, r.pieces);
  }
  memory_.end_uses([&](const Use& u) {
    return u.qp == qp && u.request == number && (u.kind == Use::Kind::kSource || u.kind == Use::Kind::kSink);
  });
  if (status == Status::kFlushed) {
    (r.answered() ? q.flushed_read : q.flushed_other) = true;
    if (r.answered() && !memory_.settle_for(qp, r.pieces, r.before, r.after))
      wrong(who(qp, r.id) + "was flushed, and its sink holds what no Response has brought");
    return;
  }
  if (invalidates_here(r.op)) memory_.region(qp, r.region).state = Region::State::kDead;
  if (!r.answered()) return;
  if (!memory_.holds(qp, r.pieces, r.after)) wrong(who(qp, r.id) + "its sink does not hold what it reads");
  response_came(qp, number);
}

// RFC 5040 s5.5 items 12 and 17: what was posted before it has been placed.
void Model::response_came(std::size_t qp, std::size_t number) {
  placed(qp, number + 1);
  memory_.end_uses([&](const Use& u) {
    return u.qp == qp && u.request <= number &&
           (u.kind == Use::Kind::kRemoteRead || u.kind == Use::Kind::kRemoteAtomic);
  });
  const Request& r = qps_[qp].sends[number];
  if (r.changes_peer() &&
      !memory_.holds_but_uses(peer_of(qp), r.remote.region, r.remote.offset, r.remote.offset + r.remote.length))
    wrong(who(qp, r.id) + "its target does not hold what the Atomic makes of it");
}

void Model::placed(std::size_t qp, std::size_t upto) {
  Qp& q = qps_[qp];
  const std::size_t first = q.placed;
  if (upto <= first) return;
  q.placed = upto;
  memory_.end_uses([&](const Use& u) { return u.qp == qp && u.request < upto && u.kind == Use::Kind::kRemoteWrite; });
  for (std::size_t i = first; i < upto; ++i) {
    const Request& r = q.sends[i];
    if (r.posted_late || !r.changes_peer() || r.answered()) continue;
    if (!memory_.holds_but_uses(peer_of(qp), r.remote.region, r.remote.offset, r.remote.offset + r.remote.length))
      wrong(who(qp, r.id) + "what it writes is not there, though what was posted behind it has come");
  }
}

// --- Of a receive queue.

// Takes the Receive out of those that wait.
std::optional<Model::Receive> Model::take_receive(std::size_t qp, std::uint64_t id) {
  Qp& q = qps_[qp];
  if (!setup_.hosts[host_of(qp)].shares) {
    if (q.received == q.receives.size() || q.receives[q.received].id != id) return std::nullopt;
    return q.receives[q.received++];
  }
  auto& receives = hosts_[host_of(qp)].receives;
  const auto found = std::find_if(receives.begin(), receives.end(), [&](const Receive& r) { return r.id == id; });
  if (found == receives.end() || found->done) return std::nullopt;
  // Others that are older are of connections whose message has not come whole: one of each.
  const auto older = std::count_if(receives.begin(), found, [](const Receive& r) { return !r.done; });
  if (older >= static_cast<std::ptrdiff_t>(setup_.pairs)) return std::nullopt;
  found->done = true;
  const Receive out = *found;
  while (!receives.empty() && receives.front().done) receives.pop_front();
  return out;
}

void Model::receive_completed(std::size_t qp, const verbs::Completion& c) {
  Qp& q = qps_[qp];
  const auto r = take_receive(qp, c.wr_id);
  if (!r) return wrong(who(qp, c.wr_id) + "a Receive completed out of order, or twice");
  ++q.taken;
  memory_.end_uses([&](const Use& u) { return u.kind == Use::Kind::kReceive && u.request == r->id; });
  if (c.status == Errc::kFlushed) return receive_flushed(qp, *r);
  if (c.status != Errc::kOk) return wrong(who(qp, c.wr_id) + "completed with " + iwarp::name(c.status));
  if (q.flushed_receive) return wrong(who(qp, c.wr_id) + "completed well behind one that was flushed");
  ++tally_.received;
  delivered(qp, *r, c);
}

void Model::delivered(std::size_t qp, const Receive& r, const verbs::Completion& c) {
  Qp& q = qps_[qp];
  Qp& peer = qps_[peer_of(qp)];
  const std::string id = who(qp, c.wr_id);
  if (q.delivered == peer.messages.size()) return wrong(id + "completed, though the peer has sent no more");
  const std::size_t first = q.delivered == 0 ? 0 : peer.messages[q.delivered - 1] + 1;
  const std::size_t number = peer.messages[q.delivered++];
  const Request& m = peer.sends[number];
  const bool immediate = has_immediate(m.op), revokes = m.op == SendOp::kSendInvalidate;
  const Bytes payload = immediate ? Bytes{} : m.payload;
  // Of Immediate Data that is posted alone: the Write before it, unless a wake came between.
  std::size_t length = m.payload.size();
  if (m.op == SendOp::kImmediate) {
    length = 0;
    for (std::size_t i = first; i < number && c.byte_len != 0; ++i) {
      if (peer.sends[i].op == SendOp::kWrite) length = peer.sends[i].payload.size();
    }
  }
  if (c.byte_len != length)
    wrong(id + std::to_string(c.byte_len) + " octets of the message " + std::to_string(m.id) + " of " +
          std::to_string(length));
  if (c.solicited != m.solicited) wrong(id + "solicited event not as sent");
  if (c.has_immediate != immediate) wrong(id + (immediate ? "no Immediate Data" : "Immediate Data"));
  if (immediate && c.immediate != m.immediate) wrong(id + "other Immediate Data");
  if (c.invalidated != revokes) wrong(id + (revokes ? "revoked nothing" : "revoked an STag"));
  if (revokes && c.invalidated_stag != m.stag) wrong(id + "revoked another STag");
  if (revokes) memory_.region(qp, m.region).state = Region::State::kDead;
  memory_.write(r.qp, r.pieces, payload);
  if (!memory_.holds(r.qp, r.pieces, memory_.read(r.qp, r.pieces)))
    wrong(id + "does not hold the message " + std::to_string(m.id));
  placed(peer_of(qp), number + 1);  // RFC 5040 s5.5 item 10
}

// Octets of a message that did not come whole may be in the first of them.
void Model::receive_flushed(std::size_t qp, const Receive& r) {
  Qp& q = qps_[qp];
  const Qp& peer = qps_[peer_of(qp)];
  if (!ending(qp)) return wrong(who(qp, r.id) + "was flushed, but the connection stands");
  ++tally_.receives_flushed;
  const Bytes before = memory_.read(r.qp, r.pieces);
  Bytes after = before;
  if (!q.flushed_receive && q.delivered < peer.messages.size()) {
    const Request& m = peer.sends[peer.messages[q.delivered]];
    if (!has_immediate(m.op)) std::copy_n(m.payload.begin(), std::min(m.payload.size(), after.size()), after.begin());
  }
  if (q.flushed_receive && setup_.hosts[host_of(qp)].shares)
    wrong(who(qp, r.id) + "a second shared Receive was taken and flushed");
  q.flushed_receive = true;
  if (!memory_.settle_for(r.qp, r.pieces, before, after))
    wrong(who(qp, r.id) + "was flushed, and holds what was not sent to it");
}

}  // namespace iwarp::programs
