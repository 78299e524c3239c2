// Numbers and their ports, and the Requests that come.
#include "dropin/verbs/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dropin/verbs/device.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/per_process.h"
#include "dropin/verbs/rendezvous_work.h"
#include "dropin/verbs/translate.h"
#include "iwarp/cm/socket_options.h"

namespace iwarp::dropin {
namespace {

using boost::asio::ip::tcp;
using Kind = RendezvousMessage::Kind;

constexpr std::uint32_t kPortBits = 16;
// Undecided Requests of a port, those that are held among them: there has to be room for others.
constexpr std::size_t kMostPending = 1024;
static_assert(Rendezvous::kMostHeldOfAll < kMostPending);

bool is_smaller(const ibv_gid& gid, std::uint32_t number, const Peer& than) {
  const int order = std::memcmp(gid.raw, than.gid.raw, sizeof gid.raw);
  return order != 0 ? order < 0 : number < than.number;
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

mpa::Policy rendezvous_policy() {
  mpa::Policy p = startup_policy(settings());
  p.peer_to_peer = true;  // either end may send first
  p.allow_peer_to_peer_fallback = p.allow_revision_1_fallback = false;
  p.ird = p.ord = p.max_ird = kMostReads;
  return p;
}

Rendezvous& rendezvous() {
  static PerProcess<Rendezvous> of_this_process;
  return of_this_process.get();
}

int Rendezvous::open_port() {
  boost::system::error_code failed;
  tcp::acceptor acceptor(engine().io());
  const tcp::endpoint at(address_of(gid()), 0);
  cm::open_tcp(acceptor, at.protocol(), failed);
  if (!failed) acceptor.bind(at, failed);
  if (failed) return failed.value();
  cm::ListenOptions options;
  options.policy = rendezvous_policy();
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

void Rendezvous::give_back(std::uint32_t number) noexcept {
  reset(number);
  const std::lock_guard lock(mutex_);
  entries_.erase(number);
  for (Port& port : ports_) {
    if (port.number == (number & 0xffff)) port.taken.reset(number >> kPortBits);
  }
}

void Rendezvous::reset(std::uint32_t number) noexcept {
  RendezvousMessage message;
  boost::asio::ip::address from;
  for (;;) {  // what is refused goes without the lock
    Entry gone;
    std::shared_ptr<cm::ConnectRequest> refused;
    {
      const std::lock_guard lock(mutex_);
      const auto at = entries_.find(number);
      if (at == entries_.end()) return;
      at->second.knock.reset();
      at->second.limit.reset();
      gone = std::exchange(at->second, Entry{});
      refused = take_held(number, message, from);
    }
    if (refused == nullptr) return;
    quietly([&] { (void)refused->reject(octets_of(Refusal::kNoQueuePair)); });
  }
}

void Rendezvous::leave_to_rdma_cm(std::uint32_t number) noexcept {
  reset(number);
  const std::lock_guard lock(mutex_);
  if (const auto at = entries_.find(number); at != entries_.end()) at->second.of_rdma_cm = true;
}

void Rendezvous::begin(std::uint32_t number, const Ends& ends, const Peer& peer) {
  Work work;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(number);
    entry.ticket = ++tickets_;
    entry.of_rdma_cm = false;
    entry.ends = ends;
    entry.peer = peer;
    const bool own = ends.sender != ends.receiver;
    entry.connects = own || is_smaller(gid(), number, peer);
    entry.accepts = own || !entry.connects;
    RendezvousMessage message;
    boost::asio::ip::address from;
    while (const auto request = take_held(number, message, from)) match(number, entry, message, request, from, work);
  }
  work.run();
}

Rendezvous::Entry* Rendezvous::current(std::uint32_t number, Ticket ticket) {
  const auto at = entries_.find(number);
  return at == entries_.end() || at->second.ticket != ticket ? nullptr : &at->second;
}

void Rendezvous::wait_for_request(cm::Listener& listener) {
  listener.accept([this, &listener](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
    if (error) return;
    quietly([&] { on_request(std::move(request)); });  // else it is rejected
    quietly([&] { wait_for_request(listener); });
  });
}

void Rendezvous::on_request(const std::shared_ptr<cm::ConnectRequest>& request) {
  Work work;
  const auto message = RendezvousMessage::parse(request->private_data());
  const auto from = request->remote().address();
  if (message) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(message->to);
    if (at == entries_.end() || at->second.of_rdma_cm) {
      work.reject(request, Refusal::kNoQueuePair);
    } else if (at->second.ends.receiver != nullptr) {
      match(message->to, at->second, *message, request, from, work);
    } else {
      hold({.message = *message, .request = request, .from = from, .expiry = {}}, work);
    }
  } else {
    work.reject(request, Refusal::kNoMessage);
  }
  work.run();
}

void Rendezvous::hold(Held held, Work& work) {
  const auto is_the_same = [&](const Held& h) {
    return h.message.to == held.message.to && h.message.from == held.message.from && h.from == held.from;
  };
  // Whoever comes again has given up what came before.
  if (const auto before = std::ranges::find_if(held_, is_the_same); before != held_.end()) {
    work.reject(before->request, Refusal::kTooMany);
    held_.erase(before);
  }
  const auto of_this = std::ranges::count(held_, held.message.to, [](const Held& h) { return h.message.to; });
  if (static_cast<std::size_t>(of_this) >= kMostHeld || held_.size() >= kMostHeldOfAll)
    return work.reject(held.request, Refusal::kTooMany);
  held.ticket = ++tickets_;
  held.expiry = std::make_unique<boost::asio::steady_timer>(engine().io(), kHeldFor);
  held.expiry->async_wait([this, ticket = held.ticket](boost::system::error_code failed) {
    if (!failed) quietly([&] { on_expired(ticket); });
  });
  held_.push_back(std::move(held));
}

void Rendezvous::on_expired(Ticket ticket) {
  std::shared_ptr<cm::ConnectRequest> request;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(held_, ticket, &Held::ticket);
    if (at == held_.end()) return;
    request = std::move(at->request);
    held_.erase(at);
  }
  (void)request->reject(octets_of(Refusal::kTooMany));
}

std::shared_ptr<cm::ConnectRequest> Rendezvous::take_held(std::uint32_t number, RendezvousMessage& message,
                                                          boost::asio::ip::address& from) {
  const auto at = std::ranges::find_if(held_, [&](const Held& h) { return h.message.to == number; });
  if (at == held_.end()) return nullptr;
  message = at->message;
  from = at->from;
  auto request = std::move(at->request);
  held_.erase(at);
  return request;
}

void Rendezvous::match(std::uint32_t number, Entry& entry, const RendezvousMessage& m,
                       const std::shared_ptr<cm::ConnectRequest>& request, const boost::asio::ip::address& from,
                       Work& work) {
  const bool is_knock = m.kind == Kind::kKnock;
  const bool fits = !entry.lost && m.from == entry.peer.number && m.from_psn == entry.peer.psn &&
                    (!entry.psn || m.to_psn == *entry.psn) && from == address_of(entry.peer.gid) &&
                    (is_knock ? entry.connects : entry.accepts && !entry.accepted);
  if (!fits) return work.reject(request, Refusal::kOtherPeer);
  if (is_knock) {
    work.reject(request, Refusal::kHeard);
    entry.heard_psn = m.to_psn;
    return connect(number, entry, work);
  }
  work.add([this, number, ticket = entry.ticket, request, qp = entry.ends.receiver] {
    request->accept(qp, {.ird = kMostReads, .ord = kMostReads, .mpa = stream_options(settings())},
                    [this, number, ticket, qp](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                      quietly([&] { on_accepted(number, ticket, qp, error, connection); });
                    });
  });
  entry.accepted = true;
  entry.called_psn = m.to_psn;
  entry.knock.reset();
  entry.limit.reset();
}

}  // namespace iwarp::dropin
