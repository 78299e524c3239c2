#include "iwarp/sctp_cm/queue_pair_link.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <variant>
#include <vector>

namespace iwarp::sctp_cm {
namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

Result<std::shared_ptr<QueuePairLink>> QueuePairLink::make(boost::asio::io_context& io,
                                                           std::shared_ptr<verbs::QueuePair> qp, sctp::Role role,
                                                           Handlers handlers) {
  if (const auto& usable = qp->usable(); !usable) return usable.error();
  std::shared_ptr<QueuePairLink> link(new QueuePairLink(io, std::move(qp), role, std::move(handlers)));
  const auto lock = link->qp_->lock();
  if (link->qp_->driver() != nullptr || link->qp_->endpoint().phase() != endpoint::Phase::kIdle) {
    link->over_ = true;  // it is another one's
    // So a session has one Protection Domain, that of its queue pair. req: RFC5041-2.3-1, RFC5043-6-3
    return make_error(Errc::kInvalidArgument, "queue pair was used before");
  }
  link->qp_->set_driver(link.get(), &link->half_);
  link->half_.start(SteadyClock::now());
  return link;
}

QueuePairLink::QueuePairLink(boost::asio::io_context& io, std::shared_ptr<verbs::QueuePair> qp, sctp::Role role,
                             Handlers handlers)
    : qp_(std::move(qp)),
      io_(&io),
      half_(qp_->endpoint()),
      pump_(half_, role),
      handlers_(std::move(handlers)),
      timer_(io) {}

QueuePairLink::~QueuePairLink() {
  const auto lock = qp_->lock();
  if (qp_->driver() == this) qp_->set_driver(nullptr);
  if (over_) return;
  half_.abort_sparing(make_error(Errc::kAborted), SteadyClock::now());
  pump_.send(SteadyClock::now());
  qp_->drain_completions();
}

void QueuePairLink::begin(Sessions& sessions, sctp::StreamId stream) {
  const auto lock = qp_->lock();
  pump_.begin(sessions, stream);
}

void QueuePairLink::on_event(const sctp::Session::Event& event) {
  {
    const auto lock = qp_->lock();
    pump_.on_event(event, SteadyClock::now());
    if (const auto* e = std::get_if<sctp::Session::Established>(&event))
      agreed_ = Agreed{e->settled.depths.ird, e->settled.depths.ord, pump_.sessions().max_segment_bytes()};
  }
  drive();
}

std::size_t QueuePairLink::on_early(const sctp::Session::Early& early) {
  const auto lock = qp_->lock();
  return pump_.on_early(early);
}

void QueuePairLink::fail(const Error& why) {
  Error plain = why;
  plain.tell_peer.reset();  // there is nowhere to tell it
  on_event(sctp::Session::Ended{plain});
}

void QueuePairLink::let_go() {
  const auto lock = qp_->lock();
  pump_.let_go();
}

void QueuePairLink::detach() {
  {
    const auto lock = qp_->lock();
    half_.abort_sparing(make_error(Errc::kAborted), SteadyClock::now());
  }
  drive();
}

void QueuePairLink::disconnect() {
  const auto lock = qp_->lock();
  half_.disconnect(SteadyClock::now());
  kick();
}

void QueuePairLink::abort(const Error& reason) {
  const auto lock = qp_->lock();
  half_.abort_sparing(reason, SteadyClock::now());
  qp_->drain_completions();
  kick();
}

void QueuePairLink::kick() {
  if (owes_ || io_ == nullptr) return;
  boost::asio::post(*io_, [weak = weak_from_this()] {
    if (const auto link = weak.lock()) link->drive();
  });
  owes_ = true;
}

std::optional<verbs::Driver::Agreed> QueuePairLink::agreed() const {
  return agreed_;
}

void QueuePairLink::drive() {
  if (std::exchange(driving_, true)) {  // in a call of a handler
    again_ = true;
    return;
  }
  const auto keep = shared_from_this();
  do {
    again_ = false;
    for (const endpoint::Event& event : move()) tell(event);
  } while (again_);
  driving_ = false;
}

std::vector<endpoint::Event> QueuePairLink::move() {
  std::vector<endpoint::Event> events;
  const auto lock = qp_->lock();
  owes_ = false;
  pump_.send(SteadyClock::now());
  qp_->drain_completions();
  while (auto event = qp_->endpoint().poll_event()) events.push_back(*std::move(event));
  const bool ended = !events.empty() && std::holds_alternative<endpoint::Ended>(events.back());
  if (ended) {
    pump_.send(SteadyClock::now());  // an overflow of the completion queue is an end that nothing was sent for
    io_ = nullptr;
    timer_.reset();
    over_ = true;
  } else if (!over_) {
    arm();
  }
  return events;
}

void QueuePairLink::tell(const endpoint::Event& event) {
  if (const auto* ended = std::get_if<endpoint::Ended>(&event)) {
    const Handlers last = std::exchange(handlers_, {});
    if (last.ended) last.ended(*ended);
  } else if (handlers_.established) {
    handlers_.established();
  }
}

void QueuePairLink::arm() {
  const auto deadline = half_.deadline();
  if (deadline == armed_) return;
  armed_ = deadline;
  timer_->cancel();
  if (!deadline) return;
  timer_->expires_at(*deadline);
  timer_->async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto link = weak.lock();
    if (!link || error) return;
    {
      const auto lock = link->qp_->lock();
      link->armed_.reset();
      link->half_.on_deadline(SteadyClock::now());
    }
    link->drive();
  });
}

}  // namespace iwarp::sctp_cm
