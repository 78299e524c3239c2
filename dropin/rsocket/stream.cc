#include "dropin/rsocket/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "dropin/rsocket/requests.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/translate.h"

namespace iwarp::dropin::rsockets {
namespace {

using verbs::SendOp;
using verbs::SendWr;

// Requests of the send queue that are kept for messages of the protocol itself, and of those the ones for the last.
constexpr std::size_t kControlRequests = 16, kLastRequests = 4;
// Receives beyond the messages with data that the peer may have under way: for its other messages.
constexpr std::size_t kMoreReceives = 32;
// Of the messages that the peer admits these are not used for data, so that other messages find a Receive at a peer
// that does not call its library for a while. Only where there are many.
constexpr std::uint16_t kReserve = 4;
// Data messages that are posted at a time.
constexpr std::size_t kAtOnce = 8;
constexpr std::size_t kCompletionsAtOnce = 32;

Sizes checked(Sizes sizes) {
  const auto octets = [](std::uint32_t n) { return std::clamp(n, Stream::kLeastOctets, Stream::kMostOctets) & ~63U; };
  const auto requests = [](std::uint16_t n) { return std::clamp(n, Stream::kLeastRequests, Stream::kMostRequests); };
  return {.send_octets = octets(sizes.send_octets),
          .receive_octets = octets(sizes.receive_octets),
          .send_requests = requests(sizes.send_requests),
          .receive_requests = requests(sizes.receive_requests),
          .mappings = sayable(std::max(sizes.mappings, Stream::kLeastMappings))};
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::system_error(to_errno(result.error().code), std::generic_category());
  return std::move(result).value();
}

verbs::MemoryRegion registered(const verbs::ProtectionDomain& pd, std::byte* memory, std::size_t size,
                               ddp::Access access) {
  return value_of(verbs::MemoryRegion::register_memory(pd, {memory, size}, {.access = access}));
}

std::size_t table_size(const Sizes& sizes) {
  return kGrants * Buffer::kSize + sizes.mappings * Mapping::kSize;
}

std::size_t receives(const Sizes& sizes) {
  return sizes.receive_requests + kMoreReceives;
}

}  // namespace

void Stream::Bell::notify(verbs::CompletionQueue& /*cq*/) noexcept {
  armed.store(false);
  rung();
}

Stream::Stream(const Sizes& sizes, std::function<void()> rung)
    : sizes_(checked(sizes)),
      bell_(std::move(rung)),
      pd_(engine().context()),
      queue_(sizes_.send_requests + 2 * kControlRequests + 2 * receives(sizes_), &engine()),
      send_memory_(std::make_unique_for_overwrite<std::byte[]>(sizes_.send_octets)),
      receive_memory_(std::make_unique_for_overwrite<std::byte[]>(sizes_.receive_octets)),
      table_(std::make_unique<std::byte[]>(table_size(sizes_))),
      words_(std::make_unique<std::byte[]>(receives(sizes_) * Message::kSize)),
      ring_(sizes_.send_octets),
      received_(sizes_.receive_octets / 2),
      credits_due_(static_cast<std::uint16_t>(sizes_.receive_requests / 2)) {
  constexpr auto kByPeer = ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite;
  send_region_ = registered(pd_, send_memory_.get(), sizes_.send_octets, ddp::Access::kLocalWrite);
  receive_region_ = registered(pd_, receive_memory_.get(), sizes_.receive_octets, kByPeer);
  table_region_ = registered(pd_, table_.get(), table_size(sizes_), kByPeer);
  words_region_ = registered(pd_, words_.get(), receives(sizes_) * Message::kSize, ddp::Access::kLocalWrite);
  verbs::QueuePair::Options options{.send_cq = &queue_, .recv_cq = &queue_};
  options.stream = stream_options(settings());
  options.stream.sq_depth = sizes_.send_requests + kControlRequests;
  options.stream.rq_depth = receives(sizes_);
  options.stream.max_inline = 64;
  // Where a device presents itself as RoCE nothing tells of the peer's end. Here it is to be told.
  options.stream.outlive_peer = options.stream.rfc7306 = options.stream.send_immediate = false;
  link_ = value_of(cm::Link::make(pd_, options));
  for (std::uint32_t i = 0; i < receives(sizes_); ++i) to_repost_.push_back(i);
  repost();
  if (error_ != 0) throw std::system_error(error_, std::generic_category());
  peer_maps_.resize(sizes_.mappings);
}

Stream::~Stream() {
  queue_.disarm();
  link_.leave();
}

ConnectionData Stream::connection_data() const {
  return {.credits = sizes_.receive_requests,
          .mappings = sizes_.mappings,
          .grants = {.address = table_region_.base_to(), .key = raw(table_region_.stag()), .length = kGrants},
          .first = {.address = receive_region_.base_to(),
                    .key = raw(receive_region_.stag()),
                    .length = static_cast<std::uint32_t>(received_.half())}};
}

void Stream::set_peer(const ConnectionData& peer) {
  peer_ = peer;
  granted_[0] = peer.first;
  may_send_ = peer.credits;
  maps_.resize(peer.mappings);
  known_ = true;
}

void Stream::open() {
  open_ = true;
  (void)process();
}

void Stream::end(int error) {
  (void)process();  // what came before it
  over_ = true;
  if (error != 0 && reads_ && peer_writes_) fail(error);
}

void Stream::fail(int error) {
  over_ = true;
  if (error_ == 0) error_ = error;
  if (link_) link_->abort();
}

bool Stream::process() {
  if (!known_) return false;
  try {
    return take_all();
  } catch (const std::bad_alloc&) {  // a message may be lost
    fail(ENOMEM);
    return true;
  }
}

bool Stream::take_all() {
  bool changed = false;
  std::array<verbs::Completion, kCompletionsAtOnce> some;
  do {
    if (!bell_.armed.exchange(true)) queue_.arm(verbs::CompletionQueue::Notify::kNext, bell_);
    for (std::size_t n = 0; (n = queue_.poll(some)) > 0; changed = true)
      for (const auto& done : std::span{some}.first(n)) take(done);
  } while (!bell_.armed.load() && !queue_.empty());
  repost();
  tell_maps();
  give_credits();
  return changed;
}

void Stream::take(const verbs::Completion& done) {
  if (done.op == verbs::WcOp::kRecv) {
    const auto index = static_cast<std::uint32_t>(done.wr_id);
    if (done.status != Errc::kOk) return;  // flushed: the end is told of otherwise
    std::uint32_t word = 0;
    std::memcpy(&word, words_.get() + index * Message::kSize, sizeof word);
    to_repost_.push_back(index);
    if (done.byte_len == Message::kSize) {
      take_message(word);
    } else {
      fail(EPROTO);
    }
    return;
  }
  switch (done.wr_id & kKindMask) {
    case kData:
      complete(data_requests_, 2);
      ring_.give_back(static_cast<std::uint32_t>(done.wr_id));
      break;
    case kDirect:
      complete(data_requests_, 1);
      ring_.give_back(static_cast<std::uint32_t>(done.wr_id));
      break;
    case kMapTold:
      complete(data_requests_, 2);
      break;
    case kControl:
      complete(control_requests_, 1);
      break;
    case kControlWithWrite:
      complete(control_requests_, 2);
      break;
    default:
      break;
  }
}

void Stream::complete(std::size_t& of, std::size_t requests) {
  of -= requests;
  completed_ += requests;
}

void Stream::take_message(std::uint32_t word) {
  const auto message = Message::parse(word);
  if (!message) return fail(EPROTO);
  switch (message->op) {
    case Op::kData:
      if (!received_.arrive(message->value)) return fail(EPROTO);
      if (!reads_) received_.read(message->value);  // nobody will
      return;
    case Op::kGrant:
      may_send_ = static_cast<std::uint16_t>(message->value);
      return look_for_grants();
    case Op::kMapped:
      received_.count_message();
      if (message->value < peer_maps_.size()) {
        const std::byte* const entry = table_.get() + kGrants * Buffer::kSize + message->value * Mapping::kSize;
        peer_maps_[message->value] = Mapping::parse(std::span<const std::byte, Mapping::kSize>(entry, Mapping::kSize));
      }
      return;
    case Op::kControl:
      if (message->value == static_cast<std::uint32_t>(Control::kDisconnect)) {
        peer_writes_ = peer_takes_ = false;
      } else if (message->value == static_cast<std::uint32_t>(Control::kShutdown)) {
        peer_writes_ = false;
      }
      return;
  }
}

// The peer writes an entry when the one that it replaces has been used up, and tells of it behind that. The entry of
// the next grant may be under way: its length comes last.
void Stream::look_for_grants() {
  for (std::size_t i = 0; i < kGrants; ++i) {
    if (granted_[i].length != 0) continue;
    std::byte* const entry = table_.get() + i * Buffer::kSize;
    auto& length = *reinterpret_cast<std::uint32_t*>(entry + Buffer::kLengthOffset);
    if (std::atomic_ref(length).load(std::memory_order_acquire) == 0) continue;
    granted_[i] = Buffer::parse(std::span<const std::byte, Buffer::kSize>(entry, Buffer::kSize));
    std::atomic_ref(length).store(0);
  }
}

void Stream::repost() {
  if (to_repost_.empty() || over_) return;
  std::array<verbs::RecvWr, kCompletionsAtOnce> some;
  for (std::span<const std::uint32_t> rest(to_repost_); !rest.empty();) {
    const auto now = rest.first(std::min(rest.size(), some.size()));
    for (std::size_t i = 0; i < now.size(); ++i) {
      some[i].wr_id = now[i];
      some[i].sges = words_region_.sge(now[i] * Message::kSize, Message::kSize);
    }
    if (const auto posted = link_->post_recv(std::span{some}.first(now.size())); !posted) {
      fail(to_errno(posted.error().code));
      break;
    }
    rest = rest.subspan(now.size());
  }
  to_repost_.clear();
}

bool Stream::post(std::span<const SendWr> list) {
  const auto posted = link_->post_all(list);
  if (!posted) fail(to_errno(posted.error().code));
  return posted.ok();
}

bool Stream::post_control(const Message& message) {
  std::uint32_t word = message.word();
  const SendWr wr = message_of(word, kControl);
  if (!post({&wr, 1})) return false;
  ++control_requests_;
  return true;
}

void Stream::give_credits() {
  while (open_ && !over_ && peer_takes_ && (reads_ || writes_) &&
         control_requests_ + 2 + kLastRequests <= kControlRequests) {
    const bool buffer = peer_writes_ && received_.may_grant();
    const auto read = received_.messages_read();
    if (!buffer && static_cast<std::int16_t>(read - credits_due_) < 0) return;
    credits_due_ = static_cast<std::uint16_t>(read + sizes_.receive_requests / 2);
    const Message message{Op::kGrant, std::uint32_t{read} + sizes_.receive_requests};
    if (!buffer) {
      if (!post_control(message)) return;
      continue;
    }
    const Buffer granted{.address = receive_region_.base_to() + received_.grant(),
                         .key = raw(receive_region_.stag()),
                         .length = static_cast<std::uint32_t>(received_.half())};
    std::array<std::byte, Buffer::kSize> octets;
    granted.write_to(octets);
    std::uint32_t word = message.word();
    const std::array<SendWr, 2> list{
        inline_write(octets, peer_.grants.address + grant_to_ * Buffer::kSize, peer_.grants.key),
        message_of(word, kControlWithWrite)};
    if (!post(list)) return;
    control_requests_ += 2;
    grant_to_ = (grant_to_ + 1) % peer_.grants.length;
  }
}

bool Stream::may_send_message(unsigned requests) const {
  const auto left = static_cast<std::uint16_t>(may_send_ - sent_);
  return open_ && left > (peer_.credits > 4 * kReserve ? kReserve : 0) &&
         data_requests_ + requests <= sizes_.send_requests;
}

bool Stream::can_send() const {
  return why_not_send() == 0 && may_send_message(2) && ring_.free() >= std::min(kLowWater, ring_.size() / 2) &&
         granted_[granted_now_].length != 0;
}

int Stream::why_not_send() const {
  if (!writes_) return EPIPE;
  return over_ || !peer_takes_ ? ECONNRESET : 0;
}

// Precondition: ring_ has as many in a row.
SendWr Stream::write_from_ring(ConstBytes octets, const Buffer& to) {
  SendWr wr;
  wr.op = SendOp::kWrite;
  wr.remote_stag = Stag{to.key};
  wr.remote_to = to.address;
  std::memcpy(send_memory_.get() + ring_.next(), octets.data(), octets.size());
  wr.sges = send_region_.sge(ring_.next(), octets.size());
  ring_.take(octets.size());
  return wr;
}

std::size_t Stream::send(ConstBytes octets) {
  std::size_t done = 0;
  if (why_not_send() != 0 || !told_all_maps()) return 0;
  while (done < octets.size()) {
    std::array<SendWr, 2 * kAtOnce> list;
    std::array<std::uint32_t, kAtOnce> words{};
    std::size_t n = 0, sent = 0;
    for (; n < kAtOnce && done + sent < octets.size() && can_send(); ++n) {
      Buffer& to = granted_[granted_now_];
      const std::size_t length =
          std::min({octets.size() - done - sent, kMostOctetsOfWrite, ring_.in_a_row(), std::size_t{to.length}});
      list[2 * n] = write_from_ring(octets.subspan(done + sent, length), to);
      list[2 * n].wr_id = kSilent;
      list[2 * n].signaled = false;
      words[n] = Message{Op::kData, static_cast<std::uint32_t>(length)}.word();
      list[2 * n + 1] = message_of(words[n], kData | length);
      to.address += length;
      to.length -= static_cast<std::uint32_t>(length);
      if (to.length == 0) granted_now_ = (granted_now_ + 1) % kGrants;
      ++sent_;
      data_requests_ += 2;
      sent += length;
    }
    if (n == 0 || !post(std::span{list}.first(2 * n))) break;
    done += sent;
  }
  return done;
}

std::size_t Stream::peek(MutBytes to, std::size_t skip) const {
  std::size_t done = 0;
  while (done < to.size() && skip + done < readable()) {
    const auto piece = received_.piece(skip + done);
    const std::size_t length = std::min(piece.length, to.size() - done);
    std::memcpy(to.data() + done, receive_memory_.get() + piece.offset, length);
    done += length;
  }
  return done;
}

void Stream::shut(bool reading, bool writing) {
  const bool wrote = writes_, took = reads_ || writes_;
  if (reading) reads_ = false;
  if (writing) writes_ = false;
  if (!reads_) received_.read(readable());
  if (over_ || !open_) return;
  if (took && !reads_ && !writes_) {
    (void)post_control({Op::kControl, static_cast<std::uint32_t>(Control::kDisconnect)});
  } else if (wrote && !writes_) {
    (void)post_control({Op::kControl, static_cast<std::uint32_t>(Control::kShutdown)});
  }
}

}  // namespace iwarp::dropin::rsockets
