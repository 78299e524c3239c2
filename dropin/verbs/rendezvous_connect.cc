// What this end does about its peer: Requests, knocks, and what becomes of them.
#include <algorithm>
#include <utility>

#include "dropin/verbs/device.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/lost_peer.h"
#include "dropin/verbs/rendezvous_work.h"
#include "dropin/verbs/translate.h"
#include "iwarp/cm/connector.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::dropin {
namespace {

using boost::asio::ip::tcp;
using Kind = RendezvousMessage::Kind;
using Clock = std::chrono::steady_clock;

cm::ConnectOptions options_for(const Peer& peer, const RendezvousMessage& message, Rendezvous::Patience patience) {
  const tcp::endpoint to(address_of(peer.gid), static_cast<std::uint16_t>(peer.number & 0xffff));
  cm::ConnectOptions options;
  options.host = to.address().to_string();
  options.port = to.port();
  options.policy = rendezvous_policy();
  options.mpa = stream_options(settings());
  options.policy.startup_timeout = patience;
  options.private_data = message.octets();
  options.local = tcp::endpoint(address_of(gid()), 0);  // by which the peer knows this end
  options.connect_timeout = patience;
  return options;
}

// A queue pair that is of no other use, and reaches no memory: who accepts the knock may do as it likes until it hears
// of the end.
std::shared_ptr<verbs::QueuePair> make_knocker() {
  verbs::CompletionQueue none(1);
  verbs::QueuePair::Options options{.send_cq = &none, .recv_cq = &none};
  options.stream.sq_depth = options.stream.rq_depth = 1;
  return std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine().context()), options);
}

// The private data of a rejection.
std::vector<std::byte> answer_of(const std::shared_ptr<cm::Connection>& connection) {
  if (connection == nullptr) return {};
  auto how = connection->disconnected();
  return how ? std::move(how->private_data) : std::vector<std::byte>();
}

}  // namespace

void lose(verbs::QueuePair& qp, Errc why) {
  {
    const auto lock = qp.lock();
    if (qp.driver() != nullptr || qp.endpoint().phase() != endpoint::Phase::kIdle) return;
    qp.endpoint().end(endpoint::Input::kAbort, make_error(why));
  }
  qp.give_up_peer();
}

void Rendezvous::ready(std::uint32_t number, std::uint32_t psn, Patience patience) {
  Work work;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(number);
    if (entry.psn) return;
    entry.patience = std::max(patience, kLeastPatience);
    entry.since = Clock::now();
    if (!entry.connects && !entry.accepted) {
      limit(number, entry);
      knock_after(number, entry, kBeforeKnock);
    }
    entry.psn = psn;
    compare(entry, work);
    if (entry.connects && !entry.lost) connect(number, entry, work);
  }
  work.run();
}

void Rendezvous::compare(Entry& entry, Work& work) {
  const bool differs = (entry.accepted && entry.called_psn != entry.psn) ||  //
                       (entry.connected && entry.tried_psn != entry.psn);
  if (!entry.psn || !differs) return;
  entry.lost = true;
  for (const auto& qp : {entry.ends.receiver, entry.ends.sender})
    work.add([qp] { qp->leave(verbs::QueuePair::Unfinished::kFlushed); });
}

// What became of an attempt, by what TCP and the peer say.
Rendezvous::Verdict Rendezvous::judge(Entry& entry, const Error& error, ConstBytes answer) {
  const auto why = error.code == Errc::kPeerRejected ? parse_refusal(answer) : std::nullopt;
  if (why == Refusal::kHeard) return Verdict::kHeard;
  const bool is_absent = why == Refusal::kNoQueuePair || error.code == Errc::kConnectionRefused ||
                         error.code == Errc::kSystem;  // no way there
  const bool may_pass = why == Refusal::kTooMany || error.code == Errc::kConnectionLost ||
                        error.code == Errc::kPeerClosed || error.code == Errc::kTimeout ||
                        error.code == Errc::kStartupTimeout || error.code == Errc::kResource;
  if (!is_absent && !may_pass) return Verdict::kLost;
  const TimePoint now = Clock::now();
  if (!is_absent) {
    entry.absent_since.reset();
  } else if (!entry.absent_since) {
    entry.absent_since = now;
  } else if (now - *entry.absent_since >= kTries) {
    return Verdict::kLost;
  }
  return now < add_saturating(entry.since, entry.patience) ? Verdict::kAgain : Verdict::kLost;
}

// --- Connecting

void Rendezvous::connect(std::uint32_t number, Entry& entry, Work& work) {
  if (entry.connecting) return;
  entry.tried_psn = entry.psn ? entry.psn : entry.heard_psn;
  const RendezvousMessage message{.kind = Kind::kConnect,
                                  .from = number,
                                  .to = entry.peer.number,
                                  .from_psn = *entry.tried_psn,
                                  .to_psn = entry.peer.psn};
  cm::ConnectOptions options = options_for(entry.peer, message, entry.patience);
  options.try_again = [this, number, ticket = entry.ticket](const Error& failed, ConstBytes answer) {
    return try_again(number, ticket, failed, answer);
  };
  work.add([this, number, ticket = entry.ticket, qp = entry.ends.sender, options = std::move(options)] {
    try {
      cm::connect(engine(), qp, options,
                  [this, number, ticket, qp](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                    quietly([&] { on_connected(number, ticket, qp, error, connection); });
                  });
    } catch (...) {
      lose(*qp, Errc::kResource);
    }
  });
  entry.connecting = true;
  if (!entry.psn) entry.since = Clock::now();
}

std::optional<std::vector<std::byte>> Rendezvous::try_again(std::uint32_t number, Ticket ticket, const Error& failed,
                                                            ConstBytes answer) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = current(number, ticket);
  if (entry == nullptr || entry->lost) return std::nullopt;
  // What a knock has named may be anybody's word; then another knock, or RTS, says better.
  const bool was_told_wrong = failed.code == Errc::kPeerRejected && parse_refusal(answer) == Refusal::kOtherPeer &&
                              entry->tried_psn != entry->psn;
  const bool in_time = Clock::now() < add_saturating(entry->since, entry->patience);
  if (was_told_wrong ? !in_time : judge(*entry, failed, answer) != Verdict::kAgain) {
    entry->lost = true;
    return std::nullopt;
  }
  entry->tried_psn = entry->psn ? entry->psn : entry->heard_psn;
  return RendezvousMessage{.kind = Kind::kConnect,
                           .from = number,
                           .to = entry->peer.number,
                           .from_psn = *entry->tried_psn,
                           .to_psn = entry->peer.psn}
      .octets();
}

void Rendezvous::on_connected(std::uint32_t number, Ticket ticket, const std::shared_ptr<verbs::QueuePair>& qp,
                              const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  Work work;
  {
    const std::lock_guard lock(mutex_);
    if (Entry* const entry = current(number, ticket)) {
      entry->connected = !error;
      entry->lost = entry->lost || error;
      compare(*entry, work);
    }
  }
  work.run();
  error ? qp->give_up_peer() : give_up_after_end(connection);
}

void Rendezvous::on_accepted(std::uint32_t number, Ticket ticket, const std::shared_ptr<verbs::QueuePair>& qp,
                             const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  if (!error) return give_up_after_end(connection);
  {
    const std::lock_guard lock(mutex_);
    if (Entry* const entry = current(number, ticket)) entry->lost = true;
  }
  lose(*qp, Errc::kConnectionLost);
  qp->give_up_peer();
}

// --- Knocking

void Rendezvous::knock_after(std::uint32_t number, Entry& entry, std::chrono::milliseconds pause) {
  auto timer = std::make_unique<boost::asio::steady_timer>(engine().io(), pause);
  timer->async_wait([this, number, ticket = entry.ticket](boost::system::error_code failed) {
    if (!failed) quietly([&] { on_knock_due(number, ticket); });
  });
  entry.knock = std::move(timer);
}

void Rendezvous::on_knock_due(std::uint32_t number, Ticket ticket) {
  Work work;
  {
    const std::lock_guard lock(mutex_);
    const Entry* const entry = current(number, ticket);
    if (entry == nullptr || entry->accepted || entry->lost) return;
    knock(number, *entry, work);
  }
  work.run();
}

void Rendezvous::knock(std::uint32_t number, const Entry& entry, Work& work) {
  const RendezvousMessage message{
      .kind = Kind::kKnock, .from = number, .to = entry.peer.number, .from_psn = *entry.psn, .to_psn = entry.peer.psn};
  work.add([this, number, ticket = entry.ticket, options = options_for(entry.peer, message, entry.patience)] {
    try {
      cm::connect(engine(), make_knocker(), options,
                  [this, number, ticket](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                    quietly([&] { on_knocked(number, ticket, error, connection); });
                  });
    } catch (...) {
      on_knocked(number, ticket, make_error(Errc::kResource), nullptr);
    }
  });
}

// Who accepts a knock is not of this kind.
void Rendezvous::on_knocked(std::uint32_t number, Ticket ticket, const Error& error,
                            const std::shared_ptr<cm::Connection>& connection) {
  if (!error) connection->abort(make_error(Errc::kAborted));
  const auto answer = error ? answer_of(connection) : std::vector<std::byte>();
  std::shared_ptr<verbs::QueuePair> lost;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = current(number, ticket);
    if (entry == nullptr || entry->accepted || entry->lost) return;
    const Verdict verdict = judge(*entry, error, answer);
    if (verdict != Verdict::kLost)
      return knock_after(number, *entry, verdict == Verdict::kHeard ? kAfterHeard : kAfterFailure);
    entry->lost = true;  // nothing is accepted from here on
    lost = entry->ends.receiver;
  }
  lose(*lost, Errc::kConnectionLost);
}

void Rendezvous::limit(std::uint32_t number, Entry& entry) {
  if (entry.patience == Patience::max()) return;
  auto timer = std::make_unique<boost::asio::steady_timer>(engine().io(), entry.patience);
  timer->async_wait([this, number, ticket = entry.ticket](boost::system::error_code failed) {
    if (!failed) quietly([&] { on_limit(number, ticket); });
  });
  entry.limit = std::move(timer);
}

void Rendezvous::on_limit(std::uint32_t number, Ticket ticket) {
  std::shared_ptr<verbs::QueuePair> lost;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = current(number, ticket);
    if (entry == nullptr || entry->accepted || entry->lost) return;
    entry->lost = true;
    lost = entry->ends.receiver;
  }
  lose(*lost, Errc::kTimeout);
}

}  // namespace iwarp::dropin
