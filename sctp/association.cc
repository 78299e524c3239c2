#include "iwarp/sctp/association.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "iwarp/base/wire.h"

namespace iwarp::sctp {
namespace {

// The first message of a session, by its form: the DDP-SSN begins at 0 with each. req: RFC5043-6.1-1
bool is_first_initiate(const Message& m) {
  const auto head = FixedView<kControlHeaderBytes>::of(m.bytes);
  if (!head || m.ppid != static_cast<std::uint32_t>(Ppid::kSessionControl)) return false;
  const auto code = head->be<std::uint16_t, 2>();
  return head->be<std::uint16_t, 0>() == 0 && (code == static_cast<std::uint16_t>(Function::kInitiate) ||
                                               code == static_cast<std::uint16_t>(Function::kEnhancedInitiate));
}

}  // namespace

Association::Association(const AssociationOptions& options, Side side)
    : options_(options), side_(side), budget_(options.hold_bytes) {}

Result<void> Association::up(std::optional<std::uint32_t> indication, std::uint16_t inbound, std::uint16_t outbound) {
  if (const auto ddp = check_indication(indication); !ddp) return ddp.error();
  streams_ = std::min(inbound, outbound);  // req: RFC5043-8-1, RFC5043-2-1
  return {};
}

void Association::lost(const Error& why) {
  for (const auto& [id, s] : sessions_) {
    s->lost(why);
    touched(StreamId{id});
  }
  streams_ = 0;
}

Session* Association::session(StreamId stream) const {
  const auto it = sessions_.find(raw(stream));
  return it == sessions_.end() ? nullptr : it->second.get();
}

const Session* Association::find(StreamId stream) const {
  return session(stream);
}

std::uint64_t Association::number(StreamId stream) const {
  const auto it = numbers_.find(raw(stream));
  return it == numbers_.end() ? 0 : it->second;
}

// In place of the one before, whose last events are still to be told.
Session& Association::add(StreamId stream, std::unique_ptr<Session> session) {
  auto& place = sessions_[raw(stream)];
  while (place != nullptr) {
    const auto event = place->poll_event();
    if (!event) break;
    left_.push_back({stream, *event});
  }
  place = std::move(session);
  numbers_[raw(stream)] = ++begun_;
  return *place;
}

// After each input of a session.
void Association::touched(StreamId stream) {
  if (ready_.empty() || ready_.back() != stream) ready_.push_back(stream);
}

Result<StreamId> Association::open(const SessionOptions& options, ConstBytes private_data, TimePoint now) {
  if (streams_ == 0) return make_error(Errc::kNotConnected, "no SCTP association with DDP");
  if (const auto valid = validate(options); !valid) return valid.error();
  if (private_data.size() > max_ulp_bytes(options.enhanced ? Function::kEnhancedInitiate : Function::kInitiate))
    return make_error(Errc::kInvalidArgument, "more private data than a session control message holds");
  // Streams of the own half, so that Initiates do not cross. req: RFC5043-6.2-8
  for (std::uint32_t id = side_ == Side::kConnected ? 0 : 1; id < streams_; id += 2) {
    const StreamId stream{static_cast<std::uint16_t>(id)};
    const Session* before = session(stream);
    if (before != nullptr && !before->leaves_stream_free()) continue;  // req: RFC5043-6.6-5
    add(stream, std::make_unique<Session>(options, budget_, private_data, now));
    return stream;
  }
  return make_error(Errc::kResource, "no free stream on the SCTP association");
}

Result<void> Association::accept(StreamId stream, const enhanced::Depths& depths, ConstBytes private_data,
                                 const std::optional<enhanced::Depths>& told) {
  Session* s = session(stream);
  if (s == nullptr) return make_error(Errc::kInvalidArgument, "no such DDP Stream Session");
  touched(stream);
  return s->accept(depths, private_data, told);
}

Result<void> Association::reject(StreamId stream, ConstBytes private_data, std::optional<std::uint16_t> required_ord) {
  Session* s = session(stream);
  if (s == nullptr) return make_error(Errc::kInvalidArgument, "no such DDP Stream Session");
  touched(stream);
  return s->reject(private_data, required_ord);
}

// Of this session: the others go on. req: RFC5043-11.3-5, RFC5043-2-2
void Association::terminate(StreamId stream) {
  if (Session* s = session(stream)) {
    s->terminate();
    touched(stream);
  }
}

void Association::segment_taken(StreamId stream) {
  session(stream)->segment_taken();
}

std::optional<Session::Early> Association::early(StreamId stream, const Message& message) const {
  const Session* s = session(stream);
  return s == nullptr ? std::nullopt : s->early(message);
}

Result<void> Association::receive(StreamId stream, const Message& message) {
  if (raw(stream) >= streams_) return make_error(Errc::kSessionSequence, "Data Chunk on a stream without counterpart");
  Session* s = session(stream);
  // A session of the peer's on a stream whose last one is over, or all but. req: RFC5043-6-1
  if (s != nullptr && s->gives_way() && is_first_initiate(message)) {
    s->superseded();
    s = nullptr;
  }
  if (s == nullptr) s = &add(stream, std::make_unique<Session>(options_.session, budget_));
  s->receive(message);
  touched(stream);
  return {};
}

void Association::arrived(StreamId stream, std::size_t messages) {
  if (Session* s = session(stream)) {
    s->arrived(messages);
    touched(stream);
  }
}

void Association::all_arrived() {
  for (const auto& [id, s] : sessions_) {
    s->arrived(s->under_way());
    touched(StreamId{id});
  }
}

// The finite limit of those that wait. req: RFC5043-6.4-2, RFC5043-5.2.3-9
bool Association::has_room_to_decide() {
  std::erase_if(deciding_, [this](std::uint16_t id) {
    const Session* s = session(StreamId{id});
    return s == nullptr || s->state() != SessionState::kDeciding;
  });
  return deciding_.size() < options_.max_deciding;
}

std::optional<Association::Event> Association::poll_event() {
  if (!left_.empty()) {
    const Event event = left_.front();
    left_.pop_front();
    return event;
  }
  while (!ready_.empty()) {
    const StreamId stream = ready_.front();
    Session* s = session(stream);
    auto what = s->poll_event();
    if (!what) {
      ready_.pop_front();
      continue;
    }
    if (std::holds_alternative<Session::Requested>(*what)) {
      if (!has_room_to_decide()) {  // req: RFC5043-6.4-3, RFC5043-5.2.3-10
        s->refuse();
        continue;
      }
      deciding_.insert(raw(stream));
    }
    return Event{stream, *what};
  }
  return std::nullopt;
}

std::optional<Association::Control> Association::control() const {
  for (const auto& [id, s] : sessions_) {
    if (const ConstBytes message = s->control(); !message.empty()) return Control{StreamId{id}, message};
  }
  return std::nullopt;
}

void Association::control_taken(StreamId stream) {
  session(stream)->control_taken();
}

std::optional<TimePoint> Association::deadline() const {
  std::optional<TimePoint> first;
  for (const auto& [id, s] : sessions_) {
    const auto own = s->deadline();
    if (own && (!first || *own < *first)) first = own;
  }
  return first;
}

void Association::on_deadline(TimePoint now) {
  for (const auto& [id, s] : sessions_) {
    if (!s->deadline()) continue;
    s->on_deadline(now);
    touched(StreamId{id});
  }
}

bool Association::idle() const {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& s) { return s.second->done(); });
}

}  // namespace iwarp::sctp
