// What follows from a step.
#include "tests/programs/model.h"

#include <algorithm>
#include <cstring>

namespace iwarp::programs {

using rdmap::SendOp;

namespace {

std::uint64_t number_of(const Bytes& octets) {
  std::uint64_t out = 0;
  std::memcpy(&out, octets.data(), sizeof(out));
  return out;
}

Bytes octets_of(std::uint64_t value) {
  Bytes out(sizeof(value));
  std::memcpy(out.data(), &value, sizeof(value));
  return out;
}

// RFC 7306 s5.1, bit by bit.
std::uint64_t outcome(SendOp op, const rdmap::AtomicOperands& o, std::uint64_t was) {
  if (op == SendOp::kCmpSwap) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t one = std::uint64_t{1} << bit;
      if ((o.compare_mask & one) != 0 && (was & one) != (o.compare & one)) return was;
    }
    std::uint64_t out = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t one = std::uint64_t{1} << bit;
      out |= ((o.mask & one) != 0 ? o.data : was) & one;
    }
    return out;
  }
  std::uint64_t out = 0;
  unsigned carry = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const unsigned sum = static_cast<unsigned>((was >> bit) & 1) + static_cast<unsigned>((o.data >> bit) & 1) + carry;
    out |= std::uint64_t{sum & 1} << bit;
    carry = ((o.mask >> bit) & 1) != 0 ? 0 : sum >> 1;  // the most significant bit of its field
  }
  return out;
}

}  // namespace

bool Model::Request::message() const {
  return !drain && is_message(op);
}

Model::Model(const Setup& setup) : setup_(setup), memory_(setup), pairs_(setup.pairs), qps_(setup.pairs * kHosts) {}

std::string Model::who(std::size_t qp, std::uint64_t id) const {
  return "qp" + std::to_string(qp) + " request " + std::to_string(id) + ": ";
}

void Model::apply(const Step& s) {
  Host& host = hosts_[host_of(s.qp)];
  switch (s.what) {
    case Do::kConnect:
      pairs_[pair_of(s.qp)].connected = true;
      return;
    case Do::kReceive: {
      const Receive r{next_id_++, s.qp, s.pieces, s.length()};
      for (const Piece& p : s.pieces) use(s.qp, p, Use::Kind::kReceive, s.qp, r.id);
      const bool shares = setup_.hosts[host_of(s.qp)].shares;
      shares ? host.receives.push_back(r) : qps_[s.qp].receives.push_back(r);
      host.posted += shares ? 1 : 0;
      return;
    }
    case Do::kTrespass:
      pairs_[pair_of(s.qp)].causes.push_back({s.what, s.qp, static_cast<std::uint32_t>(s.op)});
      return post(s);
    case Do::kPost:
    case Do::kDrain:
      return post(s);
    case Do::kInvalidate:
      memory_.region(s.qp, s.region).state = Region::State::kDead;
      return;
    case Do::kRereg:
      memory_.region(s.qp, s.region).state = Region::State::kValid;
      return;
    case Do::kFill:
      return fill(s);
    case Do::kSrqLimit:
      host.may_wait = host.may_wait || (host.limit != 0 && host.may_warn && (!host.warned || host.unsure));
      host.limit = s.amount;
      host.warned = host.unsure = false;
      host.may_warn = host.posted - std::min(host.posted, messages_to(host_of(s.qp))) < s.amount;
      return;
    case Do::kDisconnect:
    case Do::kAbort:
    case Do::kLose:
      return end(s);
    case Do::kLeave:
      end(s);
      return leave(s.qp);
    case Do::kMove:
    case Do::kPoll:
    case Do::kSettle:
    case Do::kTime:
    case Do::kEmss:
    case Do::kArm:
    case Do::kResize:
    case Do::kEvents:
      return;
  }
}

void Model::fill(const Step& s) {
  const Piece& p = s.pieces[0];
  for (const Use& read : memory_.region(s.qp, p.region).uses) {
    if (!read.overlaps(p.offset, p.offset + p.length)) continue;
    qps_[read.qp].sends[read.request].loose = true;
    for (Region& region : memory_.all()) {
      for (Use& u : region.uses)
        u.loose = u.loose || (u.kind == Use::Kind::kSink && u.qp == read.qp && u.request == read.request);
    }
  }
  memory_.write(s.qp, s.pieces, octets(s.seed, s.length()));
}

void Model::end(const Step& s) {
  const std::uint32_t how = s.what == Do::kAbort   ? s.more
                            : s.what == Do::kLeave ? (mid_message(s.qp) ? 1 : 0)
                                                   : s.amount;
  pairs_[pair_of(s.qp)].causes.push_back({s.what, s.qp, how});
  qps_[s.qp].ended_here = true;
  // What was posted before a message that has come has come as well, and is answered before the end.
  Qp& peer = qps_[peer_of(s.qp)];
  const std::size_t came = qps_[s.qp].delivered;
  if (s.what == Do::kDisconnect && came != 0) peer.served = peer.messages[came - 1];
  if (s.what == Do::kLose) qps_[peer_of(s.qp)].ended_here = true;
}

bool Model::mid_message(std::size_t qp) const {
  const Qp &q = qps_[qp], &peer = qps_[peer_of(qp)];
  const auto open = [](const Request& r) { return !r.drain; };
  const auto asks = [](const Request& r) { return r.answered(); };
  return std::any_of(q.sends.begin() + static_cast<std::ptrdiff_t>(q.done), q.sends.end(), open) ||
         std::any_of(peer.sends.begin() + static_cast<std::ptrdiff_t>(peer.done), peer.sends.end(), asks);
}

// What has not completed never does, and all its memory is free.
void Model::leave(std::size_t qp) {
  Qp& q = qps_[qp];
  q.left = true;
  for (std::size_t i = q.done; i < q.sends.size() && fault_.empty(); ++i) {
    if (!q.sends[i].drain) resolve(qp, i, Status::kFlushed);
  }
  q.done = q.sends.size();
  for (; q.received < q.receives.size() && fault_.empty(); ++q.received) {
    const Receive r = q.receives[q.received];
    memory_.end_uses([&](const Use& u) { return u.kind == Use::Kind::kReceive && u.request == r.id; });
    receive_flushed(qp, r);
  }
}

void Model::use(std::size_t qp, const Piece& p, Use::Kind kind, std::size_t by, std::size_t request) {
  if (p.length != 0) memory_.region(qp, p.region).uses.push_back({kind, by, request, p.offset, p.offset + p.length});
}

void Model::post(const Step& s) {
  Qp& q = qps_[s.qp];
  Request r;
  r.id = next_id_++;
  r.drain = s.what == Do::kDrain;
  r.signaled = r.drain || s.signaled;
  r.posted_late = q.ended_here || q.ended;
  if (!r.drain) {
    r.op = s.op;
    r.solicited = s.solicited;
    r.fence = s.fence;
    r.inlined = s.inlined;
    r.pieces = s.pieces;
    r.remote = s.remote;
    r.remote.length = s.length();
    r.immediate = s.immediate;
    r.vain = s.what == Do::kTrespass || q.walled;
    if (!r.posted_late) enter(s, r, q.sends.size());
    q.walled = q.walled || (s.what == Do::kTrespass && s.op == SendOp::kWrite);
  }
  q.sends.push_back(std::move(r));
}

// What the request does to memory, and which memory it needs until it is over.
void Model::enter(const Step& s, Request& r, std::size_t number) {
  Qp& q = qps_[s.qp];
  const std::size_t peer = peer_of(s.qp);
  if (r.fence) q.fence = number;
  if (r.vain) {
    r.before = r.after = memory_.read(s.qp, r.pieces);
    for (const Piece& p : r.pieces) use(s.qp, p, r.answered() ? Use::Kind::kSink : Use::Kind::kSource, s.qp, number);
    return;
  }
  if (r.message()) {
    q.messages.push_back(number);
    Host& host = hosts_[host_of(peer)];
    if (host.posted - std::min(host.posted, messages_to(host_of(peer))) < host.limit) host.may_warn = true;
  }
  if (r.answered()) {
    r.before = memory_.read(s.qp, r.pieces);
    if (is_atomic(s.op)) {
      r.remote.length = 8;
      r.remote_before = r.after = memory_.read(peer, {r.remote});
      r.remote_after = octets_of(outcome(s.op, s.atomic, number_of(r.remote_before)));
      memory_.write(peer, {r.remote}, r.remote_after);
    } else {
      r.after = r.remote.length == 0 ? Bytes{} : memory_.read(peer, {r.remote});
    }
    memory_.write(s.qp, r.pieces, r.after);
    use(peer, r.remote, is_atomic(s.op) ? Use::Kind::kRemoteAtomic : Use::Kind::kRemoteRead, s.qp, number);
  } else {
    r.payload = memory_.read(s.qp, r.pieces);
  }
  if (is_write(s.op) && r.remote.length != 0) {
    r.remote_before = memory_.read(peer, {r.remote});
    r.remote_after = r.payload;
    memory_.write(peer, {r.remote}, r.payload);
    use(peer, r.remote, Use::Kind::kRemoteWrite, s.qp, number);
  }
  if (!s.inlined) {
    for (const Piece& p : r.pieces) use(s.qp, p, r.answered() ? Use::Kind::kSink : Use::Kind::kSource, s.qp, number);
  }
  if (s.op != SendOp::kSendInvalidate && !invalidates_here(s.op)) return;
  r.region = s.op == SendOp::kReadInvalidate ? s.pieces[0].region : s.region;
  Region& revoked = memory_.region(s.op == SendOp::kSendInvalidate ? peer : s.qp, r.region);
  revoked.state = Region::State::kDying;
  r.stag = revoked.stag;
}

}  // namespace iwarp::programs
