#include "tests/programs/runner.h"

#include <algorithm>

#include "tests/programs/notifications.h"
#include "tests/programs/objects_check.h"

namespace iwarp::programs {
namespace {

using rdmap::SendOp;

class Runner {
 public:
  Runner(const Program& program, Fault fault)
      : program_(program),
        saboteur_(fault, program.seed),
        hosts_(program.setup),
        model_(program.setup),
        notifications_(hosts_, program.setup) {
    for (std::size_t qp = 0; qp < hosts_.qps(); ++qp) {
      for (std::size_t i = 0; i < kRegions; ++i) {
        Region& region = model_.memory().region(qp, i);
        region.actual = hosts_.memory(qp, i);
        region.stag = hosts_.region(qp, i).stag();
      }
    }
  }

  Outcome run() {
    while (next_ < program_.steps.size() && model_.fault().empty()) {
      const Step& step = program_.steps[next_];
      out_.step = next_++;
      if (!model_.legal(step)) {
        ++out_.skipped;
        continue;
      }
      ++out_.steps.at(static_cast<std::size_t>(step.what));
      take(step);
      see_connections();
    }
    if (model_.fault().empty()) settle();
    if (!hosts_.deregister()) model_.wrong("a registration is left");
    out_.fault = model_.fault();
    out_.tally = model_.tally();
    out_.planted = saboteur_.planted();
    return out_;
  }

 private:
  void take(const Step& s);
  void post(const Step& s);
  void post_list(const Step& first);
  [[nodiscard]] bool goes_on(const Step& s) const;
  [[nodiscard]] rdmap::SendWr request(const Step& s);
  [[nodiscard]] rdmap::SgeList pieces(const Step& s);
  [[nodiscard]] bool taken(const Step& s, const Result<void>& posted);
  void fill(const Step& s);
  void reregister(const Step& s);
  void poll(std::size_t host, bool receives, std::size_t most);
  void leave(const Step& s);
  void arm(const Step& s);
  void resize(const Step& s);
  void poll_events(std::size_t host);
  void see_connections();
  void see_connection(std::size_t qp);
  void settle();
  [[nodiscard]] bool move_all();
  [[nodiscard]] std::optional<TimePoint> next_end();
  void poll_all();

  const Program& program_;
  Saboteur saboteur_;
  Hosts hosts_;
  Model model_;
  Notifications notifications_;
  std::size_t next_ = 0;
  Outcome out_;
};

void Runner::take(const Step& s) {
  const std::size_t host = host_of(s.qp);
  switch (s.what) {
    case Do::kConnect:
      model_.apply(s);
      return hosts_.connect(s.qp);
    case Do::kReceive: {
      const rdmap::RecvWr wr{model_.next_id(), pieces(s)};
      verbs::SharedReceiveQueue* const srq = hosts_.srq(host);
      if (taken(s, srq != nullptr ? srq->post_recv(wr) : hosts_.qp(s.qp).post_recv(wr))) model_.apply(s);
      return;
    }
    case Do::kPost:
      return goes_on(s) ? post_list(s) : post(s);
    case Do::kTrespass:
      return post(s);
    case Do::kDrain:
      if (taken(s, hosts_.qp(s.qp).drain(model_.next_id()))) model_.apply(s);
      return;
    case Do::kInvalidate:
      hosts_.region(s.qp, s.region).invalidate();
      return model_.apply(s);
    case Do::kRereg:
      return reregister(s);
    case Do::kFill:
      return fill(s);
    case Do::kMove:
      (void)hosts_.take(s.qp, s.amount);
      (void)hosts_.deliver(peer_of(s.qp), s.more, s.cut, s.seed);
      return;
    case Do::kPoll:
      return poll(host, s.more != 0, s.amount);
    case Do::kSettle:
      return settle();
    case Do::kTime:
      return hosts_.pass(std::chrono::milliseconds(s.amount));
    case Do::kEmss:
      return hosts_.set_emss(s.qp, s.amount);
    case Do::kArm:
      return arm(s);
    case Do::kSrqLimit:
      // First, as it may be reached at once.
      model_.apply(s);
      if (!hosts_.srq(host)->set_limit(s.amount).ok()) model_.wrong("the limit was refused");
      return;
    case Do::kResize:
      return resize(s);
    case Do::kEvents:
      return poll_events(host);
    case Do::kDisconnect:
      model_.apply(s);
      return hosts_.disconnect(s.qp);
    case Do::kLeave:
      return leave(s);
    case Do::kAbort:
      model_.apply(s);
      return hosts_.abort(s.qp, s.more);
    case Do::kLose:
      model_.apply(s);
      return hosts_.lose(s.qp, s.amount);
  }
}

// --- Requests.

rdmap::SgeList Runner::pieces(const Step& s) {
  rdmap::SgeList out;
  for (const Piece& p : s.pieces) {
    rdmap::Sge sge;
    if (s.inlined) {
      sge = {hosts_.memory(s.qp, p.region).data() + p.offset, p.length, Stag{}};
    } else {
      sge = hosts_.region(s.qp, p.region).sge(p.offset, p.length);
    }
    (void)out.add(sge);
  }
  return out;
}

rdmap::SendWr Runner::request(const Step& s) {
  rdmap::SendWr wr;
  wr.wr_id = model_.next_id();
  wr.op = s.op;
  wr.sges = pieces(s);
  wr.solicited = s.solicited;
  wr.signaled = s.signaled;
  wr.fence = s.fence;
  wr.inline_data = s.inlined;
  wr.immediate = s.immediate;
  wr.atomic = s.atomic;
  const std::size_t peer = peer_of(s.qp);
  if (s.op == SendOp::kSendInvalidate) {
    wr.remote_stag = hosts_.region(peer, s.region).stag();
  } else if (s.op == SendOp::kLocalInvalidate) {
    wr.local_stag = hosts_.region(s.qp, s.region).stag();
  } else if (wr.sges.total() != 0) {
    verbs::MemoryRegion& target = hosts_.region(peer, s.remote.region);
    wr.remote_stag = target.stag();
    wr.remote_to = target.base_to() + s.remote.offset;
  } else {  // any
    wr.remote_stag = Stag{s.remote.offset};
    wr.remote_to = s.seed;
  }
  return wr;
}

// Whether a post was taken. A full queue refuses.
bool Runner::taken(const Step& s, const Result<void>& posted) {
  if (posted.ok()) {
    if (model_.must_be_full(s)) model_.wrong("a full queue took a request");
    // Behind the end it has completed by now. See QueuePair::post_send().
    const auto attributes = hosts_.qp(s.qp).query();
    if (model_.is_over(s.qp) && (!attributes.ok() || attributes->sends_posted + attributes->receives_posted != 0))
      model_.wrong("posted behind the end, and not flushed at once");
    return true;
  }
  ++out_.refused;
  if (posted.error().code != Errc::kQueueFull || !model_.may_be_full(s))
    model_.wrong(std::string("the post was refused: ") + posted.error().why);
  return false;
}

void Runner::post(const Step& s) {
  if (taken(s, hosts_.qp(s.qp).post_send(request(s)))) model_.apply(s);
}

bool Runner::goes_on(const Step& s) const {
  return s.with_next && next_ < program_.steps.size() && program_.steps[next_].what == Do::kPost &&
         program_.steps[next_].qp == s.qp;
}

// In one call, as far as the queue certainly has room.
void Runner::post_list(const Step& first) {
  std::vector<rdmap::SendWr> list;
  const std::size_t room = model_.sends_room(first.qp);
  if (room == 0) return post(first);
  for (const Step* s = &first;;) {
    list.push_back(request(*s));
    model_.apply(*s);
    if (!goes_on(*s) || list.size() == room || !model_.legal(program_.steps[next_])) break;
    s = &program_.steps[next_++];
    ++out_.steps.at(static_cast<std::size_t>(Do::kPost));
  }
  std::size_t posted = 0;
  const auto ok = hosts_.qp(first.qp).post_send(list, &posted);
  if (!ok.ok() || posted != list.size()) model_.wrong("a list was not posted whole");
}

void Runner::fill(const Step& s) {
  model_.apply(s);
  const Piece& p = s.pieces[0];
  const Bytes content = octets(s.seed, p.length);
  std::copy(content.begin(), content.end(), hosts_.memory(s.qp, p.region).begin() + p.offset);
}

void Runner::reregister(const Step& s) {
  const Stag old = hosts_.region(s.qp, s.region).stag();
  if (const auto ok = hosts_.reregister(s.qp, s.region, s.amount); !ok.ok())
    return model_.wrong(std::string("a region cannot be registered anew: ") + ok.error().why);
  model_.apply(s);
  const Stag fresh = hosts_.region(s.qp, s.region).stag();
  model_.memory().region(s.qp, s.region).stag = fresh;
  if (fresh == old || raw(fresh) >> 8 != raw(old) >> 8) model_.wrong("an STag of another index, or of the same key");
  if (hosts_.context(host_of(s.qp)).stags().valid(old)) model_.wrong("the old STag is valid");
}

// --- What is seen.

void Runner::poll(std::size_t host, bool receives, std::size_t most) {
  std::vector<verbs::Completion> polled;
  for (verbs::Completion c; polled.size() < most && hosts_.cq(host, receives).poll({&c, 1}) == 1;) polled.push_back(c);
  notifications_.polled(host, receives, polled);
  saboteur_.completions(polled, hosts_, model_);
  for (const verbs::Completion& c : polled) {
    const auto qp = hosts_.numbered(c.qp_number);
    if (!qp || host_of(*qp) != host) return model_.wrong("a completion of no queue pair of this host");
    const bool both = program_.setup.hosts[host].one_cq;
    model_.completed(*qp, both ? c.op == rdmap::WcOp::kRecv : receives, c);
  }
}

void Runner::arm(const Step& s) {
  const bool receives = s.more != 0;
  poll(host_of(s.qp), receives, Hosts::kAll);
  notifications_.check(host_of(s.qp), receives, model_);
  notifications_.arm(host_of(s.qp), receives, s.solicited);
}

// What has completed by then is in the completion queues; nothing more comes there.
void Runner::leave(const Step& s) {
  hosts_.leave(s.qp);
  poll(host_of(s.qp), false, Hosts::kAll);
  poll(host_of(s.qp), true, Hosts::kAll);
  model_.apply(s);
}

void Runner::resize(const Step& s) {
  if (const auto ok = hosts_.cq(host_of(s.qp), s.more != 0).resize(s.amount); !ok.ok())
    model_.wrong(std::string("a completion queue cannot be resized: ") + ok.error().why);
}

void Runner::poll_events(std::size_t host) {
  while (true) {
    auto event = hosts_.context(host).poll_async_event();
    saboteur_.event(event, hosts_, host);
    if (!event) return;
    const auto qp = hosts_.numbered(event->qp_number);
    const bool of_srq = event->type == verbs::AsyncEventType::kSrqLimitReached;
    if (of_srq ? event->srq != hosts_.srq(host) : !qp || host_of(*qp) != host)
      return model_.wrong("an asynchronous event of nothing of this host");
    model_.happened(host, *event, qp.value_or(0));
  }
}

void Runner::see_connections() {
  for (std::size_t qp = 0; qp < hosts_.qps(); ++qp) {
    see_connection(qp);
    if (model_.closes(qp) && hosts_.qp(qp).state() != verbs::QueuePairState::kSqDrain)
      model_.wrong("qp" + std::to_string(qp) + " closes in order, and is in state " +
                   verbs::name(hosts_.qp(qp).state()));
  }
}

void Runner::see_connection(std::size_t qp) {
  for (const stream::Event& event : hosts_.events(qp)) {
    if (std::holds_alternative<stream::Established>(event)) {
      model_.established(qp);
    } else if (const auto* end = std::get_if<stream::Disconnected>(&event)) {
      if ((end->sent || end->received) && !model_.may_terminate(qp))
        model_.wrong("qp" + std::to_string(qp) + ": a Terminate");
      model_.ended(qp, end->reason);
    } else {
      model_.wrong("qp" + std::to_string(qp) + ": a fallback");
    }
  }
}

// --- Nothing moves any more.

bool Runner::move_all() {
  bool moved = false;
  for (std::size_t qp = 0; qp < hosts_.qps(); ++qp) {
    moved |= hosts_.take(qp, Hosts::kAll);
    moved |= hosts_.deliver(peer_of(qp), Hosts::kAll, program_.setup.settle_cut, static_cast<std::uint32_t>(next_));
    see_connections();
  }
  return moved;
}

void Runner::poll_all() {
  for (std::size_t host = 0; host < kHosts; ++host) {
    for (const bool receives : {false, true}) {
      poll(host, receives, Hosts::kAll);
      notifications_.check(host, receives, model_);
    }
    poll_events(host);
  }
}

// The first moment for which the end of a connection waits.
std::optional<TimePoint> Runner::next_end() {
  std::optional<TimePoint> first;
  for (std::size_t qp = 0; qp < hosts_.qps(); ++qp) {
    if (!model_.ending(qp) || (hosts_.released(qp) && hosts_.released(peer_of(qp)))) continue;
    const auto deadline = hosts_.deadline(qp);
    if (deadline && (!first || *deadline < *first)) first = deadline;
  }
  return first;
}

void Runner::settle() {
  for (std::size_t rounds = 0;; ++rounds) {
    if (rounds > 10'000) return model_.wrong("octets move for ever");
    if (move_all()) continue;
    const auto next = next_end();
    if (!next) break;
    hosts_.pass_to(*next);
  }
  see_connections();
  poll_all();
  if (!model_.fault().empty()) return;
  saboteur_.memory(hosts_, model_);
  model_.settled();
  check_objects(hosts_, model_, saboteur_);
}

}  // namespace

Outcome run(const Program& program, Fault fault) {
  return Runner(program, fault).run();
}

}  // namespace iwarp::programs
