// ClientCore: its connection comes and goes, and what travels on it.
#include <algorithm>
#include <array>
#include <chrono>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/client_core.h"

namespace iwarp::rpc {
namespace {

using rpcrdma::BufferPool;
using rpcrdma::Requester;

// When the system refuses memory, what needs it tries again so often.
constexpr std::chrono::milliseconds kRetryMemory{100};

Error error_of(Requester::Failure why) {
  switch (why) {
    case Requester::Failure::kErrChunk:
      return make_error(Errc::kRecordTooLong, "the Reply is too long for its Call, or the server refuses our chunks");
    case Requester::Failure::kErrVers:
      return make_error(Errc::kUnsupportedRevision, "the server speaks no version of RPC-over-RDMA that will do");
    case Requester::Failure::kBadReply:
      return make_error(Errc::kMalformedRpc, "the Reply does not go with its Call");
    case Requester::Failure::kLocal:
      break;
  }
  return make_error(Errc::kResource,
                    "no memory to be had for the chunks of the Call; a device may want a higher limit of locked memory "
                    "(ulimit -l)");
}

}  // namespace

void ClientCore::round(TimePoint now, Acts& acts) {
  if (closed_) return;
  if (!session_) return connect(now);
  session_->channel->disarm();
  for (;;) {
    bool lost = !take_events(acts);
    if (const auto releases = session_->pool.releases(); releases != session_->releases_seen) {
      session_->releases_seen = releases;
      session_->requester.progress();
    }
    send_waiting(now, acts);
    lost |= session_->outdated;
    lost |= !take_events(acts);
    const auto flushed = session_->channel->flush();
    if (lost || !flushed) {
      lose(make_error(Errc::kConnectionLost), now, acts, session_->outdated ? End::kOurs : End::kLost);
      return connect(now);
    }
    if (session_->feed()) continue;  // such as what was just sent
    session_->channel->arm();
    if (!session_->feed()) break;
  }
  if (const auto until = question_deadline(now)) timer_.at(*until, weak_from_this());
  // No memory need be on its way back then.
  if (const auto shortages = session_->pool.shortages(); shortages != session_->shortages_seen) {
    session_->shortages_seen = shortages;
    session_->retries = true;
    timer_.at(now + kRetryMemory, weak_from_this());
  }
}

ClientOptions ClientCore::options_for(TimePoint now) const {
  ClientOptions out = options_;
  out.requester.extensions = {};  // nobody would take what they bring
  out.requester.highest_version = versions_.highest(out.requester.highest_version, now);
  return out;
}

std::optional<TimePoint> ClientCore::question_deadline(TimePoint now) {
  using State = rpcrdma::VersionNegotiation::State;
  if (!session_ || session_->requester.versions().state() != State::kAsking) return std::nullopt;
  if (!session_->asking_since) session_->asking_since = now;
  return add_saturating(*session_->asking_since, options_.version_timeout);
}

// False: the connection has to be closed.
bool ClientCore::take_events(Acts& acts) {
  while (auto event = session_->requester.poll_event()) {
    if (auto* reply = std::get_if<Requester::ReplyReceived>(&*event)) {
      on_reply(std::move(*reply), acts);
    } else if (const auto* left = std::get_if<Requester::CallLeft>(&*event)) {
      on_left(left->xid, acts);
    } else if (const auto* failed = std::get_if<Requester::CallFailed>(&*event)) {
      if (const auto call = calls_.find(failed->xid); call != calls_.end()) {
        finish(call, error_of(failed->why), {}, acts);
      }
    } else if (auto* backward = std::get_if<Requester::BackwardCall>(&*event)) {
      on_backward(std::move(*backward), acts);
    } else {
      return false;
    }
  }
  return true;
}

void ClientCore::on_reply(Requester::ReplyReceived reply, Acts& acts) {
  session_->heard = true;
  failures_ = 0;
  const auto call = calls_.find(reply.xid);
  if (call == calls_.end()) return;
  ++stats_.replies;
  if (const auto& versions = session_->requester.versions(); !versions.alone()) stats_.version = versions.version();
  if (call->second.one_way) {  // its memory goes now, with the lock
    return finish(call, {}, {}, acts);
  }
  const auto head = rpcrdma::RpcReply::parse(reply.message.bytes());
  if (!head) return finish(call, head.error(), {}, acts);
  finish(call, {}, Reply(HeldBuffer(session_, std::move(reply.message)), *head), acts);
}

void ClientCore::send_waiting(TimePoint now, Acts& acts) {
  session_->starved = false;
  while (!to_send_.empty() && session_->requester.can_take_call()) {
    const std::uint32_t xid = to_send_.front();
    const auto found = calls_.find(xid);
    if (found == calls_.end() || found->second.sent) {
      to_send_.pop_front();
      continue;
    }
    Pending& call = found->second;
    if (const auto taken = take_up(xid, call)) {
      if (!*taken) {
        session_->outdated = true;
        return;
      }
      to_send_.pop_front();
      call.sent = true;
      continue;
    }
    // One in place may have been sent before with another (RFC 8267 s3.1). Nobody reads it now: while it was out no
    // other went out, and a former connection reads nothing since lose() has closed it (Channel::close()).
    store_be(call.message.bytes().first(4), xid);
    auto room = call.message.put_into(session_->pool, BufferPool::Purpose::kCall);
    if (!room) {
      if (call.message.fits(session_->pool, BufferPool::Purpose::kCall)) {
        session_->starved = true;
        return;
      }
      to_send_.pop_front();
      finish(found, make_error(Errc::kRecordTooLong, "the Call is longer than the memory for Calls"), {}, acts);
      continue;
    }
    const bool tell_left = call.one_way && call.done;
    if (const auto taken = session_->requester.call(std::move(*room), now, 0, call.max_reply, tell_left); !taken) {
      if (taken.error().code != Errc::kInvalidArgument) return;
      to_send_.pop_front();
      finish(found, taken.error(), {}, acts);
      continue;
    }
    to_send_.pop_front();
    stats_.sent_again += call.sent_before ? 1 : 0;
    call.sent = true;
  }
}

// One-way Calls are done when they have left: what follows, such as close(), takes nothing back then.
void ClientCore::on_left(std::uint32_t xid, Acts& acts) {
  const auto call = calls_.find(xid);
  if (call == calls_.end() || !call->second.sent) return;
  if (auto done = std::exchange(call->second.done, {})) acts.push_back([done = std::move(done)] { done({}, {}); });
}

// Its memory stays the connection's until the Reply.
void ClientCore::give_up(std::uint32_t xid, const Pending& call) {
  auto& requester = session_->requester;
  requester.cancel(xid);
  auto& given_up = session_->given_up;
  std::erase_if(given_up, [&](const auto& other) { return !requester.outstanding_since(other.first); });
  // Of one that is given up for the second time the Reply is not waited for once more.
  if (!call.chosen || given_up.contains(xid) || !requester.outstanding_since(xid)) return;
  given_up[xid] = {keyed_sum(std::as_const(call.message).bytes().subspan(4)), call.max_reply};
}

// A connection loses nothing, so the server has the Call, and two of one xid cannot be told apart there.
std::optional<bool> ClientCore::take_up(std::uint32_t xid, const Pending& call) {
  if (!session_->requester.outstanding_since(xid)) {
    session_->given_up.erase(xid);
    return std::nullopt;
  }
  const auto former = session_->given_up.find(xid);
  if (former == session_->given_up.end() || !former->second.sum) return false;
  const auto sum = std::exchange(former->second.sum, std::nullopt);  // the next time it is sent anew
  return keyed_sum(std::as_const(call.message).bytes().subspan(4)) == sum &&
         former->second.max_reply == call.max_reply && session_->requester.want_again(xid, call.one_way && call.done);
}

// Until its first Reply a connection carries one Call (RFC 8166 s3.3.3): that had better be none that takes long.
void ClientCore::probe(TimePoint now) {
  const auto first = to_send_.empty() ? calls_.end() : calls_.find(to_send_.front());
  if (first == calls_.end()) return;
  ReadCursor head(std::as_const(first->second.message).bytes());
  head.skip(12);
  const auto program = head.be<std::uint32_t>();
  const auto version = head.be<std::uint32_t>();
  if (head.be<std::uint32_t>() == 0 || !head.ok()) return;  // it is a NULL Call itself
  Octets message = encode_call({program, version, 0}, {}, {}, {});
  while (calls_.contains(next_xid_)) ++next_xid_;
  store_be(MutBytes(message).first(4), next_xid_++);
  auto room = session_->pool.acquire(message.size(), BufferPool::Purpose::kCall);
  if (!room) return;
  std::copy(message.begin(), message.end(), room->bytes().begin());
  (void)session_->requester.call(std::move(*room), now);  // whatever comes of it
}

// The connection is over: what was sent and not answered goes again with the next one, in its order.
void ClientCore::lose(const Error& why, TimePoint now, Acts& acts, End how) {
  session_->over = true;
  session_->channel->close();
  while (session_->feed()) {
  }
  (void)take_events(acts);  // Replies that came before the end
  session_->requester.on_disconnect();
  (void)versions_.learn(session_->requester.versions(), how, session_->asking_since.value_or(now), now);
  // One that was of no use is not made again at once.
  failures_ = session_->heard ? 0 : failures_ + 1;
  gone_ = std::move(session_);
  connect_at_ = now;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> again;
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto it = call++;
    if (it->second.sent && !options_.retransmit) {
      finish(it, why, {}, acts);
      continue;
    }
    it->second.sent_before |= it->second.sent;
    it->second.sent = false;
    again.emplace_back(it->second.order, it->first);
  }
  std::sort(again.begin(), again.end());
  to_send_.clear();
  for (const auto& [order, xid] : again) to_send_.push_back(xid);  // the xid stays. req: RFC8166-4.5.5-1
  if (failures_ > 0) not_reached(why, now, acts);
}

// Another attempt has failed. req: RFC8166-4.5.5-1
void ClientCore::not_reached(const Error& why, TimePoint now, Acts& acts) {
  const auto pause = options_.first_pause * (1u << std::min(failures_ > 0 ? failures_ - 1 : 0, 16u));
  connect_at_ = now + std::min(pause, options_.longest_pause);
  if (options_.retransmit && (reached_ || options_.patient)) return;
  while (!calls_.empty()) finish(calls_.begin(), why, {}, acts);
  to_send_.clear();
}

void ClientCore::connect(TimePoint now) {
  if (connecting_ || calls_.empty()) return;
  if (now < connect_at_) return timer_.at(connect_at_, weak_from_this());
  connecting_ = true;
  const auto announce = rpcrdma::private_data(options_.requester).encode();
  transport_->connect(announce, [weak = weak_from_this()](const Error& error, std::unique_ptr<Channel> channel) {
    if (const auto self = weak.lock()) self->on_connected(error, std::move(channel));
  });
}

void ClientCore::on_connected(const Error& error, std::unique_ptr<Channel> channel) {
  Acts acts;
  std::unique_lock lock(*mu_);
  connecting_ = false;
  const TimePoint now = std::chrono::steady_clock::now();
  if (!closed_ && !error) {
    session_ = std::make_shared<ClientSession>(mu_, weak_from_this(), std::move(channel), options_for(now));
    session_->channel->set_wake([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->turn();
    });
    reached_ = true;
    ++stats_.connections;
    stats_.version = 0;
    // Receives anew. req: RFC8167-4.3.1-3
    if (const auto started = session_->requester.start(); started) {
      probe(now);
    } else {
      lose(started.error(), now, acts);
    }
  } else if (!closed_) {
    ++failures_;
    not_reached(error, now, acts);
  }
  round(now, acts);
  leave_and_deliver(lock, std::move(acts));
}

}  // namespace iwarp::rpc
