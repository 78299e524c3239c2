#include "tests/support/pair.h"

#include <algorithm>

namespace iwarp::test {

Pair::Pair(const PairOptions& options)
    : initiator(1, options.initiator, options.scratch_bytes),
      responder(2, options.responder, options.scratch_bytes),
      options_(options) {
  initiator.conn().set_emss(options.emss);
  responder.conn().set_emss(options.emss);
  deciding_.emplace(options.responder_policy, now);
  initiator.start(mpa::Initiator(options.initiator_policy, options.request_private_data, now), now);
}

bool Pair::transmit(Endpoint& from, Link& link, Wire& out) {
  if (link.closed || out.stall || !from.conn().tx_pending()) return false;
  std::size_t room = out.max_write_bytes;
  if (out.stall_after)
    room = std::min<std::size_t>(room, *out.stall_after - std::min(*out.stall_after, out.recorded.size()));
  const Bytes bytes = from.send(room, now);
  if (bytes.empty()) return false;
  EXPECT_FALSE(link.fin_given) << "octets after FIN";
  out.recorded.insert(out.recorded.end(), bytes.begin(), bytes.end());
  out.in_flight.push_back({bytes, now + out.latency});
  return true;
}

bool Pair::act_on_link(Endpoint& from, Link& link, Wire& out, Wire& in) {
  switch (from.conn().link_action()) {
    case stream::LinkAction::kNone:
      return false;
    case stream::LinkAction::kShutdownWrite:
      EXPECT_FALSE(link.fin_given);
      link.fin_given = out.fin_sent = true;
      out.in_flight.push_back({{}, now + out.latency, 0, true});
      return true;
    case stream::LinkAction::kClose:
      if (!link.fin_given) out.in_flight.push_back({{}, now + out.latency, 0, true});
      link.fin_given = out.fin_sent = link.closed = true;
      in.in_flight.clear();
      return true;
    case stream::LinkAction::kReset:
      link.reset = true;
      reset_both();
      return true;
  }
  return false;
}

void Pair::reset_both() {
  for (Wire* w : {&to_initiator, &to_responder}) w->in_flight.clear();
  if (!initiator_link.closed) initiator.end(stream::TcpEnd::kReset, now);
  if (!responder_link.closed) {
    if (deciding_) deciding_.reset();
    responder.end(stream::TcpEnd::kReset, now);
  }
  initiator_link.closed = responder_link.closed = true;
}

std::size_t Pair::feed(Endpoint& to, Link& link, ConstBytes bytes) {
  if (link.closed) return bytes.size();  // nobody reads any more
  if (&to != &responder || !deciding_) return to.receive(bytes, now);
  const std::size_t taken = deciding_->rx(bytes, now);
  while (const auto event = deciding_->poll_event()) {
    if (std::holds_alternative<mpa::RequestReceived>(*event)) {
      EXPECT_TRUE(deciding_->accept(options_.accept_ird, options_.accept_ord, options_.reply_private_data).ok());
    } else {
      ADD_FAILURE() << "the Request was refused: " << std::get<mpa::Failed>(*event).error.why;
    }
  }
  if (deciding_->state() == mpa::ResponderState::kReplying) {
    to.start(std::move(*deciding_), now);
    deciding_.reset();
  }
  return taken;
}

bool Pair::deliver(Wire& wire, Endpoint& to, Link& link) {
  if (wire.in_flight.empty() || wire.in_flight.front().ready > now) return false;
  Wire::Chunk& front = wire.in_flight.front();
  if (front.fin) {
    wire.in_flight.pop_front();
    if (!link.closed) to.end(stream::TcpEnd::kFin, now);
    return true;
  }
  const ConstBytes rest = ConstBytes(front.bytes).subspan(front.taken);
  std::size_t n = std::min(rest.size(), wire.max_chunk_bytes);
  if (wire.random_seed) {
    if (wire.delivered == 0) wire.random.seed(*wire.random_seed);
    n = std::min<std::size_t>(n, 1 + wire.random() % std::min<std::size_t>(wire.max_chunk_bytes, 3000));
  }
  if (wire.cut_at && wire.delivered < *wire.cut_at) n = std::min<std::size_t>(n, *wire.cut_at - wire.delivered);
  if (wire.reset_after) n = std::min<std::size_t>(n, *wire.reset_after - std::min(*wire.reset_after, wire.delivered));
  Bytes bytes(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n));
  if (wire.flip_bit_at && *wire.flip_bit_at >= wire.delivered && *wire.flip_bit_at < wire.delivered + n) {
    bytes[*wire.flip_bit_at - wire.delivered] ^= std::byte{1};
  }
  const std::size_t taken = feed(to, link, bytes);
  wire.delivered += taken;
  if (wire.in_flight.empty()) return true;  // the connection ended meanwhile
  front.taken += taken;
  if (front.taken == front.bytes.size()) wire.in_flight.pop_front();
  if (wire.reset_after && wire.delivered >= *wire.reset_after) {
    wire.reset_after.reset();
    reset_both();
  }
  return taken > 0;
}

bool Pair::step() {
  bool moved = transmit(initiator, initiator_link, to_responder);
  moved |= act_on_link(initiator, initiator_link, to_responder, to_initiator);
  if (!deciding_) {
    moved |= transmit(responder, responder_link, to_initiator);
    moved |= act_on_link(responder, responder_link, to_initiator, to_responder);
  }
  moved |= deliver(to_responder, responder, responder_link);
  moved |= deliver(to_initiator, initiator, initiator_link);
  return moved;
}

void Pair::step_until_stuck(std::size_t& steps) {
  while (step()) {
    if (++steps > options_.max_steps) {
      ADD_FAILURE() << "hang: " << options_.max_steps << " steps and still moving\n" << log();
      return;
    }
  }
}

std::optional<TimePoint> Pair::next_arrival() const {
  std::optional<TimePoint> next;
  for (const Wire* w : {&to_responder, &to_initiator}) {
    if (w->in_flight.empty() || w->in_flight.front().ready <= now) continue;
    if (!next || w->in_flight.front().ready < *next) next = w->in_flight.front().ready;
  }
  return next;
}

void Pair::settle() {
  for (std::size_t steps = 0; steps <= options_.max_steps; ++steps) {
    step_until_stuck(steps);
    const auto next = next_arrival();
    if (!next) return;
    now = *next;
  }
}

void Pair::run() {
  for (std::size_t steps = 0; steps <= options_.max_steps; ++steps) {
    step_until_stuck(steps);
    std::optional<TimePoint> next = next_arrival();
    for (const auto deadline : {initiator.conn().deadline(), responder.conn().deadline()}) {
      if (deadline && (!next || *deadline < *next)) next = deadline;
    }
    if (!next) return;
    now = std::max(now, *next);
    initiator.expire(now);
    responder.expire(now);
  }
  ADD_FAILURE() << "hang: " << options_.max_steps << " steps\n" << log();
}

void Pair::establish() {
  settle();
  EXPECT_NE(initiator.established(), nullptr) << log();
  EXPECT_NE(responder.established(), nullptr) << log();
}

std::string Pair::log() const {
  return "initiator:\n" + initiator.log() + "responder:\n" + responder.log();
}

}  // namespace iwarp::test
