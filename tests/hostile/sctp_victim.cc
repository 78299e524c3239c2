#include "tests/hostile/sctp_victim.h"

#include <algorithm>

#include "iwarp/verbs/memory_region.h"

namespace iwarp::hostile::sctp {
namespace {

constexpr std::size_t kReceives = 4;
constexpr std::uint32_t kSlotBytes = 1024;  // of each

iwarp::sctp::SessionOptions session_for(Flavour flavour) {
  iwarp::sctp::SessionOptions o;
  o.enhanced = flavour != Flavour::kPlain;
  o.offer.depths = {kDepth, kDepth};
  o.offer.max_ird = kDepth;
  o.offer.peer_to_peer = flavour == Flavour::kPeerToPeer;
  return o;
}

}  // namespace

class Victim::Served {
 public:
  explicit Served(cm::Engine& engine) : pd_(engine.context()), cq_(64, &engine) {
    verbs::QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    o.stream.sq_depth = o.stream.rq_depth = 8;
    qp_ = std::make_shared<verbs::QueuePair>(pd_, o);
    auto region = verbs::MemoryRegion::register_memory(pd_, memory_, {.access = ddp::Access::kLocalWrite});
    if (!region) throw std::runtime_error(region.error().why);
    mr_ = std::move(*region);
    for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
  }
  ~Served() { qp_->abort(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  // Until the connection ends, or `stop`.
  void serve(const std::atomic<bool>& stop) {
    while (!stop) {
      verbs::Completion c;
      if (!cq_.wait_for(100ms) || cq_.poll({&c, 1}) == 0) continue;
      if (c.status != Errc::kOk) return;
      if (c.op == verbs::WcOp::kRecv && !qp_->post_send({.wr_id = c.wr_id, .sges = slot(c.wr_id, c.byte_len)})) return;
      if (c.op == verbs::WcOp::kSend) post_receive(c.wr_id);
    }
  }
  // The attempt to connect has ended, well or not.
  void decided(std::shared_ptr<sctp_cm::Connection> connection) {
    const std::lock_guard lock(mu_);
    connection_ = std::move(connection);
    decided_ = true;
  }
  // Nothing will be sent any more.
  [[nodiscard]] bool over() {
    const std::lock_guard lock(mu_);
    return decided_ && (!connection_ || connection_->disconnected());
  }

 private:
  [[nodiscard]] verbs::Sge slot(std::uint64_t i, std::uint32_t octets) {
    return {memory_.data() + i * kSlotBytes, octets, mr_.stag()};
  }
  void post_receive(std::uint64_t i) {
    (void)qp_->post_recv({.wr_id = i, .sges = slot(i, kSlotBytes)});  // flushed after the end
  }

  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  Bytes memory_ = Bytes(kReceives * kSlotBytes);
  std::shared_ptr<verbs::QueuePair> qp_;
  verbs::MemoryRegion mr_;
  std::mutex mu_;
  std::shared_ptr<sctp_cm::Connection> connection_;
  bool decided_ = false;
};

Victim::Victim() {
  auto service = sctp_cm::Service::make(engine_);
  if (!service) throw std::runtime_error(service.error().why);
  service_ = *std::move(service);
  for (const Flavour flavour : {Flavour::kDefault, Flavour::kPlain}) {
    sctp_cm::ListenOptions o;
    o.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
    o.session = session_for(flavour);
    auto listener = service_->listen(o);
    if (!listener) throw std::runtime_error(listener.error().why);
    accept_next(**listener, flavour);
    listeners_[flavour] = *std::move(listener);
  }
}

Victim::~Victim() {
  stop_ = true;
  listeners_.clear();
  left_.clear();
  {
    const std::lock_guard lock(mu_);
    threads_.clear();
  }
  service_.reset();
}

std::uint16_t Victim::port(Flavour flavour) {
  return listeners_.at(flavour)->local().port();
}

void Victim::connect_to(std::uint16_t port, Flavour flavour) {
  auto served = std::make_shared<Served>(engine_);
  sctp_cm::ConnectOptions o;
  o.host = "127.0.0.1";
  o.port = port;
  o.session = session_for(flavour);
  service_->connect(served->qp(), o, [served](const Error&, const std::shared_ptr<sctp_cm::Connection>& connection) {
    served->decided(connection);
  });
  run(std::move(served));
}

void Victim::accept_next(sctp_cm::Listener& listener, Flavour flavour) {
  listener.accept([this, &listener, flavour](const Error& error, std::unique_ptr<sctp_cm::ConnectRequest> request) {
    if (error.code != Errc::kOk) return;
    std::erase_if(left_, [](const auto& one) { return !one->waits(); });
    if (request->private_data() == text(kRejectMe)) {
      (void)request->reject();
    } else if (request->private_data() == text(kLeaveMe)) {
      left_.push_back(std::move(request));
    } else {
      auto served = std::make_shared<Served>(engine_);
      request->accept(served->qp(), {.ird = kDepth, .ord = kDepth, .private_data = {}},
                      [served](const Error&, const std::shared_ptr<sctp_cm::Connection>& connection) {
                        served->decided(connection);
                      });
      run(std::move(served));
    }
    accept_next(listener, flavour);
  });
}

void Victim::run(std::shared_ptr<Served> connection) {
  ++living_;
  const std::lock_guard lock(mu_);
  threads_.emplace_back([this, c = std::move(connection)]() mutable {
    c->serve(stop_);
    while (!stop_ && !c->over()) std::this_thread::sleep_for(1ms);
    c->qp()->abort();
    c.reset();
    --living_;
  });
}

}  // namespace iwarp::hostile::sctp
