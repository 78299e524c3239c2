#include "tests/hostile/rdma_victim.h"

#include <algorithm>

#include "iwarp/base/wire.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/shared_receive_queue.h"
#include "tests/hostile/rdma_talk.h"

namespace iwarp::hostile {
namespace {

using namespace std::chrono_literals;
using ddp::Access;
using verbs::MemoryRegion;

constexpr std::size_t kShift = 4;  // octets, of Memory::kShifted

mpa::Policy policy_for(Flavour flavour) {
  mpa::Policy p;
  p.ird = p.ord = kDepth;
  p.max_ird = 128;
  switch (flavour) {
    case Flavour::kDefault:
    case Flavour::kSharedReceives:
    case Flavour::kRfc7306:
    case Flavour::kVersion2:
    case Flavour::kDraft2005:
    case Flavour::kImpatient2005:
    case Flavour::kBackwardChunks:
      break;
    case Flavour::kPreferOff:
      p.crc = mpa::Policy::Crc::kPreferOff;
      break;
    case Flavour::kRevision1:
      p.revision = 1;
      break;
    case Flavour::kImpatient:
      p.startup_timeout = 400ms;
      break;
    case Flavour::kNoPeer2Peer:
      p.peer_to_peer = false;
      break;
    case Flavour::kAsksForMarkers:
      p.markers = mpa::Policy::Markers::kAsk;
      break;
  }
  return p;
}

stream::Options stream_for(Flavour flavour) {
  stream::Options o;
  if (flavour == Flavour::kImpatient) o.first_fpdu_timeout = 400ms;
  o.rfc7306 = flavour == Flavour::kRfc7306;
  return o;
}

MemoryRegion add(const verbs::ProtectionDomain& pd, MutBytes memory, Access access,
                 ddp::StreamId stream = ddp::StreamId::kAny) {
  MemoryRegion::Options o;
  o.access = access;
  o.base_to = kBase;
  o.stream = stream;
  auto region = MemoryRegion::register_memory(pd, memory, o);
  if (!region) throw std::runtime_error(region.error().why);
  return std::move(*region);
}

}  // namespace

class RdmaVictim::Session {
 public:
  Session(cm::Engine& engine, Flavour flavour)
      : pd_(engine.context()), foreign_pd_(engine.context()), cq_(64, &engine), qp_(make_qp(flavour)) {
    slots_mr_ = add(pd_, slots_, Access::kLocalWrite);
    out_mr_ = add(pd_, out_, Access::kLocalRead);
    sink_mr_ = add(pd_, sink_, Access::kLocalWrite);
    constexpr Access kAll = Access::kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite;
    const auto own = [&](Memory m, const verbs::ProtectionDomain& pd, Access access,
                         ddp::StreamId stream = ddp::StreamId::kAny) {
      const auto i = static_cast<std::size_t>(m);
      const std::size_t shift = m == Memory::kShifted ? kShift : 0;
      named_[i] = add(pd, MutBytes(memory_[i]).subspan(shift, kRegionBytes), access, stream);
      advert_.stags[i] = named_[i].stag();
    };
    own(Memory::kOpen, pd_, kAll);
    own(Memory::kReadOnly, pd_, Access::kLocalWrite | Access::kRemoteRead);
    own(Memory::kWriteOnly, pd_, Access::kLocalWrite | Access::kRemoteWrite);
    own(Memory::kForeign, foreign_pd_, kAll);
    own(Memory::kOtherStream, pd_, kAll, engine.context()->allocate_stream());
    own(Memory::kRevoked, pd_, kAll);
    own(Memory::kInvalidable, pd_, kAll | Access::kRemoteInvalidate, qp_->stream());
    own(Memory::kShifted, pd_, kAll);
    named_[static_cast<std::size_t>(Memory::kRevoked)].invalidate();
    for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
  }
  ~Session() { qp_->abort(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  [[nodiscard]] const Advert& advert() const { return advert_; }

  // Until the connection ends, or `stop`.
  void serve(const std::atomic<bool>& stop) {
    bool read = true;
    while (const auto message = next(stop, verbs::WcOp::kRecv)) {
      // Of Immediate Data the length is that of a Write before it.
      const std::size_t length = message->has_immediate ? 0 : message->byte_len;
      const ConstBytes bytes = ConstBytes(slots_).subspan(message->wr_id * kSlotBytes, length);
      if (bytes.size() == 16) {
        const Stag stag{load_be<std::uint32_t>(bytes.subspan(8))};
        const auto size = std::min<std::uint32_t>(load_be<std::uint32_t>(bytes.subspan(12)), kRegionBytes);
        const verbs::Sge memory{sink_.data(), size, sink_mr_.stag()};
        const auto op = read ? verbs::SendOp::kRead : verbs::SendOp::kWrite;
        const auto to = load_be<std::uint64_t>(bytes);
        if (!qp_->post_send(verbs::SendWr{.op = op, .sges = memory, .remote_stag = stag, .remote_to = to})) return;
        if (!next(stop, read ? verbs::WcOp::kRead : verbs::WcOp::kWrite)) return;
        const verbs::Sge ack{out_.data(), static_cast<std::uint32_t>(out_.size()), out_mr_.stag()};
        if (!qp_->post_send(verbs::SendWr{.sges = ack}) || !next(stop, verbs::WcOp::kSend)) return;
        read = !read;
      }
      if (message->has_immediate && message->immediate != 0 &&
          !add_to(Stag{static_cast<std::uint32_t>(message->immediate)}, stop))
        return;
      post_receive(message->wr_id);
    }
  }

  // The attempt to connect has ended, well or not.
  void decided(std::shared_ptr<cm::Connection> connection) {
    const std::lock_guard lock(mu_);
    connection_ = std::move(connection);
    decided_ = true;
  }
  // Nothing will be sent any more.
  [[nodiscard]] bool over() {
    const std::lock_guard lock(mu_);
    return decided_ && (!connection_ || connection_->disconnected());
  }

  [[nodiscard]] std::uint64_t damage() const {
    std::uint64_t changed = 0;
    for (const Memory m :
         {Memory::kReadOnly, Memory::kForeign, Memory::kOtherStream, Memory::kRevoked, Memory::kShifted}) {
      const Bytes& bytes = memory_[static_cast<std::size_t>(m)];
      changed += static_cast<std::uint64_t>(
          std::count_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; }));
    }
    return changed;
  }

 private:
  std::shared_ptr<verbs::QueuePair> make_qp(Flavour flavour) {
    verbs::QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    o.stream = stream_for(flavour);
    o.stream.sq_depth = o.stream.rq_depth = 8;
    if (flavour == Flavour::kSharedReceives) o.srq = &srq_.emplace(pd_, verbs::SharedReceiveQueue::Options{.depth = 8});
    return std::make_shared<verbs::QueuePair>(pd_, o);
  }
  // A FetchAdd there, and a Send. False when the connection is over.
  bool add_to(Stag stag, const std::atomic<bool>& stop) {
    const verbs::Sge before{sink_.data(), 8, sink_mr_.stag()};
    const verbs::Sge ack{out_.data(), static_cast<std::uint32_t>(out_.size()), out_mr_.stag()};
    return qp_->post_send({.op = verbs::SendOp::kFetchAdd, .sges = before, .remote_stag = stag}) &&
           next(stop, verbs::WcOp::kFetchAdd) && qp_->post_send({.sges = ack}) && next(stop, verbs::WcOp::kSend);
  }
  void post_receive(std::size_t slot) {
    const verbs::Sge into{slots_.data() + slot * kSlotBytes, kSlotBytes, slots_mr_.stag()};
    const verbs::RecvWr wr{.wr_id = slot, .sges = into};
    (void)(srq_ ? srq_->post_recv(wr) : qp_->post_recv(wr));  // flushed after the end, which next() will tell
  }
  // The next completion of that kind; messages that come before it wait. Nullopt when the connection is over.
  std::optional<verbs::Completion> next(const std::atomic<bool>& stop, verbs::WcOp op) {
    if (op == verbs::WcOp::kRecv && !waiting_.empty()) {
      const verbs::Completion first = waiting_.front();
      waiting_.erase(waiting_.begin());
      return first;
    }
    while (!stop) {
      verbs::Completion c;
      if (!cq_.wait_for(100ms) || cq_.poll({&c, 1}) == 0) continue;
      if (c.status != Errc::kOk) return std::nullopt;
      if (c.op == op) return c;
      waiting_.push_back(c);
    }
    return std::nullopt;
  }

  verbs::ProtectionDomain pd_, foreign_pd_;
  verbs::CompletionQueue cq_;
  Bytes slots_ = Bytes(kReceives * kSlotBytes), out_ = Bytes(16), sink_ = Bytes(kRegionBytes);
  std::array<Bytes, static_cast<std::size_t>(Memory::kCount)> memory_ = [] {
    std::array<Bytes, static_cast<std::size_t>(Memory::kCount)> all;
    all.fill(Bytes(kRegionBytes + kShift));
    return all;
  }();
  std::optional<verbs::SharedReceiveQueue> srq_;
  std::shared_ptr<verbs::QueuePair> qp_;
  MemoryRegion slots_mr_, out_mr_, sink_mr_;
  std::array<MemoryRegion, static_cast<std::size_t>(Memory::kCount)> named_;
  Advert advert_;
  std::vector<verbs::Completion> waiting_;
  std::mutex mu_;
  std::shared_ptr<cm::Connection> connection_;
  bool decided_ = false;
};

RdmaVictim::RdmaVictim() {
  for (const Flavour flavour : {Flavour::kDefault, Flavour::kPreferOff, Flavour::kRevision1, Flavour::kImpatient,
                                Flavour::kAsksForMarkers, Flavour::kSharedReceives, Flavour::kRfc7306}) {
    cm::ListenOptions o;
    o.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
    o.policy = policy_for(flavour);
    auto listener = cm::Listener::listen(engine_, o);
    if (!listener) throw std::runtime_error(listener.error().why);
    accept_next(**listener, flavour);
    listeners_[flavour] = std::move(*listener);
  }
}

RdmaVictim::~RdmaVictim() {
  stop_ = true;
  listeners_.clear();
  const std::lock_guard lock(mu_);
  threads_.clear();
}

test::RawTcp RdmaVictim::dial(Flavour flavour) {
  const auto listener = listeners_.find(flavour);
  if (listener == listeners_.end()) throw Inapplicable("no listener of that flavour");
  return test::RawTcp::connect(listener->second->local().port());
}

test::RawTcp RdmaVictim::hook(Flavour flavour) {
  auto session = std::make_shared<Session>(engine_, flavour);
  cm::ConnectOptions o;
  o.host = "127.0.0.1";
  o.port = hooks_.port();
  o.policy = policy_for(flavour);
  cm::connect(engine_, session->qp(), o, [session](const Error&, const std::shared_ptr<cm::Connection>& connection) {
    session->decided(connection);
  });
  run(std::move(session));
  return hooks_.accept();
}

void RdmaVictim::accept_next(cm::Listener& listener, Flavour flavour) {
  listener.accept([this, &listener, flavour](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
    if (error.code != Errc::kOk) return;
    auto session = std::make_shared<Session>(engine_, flavour);
    request->accept(
        session->qp(),
        {.ird = kDepth, .ord = kDepth, .private_data = session->advert().encode(), .mpa = stream_for(flavour)},
        [session](const Error&, const std::shared_ptr<cm::Connection>& connection) { session->decided(connection); });
    run(std::move(session));
    accept_next(listener, flavour);
  });
}

void RdmaVictim::run(std::shared_ptr<Session> session) {
  ++living_;
  const std::lock_guard lock(mu_);
  threads_.emplace_back([this, s = std::move(session)]() mutable {
    s->serve(stop_);
    while (!stop_ && !s->over()) std::this_thread::sleep_for(1ms);
    s->qp()->abort();
    damage_ += s->damage();
    s.reset();
    --living_;
  });
}

}  // namespace iwarp::hostile
