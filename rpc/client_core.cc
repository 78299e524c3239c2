// ClientCore: Calls begin and end, and time passes.
#include "iwarp/rpc/client_core.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <chrono>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/delivery.h"
#include "iwarp/verbs/entropy.h"

namespace iwarp::rpc {
namespace {

using Clock = std::chrono::steady_clock;

rpcrdma::BufferPool::Options memory_for(const ClientOptions& options) {
  auto out = rpcrdma::pool_options(options.requester);
  out.call_bytes = out.reply_bytes = options.memory_bytes;
  return out;
}

// What the transport cannot do is not asked for.
ClientOptions within(ClientOptions options, const ClientTransport& transport) {
  options.requester.remote_invalidation = options.requester.remote_invalidation && transport.remote_invalidation();
  return options;
}

// Nobody else's, most likely: servers know a Call that is sent again by its xid.
std::uint32_t first_xid() {
  std::array<std::byte, 4> random{};
  if (!verbs::fill_random(random))
    store_be(std::span(random), static_cast<std::uint32_t>(Clock::now().time_since_epoch().count()));
  return load_be<std::uint32_t>(random);
}

}  // namespace

// --- ClientSession

ClientSession::ClientSession(std::shared_ptr<std::mutex> mu, std::weak_ptr<ClientCore> core,
                             std::unique_ptr<Channel> made, const ClientOptions& options)
    : channel(std::move(made)),
      pool(channel->registrar(), memory_for(options)),
      requester(channel->endpoint(), pool,
                rpcrdma::negotiate(rpcrdma::private_data(options.requester),
                                   rpcrdma::PrivateData::parse(channel->peer_data())),
                options.requester),
      mu_(std::move(mu)),
      core_(std::move(core)) {}

ClientSession::~ClientSession() {
  channel->close();  // nobody uses the memory any more
}

void ClientSession::give_back(rpcrdma::Buffer&& buffer) noexcept {
  bool wanted = false;
  {
    const std::lock_guard lock(*mu_);
    buffer.reset();
    wanted = starved || requester.waits_for_room();
  }
  if (!wanted) return;
  if (const auto core = core_.lock()) core->turn_for_application();
}

bool ClientSession::feed() {
  const std::size_t n = channel->poll(polled_);
  for (std::size_t i = 0; i < n; ++i) requester.on_completion(polled_[i]);
  return n > 0;
}

// --- ClientCore

ClientCore::ClientCore(cm::Engine& engine, std::shared_ptr<ClientTransport> transport, ClientOptions options)
    : io_(engine.io()),
      transport_(std::move(transport)),
      options_(within(std::move(options), *transport_)),
      backward_places_(std::make_shared<Places>(options_.requester.backward_credits)),
      next_xid_(first_xid()),
      timer_(io_) {
  engine.start();
}

void ClientCore::leave_and_deliver(std::unique_lock<std::mutex>& lock, Acts acts) {
  const auto gone = std::exchange(gone_, nullptr);
  lock.unlock();
  deliver(io_, std::move(acts));
}

void ClientCore::leave(std::unique_lock<std::mutex>& lock, Acts acts) {
  const auto gone = std::exchange(gone_, nullptr);
  lock.unlock();
  for (auto& act : acts) boost::asio::post(io_, std::move(act));
}

void ClientCore::turn() {
  Acts acts;
  std::unique_lock lock(*mu_);
  round(Clock::now(), acts);
  leave_and_deliver(lock, std::move(acts));
}

void ClientCore::turn_for_application() {
  Acts acts;
  std::unique_lock lock(*mu_);
  round(Clock::now(), acts);
  leave(lock, std::move(acts));
}

void ClientCore::begin(WholeMessage message, const CallOptions& options, Client::Done done,
                       const std::shared_ptr<cm::Canceller>& cancel) {
  Acts acts;
  const auto fail = [&](const Error& error) { acts.push_back([done = std::move(done), error] { done(error, {}); }); };
  std::unique_lock lock(*mu_);
  const bool unusable = message.size() < 8 || (options.xid && calls_.contains(*options.xid));
  if (closed_ || calls_.size() >= options_.max_calls || unusable) {
    fail(closed_    ? make_error(Errc::kAborted, "the Client is closed")
         : unusable ? make_error(Errc::kInvalidArgument, "no RPC Call, or its xid is outstanding")
                    : make_error(Errc::kQueueFull, "too many Calls wait"));
    return leave(lock, std::move(acts));
  }
  const TimePoint now = Clock::now();
  while (!options.xid && calls_.contains(next_xid_)) ++next_xid_;
  const std::uint32_t xid = options.xid ? *options.xid : next_xid_++;
  store_be(message.bytes().first(4), xid);
  Pending& call = calls_[xid];
  call.message = std::move(message);
  call.deadline = add_saturating(now, options.timeout.value_or(options_.timeout));
  call.done = std::move(done);
  call.order = begun_++;
  // Beside the results: the head of a Reply, and a verifier of 400 octets (RFC 5531 s8.2).
  constexpr std::size_t kHead = 24 + rpcrdma::kMaxAuthBytes;
  call.max_reply = options.max_results > SIZE_MAX - kHead ? SIZE_MAX : options.max_results + kHead;
  call.chosen = options.xid.has_value();
  call.one_way = options.one_way;
  ++stats_.calls;
  to_send_.push_back(xid);
  timer_.at(call.deadline, weak_from_this());
  round(now, acts);
  leave(lock, std::move(acts));
  if (cancel) {
    cancel->set([weak = weak_from_this(), xid] {
      if (const auto self = weak.lock()) self->end(xid, make_error(Errc::kAborted, cm::kCancelledWhy));
    });
  }
}

// The application gives a Call up.
void ClientCore::end(std::uint32_t xid, const Error& error) {
  Acts acts;
  std::unique_lock lock(*mu_);
  finish(xid, error, acts);
  if (session_) round(Clock::now(), acts);  // others may have waited behind it
  leave(lock, std::move(acts));
}

void ClientCore::finish(std::uint32_t xid, const Error& error, Acts& acts) {
  const auto call = calls_.find(xid);
  if (call == calls_.end()) return;
  if (session_ && call->second.sent) give_up(xid, call->second);
  finish(call, error, {}, acts);
}

void ClientCore::finish(Calls::iterator call, const Error& error, Reply reply, Acts& acts) {
  struct Ending {
    Client::Done done;
    Error error;
    Reply reply;
  };
  if (call->second.done) {
    auto ending = std::make_shared<Ending>(Ending{std::move(call->second.done), error, std::move(reply)});
    acts.push_back([ending = std::move(ending)] { ending->done(ending->error, std::move(ending->reply)); });
  }
  calls_.erase(call);
}

void ClientCore::close() {
  Acts acts;
  std::unique_lock lock(*mu_);
  if (!closed_) {
    closed_ = true;
    while (!calls_.empty()) finish(calls_.begin(), make_error(Errc::kAborted, "the Client is closed"), {}, acts);
    to_send_.clear();
    timer_.cancel();
    if (session_) {
      session_->over = true;
      session_->channel->close();
    }
    gone_ = std::move(session_);
    transport_->cancel();
  }
  leave(lock, std::move(acts));
}

Client::Stats ClientCore::stats() const {
  const std::lock_guard lock(*mu_);
  return stats_;
}

void ClientCore::on_timer() {
  Acts acts;
  std::unique_lock lock(*mu_);
  timer_.rung();
  const TimePoint now = Clock::now();
  std::vector<std::uint32_t> late;
  TimePoint next = TimePoint::max();
  for (const auto& [xid, call] : calls_) {
    if (call.deadline <= now) {
      late.push_back(xid);
    } else {
      next = std::min(next, call.deadline);
    }
  }
  const bool no_credit = session_ && session_->requester.waits_for_credit();
  for (const std::uint32_t xid : late) {
    ++stats_.timeouts;
    finish(xid, make_error(Errc::kTimeout, "no Reply in time"), acts);
  }
  // Credits that the server does not give back return with another connection only.
  if (!late.empty() && no_credit) {
    lose(make_error(Errc::kTimeout, "the server answers no Call"), now, acts, End::kOurs);
  }
  if (const auto until = question_deadline(now); until && *until <= now) {
    lose(make_error(Errc::kTimeout, "the server does not say which version of RPC-over-RDMA it speaks"), now, acts,
         End::kUnanswered);
  }
  if (session_ && std::exchange(session_->retries, false)) {
    session_->pool.trim();  // what is idle may be what a limit counts
    session_->pool.wake_waiting();
  }
  timer_.at(next, weak_from_this());
  round(now, acts);
  leave_and_deliver(lock, std::move(acts));
}

}  // namespace iwarp::rpc
