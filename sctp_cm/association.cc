#include "iwarp/sctp_cm/association.h"

#include <utility>

#include "iwarp/sctp_cm/stack.h"

namespace iwarp::sctp_cm {
namespace {

constexpr int kServiceBudget = 128;  // messages and news before others get the thread

}  // namespace

Association::Association(Stack& stack, Socket socket, Handle handle, TransportUser* user, TimePoint connect_by)
    : stack_(&stack), socket_(std::move(socket)), handle_(handle), user_(user), connect_by_(connect_by) {}

Association::~Association() = default;

boost::asio::ip::udp::endpoint Association::remote() const {
  const Peer* peer = over_ ? nullptr : stack_->find(handle_);
  return peer == nullptr ? boost::asio::ip::udp::endpoint{} : peer->at;
}

boost::asio::ip::udp::endpoint Association::local() const {
  const Peer* peer = over_ ? nullptr : stack_->find(handle_);
  if (peer == nullptr) return {};
  const auto& local = peer->by->local();
  return peer->own.is_unspecified() ? local : boost::asio::ip::udp::endpoint{peer->own, local.port()};
}

std::optional<TimePoint> Association::connect_by() const {
  return up_ || over_ ? std::nullopt : std::optional(connect_by_);
}

Result<bool> Association::send(sctp::StreamId stream, sctp::Ppid ppid, bool unordered, ConstBytes message) {
  if (message.empty() || message.size() > kMaxMessageBytes)
    return make_error(Errc::kInvalidArgument, "an SCTP message has 1 to 65536 octets here");
  if (!told_up_ || over_ || shut_ || !socket_) return make_error(Errc::kNotConnected, "no SCTP association");
  if (raw(stream) >= up_->outbound) return make_error(Errc::kInvalidArgument, "no such stream on the SCTP association");
  const auto taken = socket_.send(stream, ppid, unordered, message);
  if (taken && !*taken) wants_room_ = true;
  stack_->owe();
  return taken;
}

void Association::hold(bool on) {
  held_ = on;
  if (!on && !over_) stack_->mark(*this);
}

void Association::shutdown() {
  if (over_ || shut_) return;
  if (!up_) return abort("closed before it was up");
  shut_ = true;
  socket_.shutdown();
  stack_->owe();
}

void Association::abort(const char* why) {
  if (over_ || ending_) return;
  socket_.abort(why);
  ending_ = make_error(Errc::kAborted, "SCTP association aborted here");
  stack_->mark(*this);
}

Result<void> Association::begin(std::uint16_t own_port, std::uint16_t peer_port) {
  return socket_.connect(handle_, own_port, peer_port);
}

void Association::give_up() {
  if (over_ || ending_) return;
  abort("no answer in time");
  ending_ = make_error(Errc::kTimeout,
                       "no answer of an SCTP peer in time: is anything listening for SCTP over UDP at that address and "
                       "UDP port, and do firewalls let it through?");
}

void Association::refuse(const Error& why) {
  if (up_ || over_ || ending_) return;
  ending_ = why;
  stack_->mark(*this);
}

void Association::leave() {
  user_ = nullptr;
  abort("the application has gone");
}

void Association::orphan() {
  user_ = nullptr;
  over_ = true;
  stack_ = nullptr;
  socket_.close();
}

void Association::end(const Error& why) {
  if (over_) return;
  over_ = true;
  socket_.close();
  if (user_ != nullptr) std::exchange(user_, nullptr)->on_end(why);
}

void Association::tell_up() {
  if (told_up_ || !up_) return;
  told_up_ = true;
  up_->fragmentation_point = socket_.fragmentation_point();
  stack_->on_up(*this);  // an accepted one gets its user
  if (user_ != nullptr) user_->on_up(*up_);
}

void Association::take(const Socket::Data& data) {
  const MutBytes scratch = stack_->scratch();
  ConstBytes whole = scratch.first(data.bytes);
  if (partial_.size() + data.bytes > kMaxMessageBytes) {
    socket_.abort("message too long");
    return end(make_error(Errc::kSessionSequence, "the peer has sent an SCTP message of more than 65536 octets"));
  }
  if (!data.last || !partial_.empty()) {
    partial_.insert(partial_.end(), whole.begin(), whole.end());
    if (!data.last) return;
    whole = partial_;  // req: RFC5043-9-5
  }
  if (user_ != nullptr) user_->on_message(data.stream, {data.ppid, data.ordered, whole});
  partial_.clear();
}

bool Association::service() {
  bool told_of_room =
      false;  // once a service: send() may refuse again what is longer than the room, and reading goes on
  for (int done = 0; done < kServiceBudget; ++done) {
    if (over_) return false;
    if (ending_) {
      end(*ending_);
      return false;
    }
    if (wants_room_ && !told_of_room && socket_.has_room()) {
      wants_room_ = false;
      told_of_room = true;
      if (told_up_ && user_ != nullptr) user_->on_room();
      continue;
    }
    if (held_) return false;
    const Socket::Read read = socket_.read(stack_->scratch());
    if (const auto* up = std::get_if<Socket::Up>(&read)) {
      if (!up_) up_ = TransportUp{std::nullopt, up->inbound, up->outbound, 0};
      continue;
    }
    if (const auto* indication = std::get_if<Socket::Indication>(&read)) {
      if (up_ && !told_up_) up_->indication = indication->value;  // req: RFC5043-5.1-4
      tell_up();
      continue;
    }
    tell_up();  // what tells of an indication comes right behind COMM_UP, or not at all
    if (over_ || ending_) continue;
    if (const auto* data = std::get_if<Socket::Data>(&read)) {  // of any stream. req: RFC5043-11.2-1
      take(*data);
    } else if (std::holds_alternative<Socket::Dry>(read)) {
      if (user_ != nullptr && socket_.all_arrived()) user_->on_all_arrived();
    } else if (const auto* ended = std::get_if<Socket::Over>(&read)) {
      Error why = ended->why;
      if (shut_ && why.code == Errc::kPeerClosed)
        why = make_error(Errc::kAborted, "SCTP association shut down by the local application");
      end(why);
    } else if (std::holds_alternative<Socket::Empty>(read)) {
      return false;
    }
  }
  return true;
}

}  // namespace iwarp::sctp_cm
