#include "tests/programs/sabotage.h"

#include <algorithm>

namespace iwarp::programs {

using rdmap::WcOp;

namespace {

bool same_queue(const verbs::Completion& a, const verbs::Completion& b) {
  return a.qp_number == b.qp_number && (a.op == WcOp::kRecv) == (b.op == WcOp::kRecv);
}

struct Place {
  std::size_t owner, region;
  Use use;
};

void invert(Hosts& hosts, std::size_t qp, std::size_t region, std::size_t at) {
  hosts.memory(qp, region)[at] ^= std::byte{0xFF};
}

}  // namespace

const char* name(Fault fault) {
  constexpr std::array<const char*, kFaults> kNames = {
      "none",        "swapped",  "dropped", "repeated", "flushed", "length",      "solicited",  "immediate",
      "invalidated", "received", "read",    "written",  "stray",   "still valid", "event lost", "event from nowhere"};
  return kNames[static_cast<std::size_t>(fault)];
}

void Saboteur::completions(std::vector<verbs::Completion>& polled, Hosts& hosts, const Model& model) {
  if (fault_ == Fault::kNone || planted_ || polled.empty()) return;
  const std::size_t i = random_() % polled.size();
  const auto at = polled.begin() + static_cast<std::ptrdiff_t>(i);
  const auto qp = hosts.numbered(polled[i].qp_number);
  if (!qp || model.ending(*qp)) return;  // where more may happen
  if (wants(Fault::kSwapped) && i + 1 < polled.size() && same_queue(polled[i], polled[i + 1])) {
    std::swap(polled[i], polled[i + 1]);
    planted_ = true;
  } else if (wants(Fault::kDropped)) {
    polled.erase(at);
    planted_ = true;
  } else if (wants(Fault::kRepeated)) {
    polled.insert(at, verbs::Completion(polled[i]));
    planted_ = true;
  } else {
    alter(polled[i]);
    flip(polled[i], hosts, model);
  }
}

void Saboteur::alter(verbs::Completion& c) {
  if (c.status != Errc::kOk) return;
  const bool receive = c.op == WcOp::kRecv;
  if (wants(Fault::kFlushed)) {
    c.status = Errc::kFlushed;
  } else if (wants(Fault::kLength) && receive) {
    ++c.byte_len;
  } else if (wants(Fault::kSolicited) && receive) {
    c.solicited = !c.solicited;
  } else if (wants(Fault::kImmediate) && c.has_immediate) {
    c.immediate ^= 1;
  } else if (wants(Fault::kInvalidated) && c.invalidated) {
    c.invalidated = false;
  } else {
    return;
  }
  planted_ = true;
}

void Saboteur::flip(const verbs::Completion& c, Hosts& hosts, const Model& model) {
  if (c.status != Errc::kOk) return;
  const std::size_t qp = *hosts.numbered(c.qp_number);
  const bool receive = c.op == WcOp::kRecv;
  const auto message = model.next_message(qp);
  std::optional<Place> oldest;  // of what fits: later ones may not have come yet
  for (std::size_t owner = 0; owner < hosts.qps(); ++owner) {
    for (std::size_t region = 0; region < kRegions; ++region) {
      for (const Use& u : model.memory().region(owner, region).uses) {
        const bool received = wants(Fault::kReceived) && receive && u.kind == Use::Kind::kReceive &&
                              u.request == c.wr_id && c.byte_len > 0;
        const bool read = wants(Fault::kRead) && !receive && c.byte_len > 0 && u.kind == Use::Kind::kSink && u.qp == qp;
        const bool written = wants(Fault::kWritten) && receive && message && u.kind == Use::Kind::kRemoteWrite &&
                             u.qp == peer_of(qp) && u.request < *message;
        if ((received || read || written) && (!oldest || u.request < oldest->use.request)) oldest = {owner, region, u};
      }
    }
  }
  if (!oldest || oldest->use.loose) return;
  const auto& uses = model.memory().region(oldest->owner, oldest->region).uses;
  const std::uint32_t at = oldest->use.begin;
  const auto others = std::count_if(uses.begin(), uses.end(), [&](const Use& u) { return u.overlaps(at, at + 1); });
  if (others > 1) return;  // it may be written again
  invert(hosts, oldest->owner, oldest->region, at);
  planted_ = true;
}

void Saboteur::memory(Hosts& hosts, const Model& model) {
  if (!wants(Fault::kStray)) return;
  const std::size_t qp = random_() % hosts.qps(), region = random_() % kRegions;
  if (!model.memory().region(qp, region).uses.empty()) return;
  invert(hosts, qp, region, random_() % hosts.memory(qp, region).size());
  planted_ = true;
}

void Saboteur::event(std::optional<verbs::AsyncEvent>& polled, Hosts& hosts, std::size_t host) {
  // That of a limit is not missed any more when another limit is set.
  if (wants(Fault::kEventLost) && polled && polled->type != verbs::AsyncEventType::kSrqLimitReached) {
    polled.reset();
    planted_ = true;
  } else if (wants(Fault::kEventFromNowhere) && !polled) {
    polled.emplace(
        verbs::AsyncEvent{.type = verbs::AsyncEventType::kLastWqeReached, .qp_number = hosts.qp(host).number()});
    planted_ = true;
  }
}

bool Saboteur::valid(bool is) {
  if (!wants(Fault::kStillValid) || is) return is;
  planted_ = true;
  return true;
}

}  // namespace iwarp::programs
