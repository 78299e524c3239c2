#include "tests/hostile/rpc_victim.h"

#include <algorithm>

#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/verbs_endpoint.h"
#include "tests/gateway/rpc_server.h"
#include "tests/hostile/rpc_talk.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::hostile {
namespace {

using namespace std::chrono_literals;
namespace samples = rpcrdma::test;

constexpr std::size_t kSends = 64;
constexpr std::size_t kReceives = 32;
constexpr std::uint16_t kOrd = 8;
constexpr std::uint32_t kCredits = 8;

std::uint32_t version_of(Flavour flavour) {
  return flavour == Flavour::kVersion2 ? rpcrdma::kVersion2 : rpcrdma::kVersion1;
}
rpcrdma::ResponderOptions responder_options(Flavour flavour) {
  rpcrdma::ResponderOptions o;
  o.highest_version = version_of(flavour);
  o.draft_2005.enabled = flavour == Flavour::kDraft2005 || flavour == Flavour::kImpatient2005;
  o.draft_2005.align = 512;
  if (flavour == Flavour::kImpatient2005) o.draft_2005.done.patience = 50ms;
  o.credits = kCredits;
  return o;
}
rpcrdma::RequesterOptions requester_options(Flavour flavour) {
  rpcrdma::RequesterOptions o;
  o.highest_version = version_of(flavour);
  o.draft_2005.enabled = flavour == Flavour::kDraft2005;
  o.backward_chunks = flavour == Flavour::kBackwardChunks;
  o.credits = kCredits;
  o.backward_credits = 2;
  o.max_reply_bytes = 65536;
  return o;
}

template <std::size_t N>
std::vector<std::byte> as_vector(const std::array<std::byte, N>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// One connection of either kind: what it posts to, its memory, and the loop that feeds completions to `Core`.
template <class Core, class CoreOptions>
class Session {
 public:
  Session(cm::Engine& engine, const rpcrdma::ConnectionLimits& limits, const CoreOptions& options)
      : cq_(kSends + kReceives, &engine),
        qp_(make_qp(engine)),
        endpoint_(qp_, {.max_outstanding_reads = kOrd, .send_queue_depth = kSends, .receive_queue_depth = kReceives}),
        pool_(endpoint_, rpcrdma::pool_options(options)),
        core_(endpoint_, pool_, limits, options) {
    if (!core_.start() || !endpoint_.flush()) throw std::runtime_error("no receives could be posted");
  }
  ~Session() { qp_->abort(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  [[nodiscard]] Core& core() { return core_; }
  [[nodiscard]] rpcrdma::BufferPool& pool() { return pool_; }

  void decided(std::shared_ptr<cm::Connection> connection) {
    const std::lock_guard lock(mu_);
    connection_ = std::move(connection);
    decided_ = true;
  }
  [[nodiscard]] bool established() {
    const std::lock_guard lock(mu_);
    return decided_ && connection_;
  }

  // Until the connection is over. `handle` gets each event but MustClose, `idle` is called between them.
  template <class Handle, class Idle>
  void serve(const std::atomic<bool>& stop, Handle handle, Idle idle) {
    while (!stop && !over()) {
      verbs::Completion c;
      if (cq_.wait_for(2ms)) {
        while (cq_.poll({&c, 1}) == 1) core_.on_completion(rpcrdma::VerbsEndpoint::translate(c));
      }
      while (auto event = core_.poll_event()) {
        if (const auto* must_close = std::get_if<typename Core::MustClose>(&*event)) {
          close(must_close->error);
        } else {
          handle(*event);
        }
      }
      core_.progress();
      idle();
      if (auto ok = endpoint_.flush(); !ok) close(ok.error());
    }
    qp_->abort();
    verbs::Completion c;
    while (cq_.poll({&c, 1}) == 1) core_.on_completion(rpcrdma::VerbsEndpoint::translate(c));
    while (core_.poll_event()) {
    }
  }

 private:
  std::shared_ptr<verbs::QueuePair> make_qp(cm::Engine& engine) {
    verbs::QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    o.stream.sq_depth = kSends;
    o.stream.rq_depth = kReceives;
    return std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine.context()), o);
  }
  [[nodiscard]] bool over() {
    const std::lock_guard lock(mu_);
    return decided_ && (!connection_ || connection_->disconnected());
  }
  // Flushed work only says that the connection is ending, in its own way.
  void close(const Error& error) {
    const std::lock_guard lock(mu_);
    if (error.code != Errc::kFlushed && connection_) connection_->abort(error);
  }

  verbs::CompletionQueue cq_;
  std::shared_ptr<verbs::QueuePair> qp_;
  rpcrdma::VerbsEndpoint endpoint_;
  rpcrdma::BufferPool pool_;
  Core core_;
  std::mutex mu_;
  std::shared_ptr<cm::Connection> connection_;
  bool decided_ = false;
};

using ResponderSession = Session<rpcrdma::Responder, rpcrdma::ResponderOptions>;
using RequesterSession = Session<rpcrdma::Requester, rpcrdma::RequesterOptions>;

void respond(ResponderSession& session, const std::atomic<bool>& stop) {
  const auto handle = [&](rpcrdma::Responder::Event& event) {
    auto* call = std::get_if<rpcrdma::Responder::CallReceived>(&event);
    if (call == nullptr) return;
    const MutBytes bytes = call->message.bytes();
    const auto answer = gateway::test::serve({bytes.begin(), bytes.end()});
    const auto now = std::chrono::steady_clock::now();
    if (answer.empty() || !session.core().reply(call->token, samples::to_buffer(session.pool(), answer), now))
      session.core().abandon(call->token);
  };
  session.serve(stop, handle, [&] { session.core().on_deadline(std::chrono::steady_clock::now()); });
}

void request(RequesterSession& session, const std::atomic<bool>& stop) {
  std::uint32_t xid = 0;
  bool waiting = false;
  const auto handle = [&](rpcrdma::Requester::Event& event) {
    if (std::holds_alternative<rpcrdma::Requester::ReplyReceived>(event) ||
        std::holds_alternative<rpcrdma::Requester::CallFailed>(event)) {
      waiting = false;
    }
  };
  const auto call_next = [&] {
    if (waiting || !session.established()) return;
    ++xid;
    const auto call = requester_call(xid);
    waiting =
        session.core().call(samples::to_buffer(session.pool(), call, rpcrdma::BufferPool::Purpose::kCall), {}).ok();
  };
  session.serve(stop, handle, call_next);
}

}  // namespace

RpcVictim::RpcVictim() {
  cm::ListenOptions o;
  o.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
  for (const Flavour flavour : {Flavour::kDefault, Flavour::kVersion2, Flavour::kDraft2005, Flavour::kImpatient2005}) {
    auto listener = cm::Listener::listen(engine_, o);
    if (!listener) throw std::runtime_error(listener.error().why);
    listeners_[flavour] = std::move(*listener);
    accept_next(flavour);
  }
}

RpcVictim::~RpcVictim() {
  stop_ = true;
  listeners_.clear();
  const std::lock_guard lock(mu_);
  threads_.clear();
}

test::RawTcp RpcVictim::dial(Flavour flavour) {
  const auto listener = listeners_.find(flavour);
  if (listener == listeners_.end()) throw Inapplicable("no listener of that flavour");
  return test::RawTcp::connect(listener->second->local().port());
}

void RpcVictim::accept_next(Flavour flavour) {
  listeners_.at(flavour)->accept([this, flavour](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
    if (error.code != Errc::kOk) return;
    const auto options = responder_options(flavour);
    const auto mine = rpcrdma::private_data(options);
    const auto limits = rpcrdma::negotiate(rpcrdma::PrivateData::parse(request->private_data()), mine);
    auto session = std::make_shared<ResponderSession>(engine_, limits, options);
    request->accept(
        session->qp(), {kOrd, kOrd, as_vector(mine.encode())},
        [session](const Error&, const std::shared_ptr<cm::Connection>& connection) { session->decided(connection); });
    start([this, session] { respond(*session, stop_); });
    accept_next(flavour);
  });
}

test::RawTcp RpcVictim::hook(Flavour flavour) {
  const auto kinds = {Flavour::kDefault, Flavour::kVersion2, Flavour::kDraft2005, Flavour::kBackwardChunks};
  if (std::find(kinds.begin(), kinds.end(), flavour) == kinds.end()) throw Inapplicable("no requester of that flavour");
  const auto options = requester_options(flavour);
  // The peer's thresholds are known before its Reply: every script announces these.
  const auto mine = rpcrdma::private_data(options);
  auto session = std::make_shared<RequesterSession>(
      engine_, rpcrdma::negotiate(mine, rpcrdma::PrivateData{true, 4096, 4096}), options);
  cm::ConnectOptions o;
  o.host = "127.0.0.1";
  o.port = hooks_.port();
  o.private_data = as_vector(mine.encode());
  cm::connect(engine_, session->qp(), o, [session](const Error&, const std::shared_ptr<cm::Connection>& connection) {
    session->decided(connection);
  });
  start([this, session] { request(*session, stop_); });
  return hooks_.accept();
}

void RpcVictim::start(std::function<void()> session) {
  ++living_;
  const std::lock_guard lock(mu_);
  threads_.emplace_back([this, run = std::move(session)]() mutable {
    run();
    run = nullptr;
    --living_;
  });
}

}  // namespace iwarp::hostile
