#include "dropin/verbs/rendezvous.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "dropin/verbs/device.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/lost_peer.h"
#include "dropin/verbs/per_process.h"
#include "dropin/verbs/translate.h"
#include "iwarp/cm/connector.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::dropin {
namespace {

using boost::asio::ip::tcp;
using Kind = RendezvousMessage::Kind;

constexpr std::uint32_t kPortBits = 16;
constexpr std::size_t kMostHeld = 8;  // Requests and knocks of a queue pair that is not in RTR
constexpr std::size_t kMostPending = 1024;
constexpr std::chrono::seconds kConnectTimeout{20};

bool is_smaller(const ibv_gid& gid, std::uint32_t number, const Peer& than) {
  const int order = std::memcmp(gid.raw, than.gid.raw, sizeof gid.raw);
  return order != 0 ? order < 0 : number < than.number;
}

tcp::endpoint endpoint_of(const Peer& peer) {
  return {address_of(peer.gid), static_cast<std::uint16_t>(peer.number & 0xffff)};
}

mpa::Policy policy() {
  mpa::Policy p = startup_policy(settings());
  p.peer_to_peer = true;  // either end may send first
  p.allow_peer_to_peer_fallback = p.allow_revision_1_fallback = false;
  p.ird = p.ord = p.max_ird = kMostReads;
  return p;
}

cm::ConnectOptions options_for(const Peer& peer, const RendezvousMessage& message, Rendezvous::Patience patience) {
  const tcp::endpoint to = endpoint_of(peer);
  cm::ConnectOptions options;
  options.host = to.address().to_string();
  options.port = to.port();
  options.policy = policy();
  options.policy.startup_timeout = patience;
  options.private_data = message.octets();
  options.local = tcp::endpoint(address_of(gid()), 0);  // by which the peer knows this end
  options.connect_timeout = kConnectTimeout;
  return options;
}

// The peer is lost before there was a connection.
void lose(verbs::QueuePair& qp, Errc why) {
  {
    const auto lock = qp.lock();
    if (qp.driver() != nullptr || qp.core().phase() != stream::Phase::kIdle) return;
    qp.core().abort(make_error(why));
  }
  qp.give_up_peer();
}

}  // namespace

boost::asio::ip::address address_of(const ibv_gid& gid) {
  boost::asio::ip::address_v6::bytes_type octets;
  std::memcpy(octets.data(), gid.raw, octets.size());
  boost::asio::ip::address_v6 v6(octets);
  if (v6.is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6);
  if (v6.is_link_local()) v6.scope_id(interface_index());
  return v6;
}

Rendezvous& rendezvous() {
  static PerProcess<Rendezvous> of_this_process;
  return of_this_process.get();
}

// Calls into the layers below, for which no lock is held.
class Rendezvous::Work {
 public:
  Work() = default;
  ~Work() {
    for (const auto& call : calls_) call();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void add(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void reject(const std::shared_ptr<cm::ConnectRequest>& request, Refusal why) {
    if (request != nullptr) add([request, why] { (void)request->reject(octets_of(why)); });
  }

 private:
  std::vector<std::function<void()>> calls_;
};

int Rendezvous::open_port() {
  boost::system::error_code failed;
  tcp::acceptor acceptor(engine().io());
  const tcp::endpoint at(address_of(gid()), 0);
  acceptor.open(at.protocol(), failed);
  if (!failed) acceptor.bind(at, failed);
  if (failed) return failed.value();
  cm::ListenOptions options;
  options.policy = policy();
  options.max_pending = kMostPending;
  auto listener = cm::Listener::listen(engine(), std::move(acceptor), options);
  if (!listener) return to_errno(listener.error().code);
  Port port{.listener = std::move(listener).value(), .number = 0, .taken = {}};
  port.number = port.listener->local().port();
  wait_for_request(*port.listener);
  ports_.push_back(std::move(port));
  return 0;
}

int Rendezvous::take_number(std::uint32_t& number) {
  const std::lock_guard lock(mutex_);
  if (ports_.empty() || ports_.back().taken.all()) {
    // Those that came back, of former ports.
    const auto with_room = std::ranges::find_if(ports_, [](const Port& p) { return !p.taken.all(); });
    if (with_room == ports_.end()) {
      if (const int error = open_port(); error != 0) return error;
    } else {
      std::iter_swap(with_room, ports_.end() - 1);
    }
  }
  Port& port = ports_.back();
  while (port.taken[port.next]) port.next = (port.next + 1) % port.taken.size();
  number = static_cast<std::uint32_t>(port.next) << kPortBits | port.number;
  entries_.try_emplace(number);
  port.taken.set(port.next);
  port.next = (port.next + 1) % port.taken.size();  // what was given back comes again as late as can be
  return 0;
}

void Rendezvous::give_back(std::uint32_t number) {
  reset(number);
  const std::lock_guard lock(mutex_);
  entries_.erase(number);
  for (Port& port : ports_) {
    if (port.number == (number & 0xffff)) port.taken.reset(number >> kPortBits);
  }
}

void Rendezvous::reset(std::uint32_t number) {
  Work work;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return;
  for (const Held& held : at->second.held) work.reject(held.request, Refusal::kNoQueuePair);
  if (at->second.timer) at->second.timer->cancel();  // its handler comes later
  at->second = Entry{};
}

void Rendezvous::begin(std::uint32_t number, const Ends& ends, const Peer& peer) {
  Work work;
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(number);
  entry.ends = ends;
  entry.peer = peer;
  const bool own = ends.sender != ends.receiver;
  entry.connects = own || is_smaller(gid(), number, peer);
  entry.accepts = own || !entry.connects;
  for (Held& held : std::exchange(entry.held, {})) match(number, entry, std::move(held), work);
}

void Rendezvous::ready(std::uint32_t number, std::uint32_t psn, Patience patience) {
  Work work;
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(number);
  if (entry.psn) return;
  entry.psn = psn;
  entry.patience = std::max(patience, kLeastPatience);
  if (entry.connects) {
    connect(number, entry, work);
  } else if (!entry.accepted) {
    knock(number, entry, work);
    limit(number, entry);
  }
}

void Rendezvous::connect(std::uint32_t number, Entry& entry, Work& work) {
  if (entry.connecting) return;
  entry.connecting = true;
  const RendezvousMessage message{.kind = Kind::kConnect,
                                  .from = number,
                                  .to = entry.peer.number,
                                  .from_psn = *entry.psn,
                                  .to_psn = entry.peer.psn};
  work.add([qp = entry.ends.sender, options = options_for(entry.peer, message, entry.patience)] {
    cm::connect(engine(), qp, options, [qp](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
      error ? qp->give_up_peer() : give_up_after_end(connection);
    });
  });
}

// With a queue pair that is of no other use, and reaches no memory: who accepts the knock may do as it likes until it
// hears of the end.
void Rendezvous::knock(std::uint32_t number, Entry& entry, Work& work) {
  const RendezvousMessage message{
      .kind = Kind::kKnock, .from = number, .to = entry.peer.number, .from_psn = *entry.psn, .to_psn = entry.peer.psn};
  work.add([this, number, receiver = entry.ends.receiver, options = options_for(entry.peer, message, entry.patience)] {
    verbs::CompletionQueue none(1);
    const auto qp = std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine().context()),
                                                       verbs::QueuePair::Options{.send_cq = &none, .recv_cq = &none});
    cm::connect(engine(), qp, options,
                [this, number, receiver](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                  if (!error) connection->abort(make_error(Errc::kAborted));
                  const auto how = connection == nullptr ? std::nullopt : connection->disconnected();
                  const auto why = how ? parse_refusal(how->private_data) : std::nullopt;
                  on_knocked(number, receiver, error.code == Errc::kPeerRejected && why == Refusal::kHeard);
                });
  });
}

void Rendezvous::on_knocked(std::uint32_t number, const std::shared_ptr<verbs::QueuePair>& receiver, bool heard) {
  if (heard) return;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(number);
    if (at == entries_.end() || at->second.ends.receiver != receiver || at->second.accepted) return;
  }
  lose(*receiver, Errc::kConnectionLost);
}

void Rendezvous::limit(std::uint32_t number, Entry& entry) {
  if (entry.patience == Patience::max()) return;
  entry.timer = std::make_shared<boost::asio::steady_timer>(engine().io(), entry.patience);
  entry.timer->async_wait([this, number, timer = std::weak_ptr(entry.timer)](boost::system::error_code failed) {
    if (!failed) on_patience_over(number, timer.lock());
  });
}

void Rendezvous::on_patience_over(std::uint32_t number, const std::shared_ptr<boost::asio::steady_timer>& which) {
  if (which == nullptr) return;
  std::shared_ptr<verbs::QueuePair> receiver;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(number);
    if (at == entries_.end() || at->second.timer != which || at->second.accepted) return;
    receiver = at->second.ends.receiver;
  }
  lose(*receiver, Errc::kTimeout);
}

void Rendezvous::wait_for_request(cm::Listener& listener) {
  listener.accept([this, &listener](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
    if (error) return;
    try {
      on_request(std::move(request));
    } catch (const std::bad_alloc&) {  // rejected
    }
    wait_for_request(listener);
  });
}

void Rendezvous::on_request(std::shared_ptr<cm::ConnectRequest> request) {
  Work work;
  const auto message = RendezvousMessage::parse(request->private_data());
  if (!message) return work.reject(request, Refusal::kNoMessage);
  Held held{.message = *message, .request = request, .from = request->remote().address()};
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(message->to);
  if (at == entries_.end()) return work.reject(request, Refusal::kNoQueuePair);
  Entry& entry = at->second;
  const bool in_rtr = entry.ends.receiver != nullptr;
  if (!in_rtr && entry.held.size() >= kMostHeld) return work.reject(request, Refusal::kTooMany);
  in_rtr ? match(message->to, entry, std::move(held), work) : entry.held.push_back(std::move(held));
}

void Rendezvous::match(std::uint32_t number, Entry& entry, Held held, Work& work) {
  const RendezvousMessage& m = held.message;
  const bool is_knock = m.kind == Kind::kKnock;
  const bool fits = m.from == entry.peer.number && m.from_psn == entry.peer.psn &&
                    (!entry.psn || m.to_psn == *entry.psn) && held.from == address_of(entry.peer.gid) &&
                    (is_knock ? entry.connects : entry.accepts && !entry.accepted);
  if (!fits) return work.reject(held.request, Refusal::kOtherPeer);
  if (is_knock) {
    work.reject(held.request, Refusal::kHeard);
    if (!entry.psn) entry.psn = m.to_psn;
    return connect(number, entry, work);
  }
  entry.accepted = true;
  if (entry.timer) entry.timer->cancel();  // its handler comes later
  work.add([request = held.request, qp = entry.ends.receiver] {
    request->accept(qp, {.ird = kMostReads, .ord = kMostReads},
                    [qp](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                      if (!error) return give_up_after_end(connection);
                      lose(*qp, Errc::kConnectionLost);
                      qp->give_up_peer();
                    });
  });
}

}  // namespace iwarp::dropin
