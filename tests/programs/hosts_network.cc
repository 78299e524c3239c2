// How octets move, in docs/DRIVING.md's order.
#include <algorithm>
#include <cstring>
#include <random>

#include "tests/programs/hosts.h"

namespace iwarp::programs {

// With the queue pair's lock held, as a driver has to.
void Hosts::End::kick() {
  if (eager && connected) (void)hosts->transmit(*this, kAll);
}

// Precondition: its lock is held.
bool Hosts::transmit(End& end, std::size_t octets) {
  bool moved = false;
  if (end.out.end != Wire::End::kNone) {
    after_fin_ = after_fin_ || end.core->tx_pending();
    return false;
  }
  while (octets > 0) {
    std::size_t n = 0;
    for (const ConstBytes piece : end.core->tx_buffers(now_)) {
      const ConstBytes some = piece.first(std::min(piece.size(), octets - n));
      end.out.octets.insert(end.out.octets.end(), some.begin(), some.end());
      n += some.size();
    }
    end.core->tx_commit(n, now_);
    if (n == 0) break;
    octets -= n;
    moved = true;
  }
  return moved;
}

bool Hosts::take(std::size_t qp, std::size_t octets) {
  End& end = *ends_[qp];
  if (!end.connected || end.released) return false;
  bool moved = false;
  {
    const auto lock = end.qp->lock();
    moved = transmit(end, octets);
  }
  after(end);
  return moved;
}

// One read of at most `most` octets. 0: it does not want any.
std::size_t Hosts::read(End& to, Wire& from, std::size_t most) {
  const auto lock = to.qp->lock();
  const auto buffers = to.core->rx_buffers(to.scratch);
  if (buffers.empty()) return 0;
  std::size_t n = 0;
  for (const MutBytes buffer : buffers) {
    const std::size_t part = std::min(buffer.size(), most - n);
    if (part != 0) std::memcpy(buffer.data(), from.octets.data() + from.taken + n, part);
    n += part;
  }
  to.core->rx_commit(n, now_);
  from.taken += n;
  return n;
}

bool Hosts::deliver(std::size_t qp, std::size_t octets, std::uint32_t cut, std::uint32_t seed) {
  End& to = *ends_[qp];
  Wire& from = ends_[peer_of(qp)]->out;
  std::minstd_rand random(seed + 1);
  const bool comes_to_the_end = octets > from.waiting();
  std::size_t left = std::min(octets, from.waiting());
  bool moved = false;
  for (std::size_t reads = 0; left > 0 && !to.released; ++reads) {
    // Small reads are for where they matter: a long run of them only takes time.
    const std::size_t longest = cut == 0 ? left : reads < 1000 ? cut : std::max<std::size_t>(cut, 1460);
    const std::size_t n = read(to, from, std::min(left, cut == 0 ? left : 1 + random() % longest));
    if (n == 0) break;
    left -= n;
    moved = true;
    after(to);
  }
  if (to.released) from.clear();
  if (from.waiting() > 0) return moved;
  from.clear();
  if (!comes_to_the_end || to.released || from.end == Wire::End::kNone || from.end_taken) return moved;
  from.end_taken = true;
  const bool reset = from.end == Wire::End::kReset;
  tcp_ends(to, reset ? stream::TcpEnd::kReset : stream::TcpEnd::kFin);
  if (reset) to.released = true;
  return true;
}

void Hosts::tcp_ends(End& end, stream::TcpEnd how) {
  {
    const auto lock = end.qp->lock();
    end.core->rx_end(how, now_);
  }
  after(end);
}

void Hosts::lose(std::size_t qp, std::uint32_t how) {
  constexpr std::array kHow = {stream::TcpEnd::kReset, stream::TcpEnd::kSilence, stream::TcpEnd::kFin};
  for (const std::size_t i : {qp, peer_of(qp)}) ends_[i]->out.clear();
  for (const std::size_t i : {qp, peer_of(qp)}) {
    if (!ends_[i]->released) tcp_ends(*ends_[i], kHow.at(how));
    ends_[i]->released = true;
    ends_[i]->out.clear();
  }
}

void Hosts::set_emss(std::size_t qp, std::uint32_t emss) {
  const auto lock = ends_[qp]->qp->lock();
  ends_[qp]->core->set_emss(emss);
}

// What a driver does behind each input.
void Hosts::after(End& end) {
  {
    const auto lock = end.qp->lock();
    while (auto event = end.core->poll_event()) end.events.push_back(std::move(*event));
    end.qp->drain_completions();
  }
  act_on_link(end);
}

void Hosts::act_on_link(End& end) {
  stream::LinkAction action;
  {
    const auto lock = end.qp->lock();
    action = end.core->link_action();
  }
  if (end.released) return;
  End& peer = *ends_[peer_of(end.number)];
  switch (action) {
    case stream::LinkAction::kNone:
      return;
    case stream::LinkAction::kShutdownWrite:
      end.out.end = Wire::End::kFin;
      return;
    case stream::LinkAction::kClose:
      if (end.out.end == Wire::End::kNone) end.out.end = Wire::End::kFin;
      break;
    case stream::LinkAction::kReset:
      if (!setup_.reset_keeps) end.out.clear();
      end.out.end = Wire::End::kReset;
      break;
  }
  end.released = true;
  peer.out.clear();
}

}  // namespace iwarp::programs
