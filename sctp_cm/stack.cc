#include "iwarp/sctp_cm/stack.h"

#include <usrsctp.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <random>
#include <utility>

namespace iwarp::sctp_cm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBusyTick{10};  // the grain of usrsctp's timers
constexpr std::chrono::milliseconds kIdleTick{1000};
constexpr std::uint32_t kChunksOnQueue = 8192;  // of a direction of an association, in place of 512
constexpr std::uint16_t kFirstOwnPort = 49152;  // dynamic ports, RFC 6335
constexpr int kFinishSteps = 3000;

}  // namespace

Stack* Stack::only_ = nullptr;

Result<void> validate(const TransportOptions& o) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  using std::chrono::milliseconds;
  const auto within = [](milliseconds t, int low, int high) {
    return t >= milliseconds(low) && t <= milliseconds(high);
  };
  if (o.streams < 1 || o.streams > 1024) return invalid("TransportOptions::streams must be 1 to 1024");
  if (o.packet_bytes < 576 || o.packet_bytes > kMaxPacketBytes)
    return invalid("TransportOptions::packet_bytes must be 576 to 65507");
  if (o.buffer_bytes < 65536 || o.buffer_bytes > (std::uint32_t{64} << 20))
    return invalid("TransportOptions::buffer_bytes must be 64 KiB to 64 MiB");
  if (!within(o.connect_timeout, 1, 600000)) return invalid("TransportOptions::connect_timeout must be 1 to 600000 ms");
  if (!within(o.rto_min, 10, 60000)) return invalid("TransportOptions::rto_min must be 10 to 60000 ms");
  if (!within(o.rto_max, 10, 60000) || o.rto_max < o.rto_min)
    return invalid("TransportOptions::rto_max must be rto_min to 60000 ms");
  if (o.max_retransmissions < 1 || o.max_retransmissions > 100)
    return invalid("TransportOptions::max_retransmissions must be 1 to 100");
  if (!within(o.heartbeat, 100, 3600000)) return invalid("TransportOptions::heartbeat must be 100 to 3600000 ms");
  return {};
}

Stack::Stack(boost::asio::io_context& io, const StackOptions& options)
    : io_(io),
      options_(options),
      timer_(io),
      ticked_(Clock::now()),
      scratch_(kMaxMessageBytes),
      ports_(std::random_device{}()),
      peers_(options.max_asking, options.max_associations + options.max_asking),
      blue_allowance_(options.out_of_the_blue),
      blue_since_(ticked_) {}

Result<std::unique_ptr<Stack>> Stack::make(boost::asio::io_context& io, const StackOptions& options) {
  if (options.max_associations == 0 || options.max_asking == 0)
    return make_error(Errc::kInvalidArgument, "StackOptions::max_associations and max_asking must be 1 or more");
  if (only_ != nullptr)
    return make_error(Errc::kResource,
                      "this process has an SCTP stack already: usrsctp keeps its state in global "
                      "variables, so let all associations share that one");
  std::unique_ptr<Stack> stack(new Stack(io, options));
  only_ = stack.get();
  usrsctp_init_nothreads(0, &Stack::on_output, nullptr);
  usrsctp_enable_crc32c_offload();
  // What DDP does not need, peers cannot reach. ASCONF first: it needs AUTH.
  usrsctp_sysctl_set_sctp_asconf_enable(0);
  usrsctp_sysctl_set_sctp_auth_enable(0);
  usrsctp_sysctl_set_sctp_auto_asconf(0);
  usrsctp_sysctl_set_sctp_reconfig_enable(0);
  usrsctp_sysctl_set_sctp_pr_enable(0);
  usrsctp_sysctl_set_sctp_nrsack_enable(0);
  usrsctp_sysctl_set_sctp_pktdrop_enable(0);
  usrsctp_sysctl_set_sctp_ecn_enable(0);
  usrsctp_sysctl_set_sctp_max_chunks_on_queue(kChunksOnQueue);
  stack->use(kOutOfTheBlue);
  return stack;
}

Stack::~Stack() {
  *alive_ = false;
  if (!process_.alive()) return;  // a forked child: usrsctp's locks may be held by threads that it does not have
  for (auto& [handle, held] : associations_) held.association->orphan();
  associations_.clear();
  for (Port& p : udp_) p.port->flush();  // the ABORTs
  int steps = 0;
  while (usrsctp_finish() != 0 && ++steps < kFinishSteps) usrsctp_handle_timers(10);
  if (steps < kFinishSteps) only_ = nullptr;  // else something of it is left, and a second one would meet it
}

Result<UdpPort*> Stack::open(const udp::endpoint& at, bool connects) {
  udp_.emplace_back();
  Port& entry = udp_.back();
  UdpPort::Handlers handlers;
  handlers.packet = [this, &entry](const udp::endpoint& from, const UdpPort::Address& own, ConstBytes packet) {
    input(*entry.port, from, own, packet);
  };
  handlers.batch = [this] { settle(); };
  if (connects) {
    handlers.undelivered = [this, &entry](const udp::endpoint& to, ConstBytes packet, int error) {
      on_undelivered(*entry.port, to, packet, error);
    };
  }
  auto port = UdpPort::open(io_, at, std::move(handlers), options_.fate);
  if (!port) {
    udp_.pop_back();
    return port.error();
  }
  entry.port = *std::move(port);
  return entry.port.get();
}

Result<std::unique_ptr<AssociationListener>> Stack::listen(const udp::endpoint& at, std::uint16_t sctp_port,
                                                           const TransportOptions& options,
                                                           AssociationListener::Handler handler) {
  if (!process_.alive()) return make_error(Errc::kInvalidArgument, "an SCTP stack is of no use after fork()");
  if (const auto valid = validate(options); !valid) return valid.error();
  auto socket = Socket::make(options);
  if (!socket) return socket.error();
  // Where a listener has gone, its associations may go on: then the UDP port is there still.
  auto entry = std::ranges::find_if(
      udp_, [&](const Port& p) { return p.listener == nullptr && !connects(p.port.get()) && p.port->local() == at; });
  if (entry == udp_.end()) {
    if (const auto port = open(at, false); !port) return port.error();
    entry = std::prev(udp_.end());
  }
  if (sctp_port == 0) sctp_port = entry->port->local().port();
  if (const auto listens = socket->listen(sctp_port); !listens) {
    arm();  // the UDP port is closed where nobody needs it
    return listens.error();
  }
  std::unique_ptr<AssociationListener> listener(
      new AssociationListener(*this, *entry->port, sctp_port, *std::move(socket), std::move(handler)));
  entry->listener = listener.get();
  arm();
  return listener;
}

AssociationListener::~AssociationListener() {
  stack_->remove(*this);
}

void Stack::remove(AssociationListener& listener) {
  listener.socket_.close();
  if (!process_.alive()) return;
  peers_.drop_asking(listener.port_);
  for (auto& [handle, held] : associations_) {
    if (held.from == &listener) held.from = nullptr;
  }
  for (Port& p : udp_) {
    if (p.listener == &listener) p.listener = nullptr;
  }
}

Result<std::shared_ptr<Association>> Stack::connect(const udp::endpoint& to, std::uint16_t sctp_port,
                                                    const TransportOptions& options, TransportUser& user,
                                                    const std::optional<boost::asio::ip::address>& from) {
  if (!process_.alive()) return make_error(Errc::kInvalidArgument, "an SCTP stack is of no use after fork()");
  if (const auto valid = validate(options); !valid) return valid.error();
  if (sctp_port == 0 || to.port() == 0 || to.address().is_unspecified())
    return make_error(Errc::kInvalidArgument, "an SCTP peer has an address, a UDP port and an SCTP port");
  if (associations_.size() >= options_.max_associations)
    return make_error(Errc::kResource, "no more SCTP associations: StackOptions::max_associations");
  if (from && from->is_v6() != to.address().is_v6())
    return make_error(Errc::kInvalidArgument, "the peer and the address to connect from are of different families");
  const auto own = from.value_or(udp::endpoint(to.protocol(), 0).address());
  auto out = out_.find(own);
  if (out == out_.end()) {
    const auto port = open({own, 0}, true);
    if (!port) return port.error();
    out = out_.emplace(own, *port).first;
  }
  UdpPort* const by = out->second;
  auto socket = Socket::make(options);
  if (!socket) return socket.error();
  Peer peer{by, to, sctp_port, 0, {}};
  peer.own_port = peers_.free_own_port(peer, kFirstOwnPort, static_cast<std::uint32_t>(ports_()),
                                       [this](std::uint16_t port) { return listens(port); });
  if (peer.own_port == 0) return make_error(Errc::kResource, "no SCTP port of this end is left for that peer");
  const TimePoint now = Clock::now();
  const Handle handle = peers_.settle(peer, now);
  use(handle);
  auto association = std::make_shared<Association>(*this, *std::move(socket), handle, &user,
                                                   add_saturating(now, options.connect_timeout));
  associations_.emplace(handle, Held{association, nullptr, false});
  association->listen_to(&Stack::on_association);
  if (const auto begun = association->begin(peer.own_port, sctp_port); !begun) {
    associations_.erase(handle);
    peers_.forget(handle, now);
    return begun.error();
  }
  ++counters_.connected;
  owe();
  arm();
  return association;
}

bool Stack::connects(const UdpPort* port) const {
  return std::ranges::any_of(out_, [port](const auto& entry) { return entry.second == port; });
}

void Stack::mark(Association& association) {
  if (association.marked) return;
  association.marked = true;
  marked_.push_back(association.weak_from_this());
  owe();
}

void Stack::on_association(struct socket*, void* who, int) {
  auto& association = *static_cast<Association*>(who);
  if (only_ != nullptr) only_->mark(association);
}

// Something is to be done, soon and not within the call that has caused it.
void Stack::owe() {
  if (settling_ || owes_) return;
  owes_ = true;
  boost::asio::post(io_, [this, alive = alive_] {
    if (!*alive) return;
    owes_ = false;
    settle();
  });
}

// After each input: what associations have to tell, then the packets that came of it.
void Stack::settle() {
  if (settling_) return;
  settling_ = true;
  const std::shared_ptr<bool> alive = alive_;
  bool more = false;
  for (const auto& weak : std::exchange(marked_, {})) {
    const std::shared_ptr<Association> association = weak.lock();
    if (!association) continue;
    association->marked = false;
    const bool again = association->service();
    if (!*alive) return;
    if (association->over()) {
      // Its handle may be that of another by now.
      const auto it = associations_.find(association->handle());
      if (it == associations_.end() || it->second.association != association) continue;
      associations_.erase(it);
      peers_.forget(association->handle(), Clock::now());
    } else if (again) {
      mark(*association);
    }
  }
  for (Port& p : udp_) p.port->flush();
  more = !marked_.empty();  // what cannot be delivered marks, too
  settling_ = false;
  if (more) owe();
  arm();
}

void Stack::on_up(Association& association) {
  const auto it = associations_.find(association.handle());
  if (it == associations_.end() || !it->second.accepted) return;
  AssociationListener* from = std::exchange(it->second.from, nullptr);
  it->second.accepted = false;
  if (from == nullptr) return association.abort("nobody listens any more");
  ++counters_.accepted;
  const AssociationListener::Handler handler = from->handler_;  // the listener may go in it
  handler(it->second.association);
  if (!association.has_user()) association.abort("not taken");
}

void Stack::arm() {
  const bool busy = !associations_.empty() || peers_.asking() > 0;
  const TimePoint at = ticked_ + (busy ? kBusyTick : kIdleTick);
  if (armed_ && *armed_ <= at) return;
  armed_ = at;
  timer_.expires_at(at);
  timer_.async_wait([this, alive = alive_](const boost::system::error_code& error) {
    if (!*alive || error) return;
    armed_.reset();
    tick();
  });
}

void Stack::close_unused() {
  std::erase_if(out_, [this](const auto& entry) {  // that of any address is used again and again
    return !entry.first.is_unspecified() && entry.second->waiting() == 0 && !peers_.has_any(entry.second);
  });
  std::erase_if(udp_, [this](const Port& p) {
    return p.listener == nullptr && !connects(p.port.get()) && p.port->waiting() == 0 && !peers_.has_any(p.port.get());
  });
}

void Stack::tick() {
  const TimePoint now = Clock::now();
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - ticked_);
  ticked_ += passed;
  usrsctp_handle_timers(static_cast<std::uint32_t>(passed.count()));
  for (auto& [handle, held] : associations_) {
    const auto by = held.association->connect_by();
    if (!by || now < *by) continue;
    held.association->give_up();
  }
  for (Port& p : udp_) p.port->tick();
  peers_.expire(now);
  close_unused();
  settle();
}

}  // namespace iwarp::sctp_cm
