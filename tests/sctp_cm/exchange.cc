#include "tests/sctp_cm/exchange.h"

#include <algorithm>
#include <array>
#include <utility>

#include "iwarp/base/wire.h"

namespace iwarp::sctp_cm {
namespace {

constexpr std::uint32_t kMagic = 0x44584348;  // "DXCH"
constexpr std::size_t kHelloBytes = 28;
constexpr std::size_t kTableBytes = 65521;
constexpr std::uint8_t kData = 1, kAcknowledges = 2, kDone = 3;
constexpr std::uint64_t kReceives = 0, kSends = 1000, kWrites = 1001, kReads = 1002, kSays = 1003;  // wr_ids

const std::vector<std::byte>& table() {
  static const std::vector<std::byte> all = [] {
    std::vector<std::byte> t(kTableBytes);
    std::uint64_t x = 1;
    for (std::byte& b : t) {
      x = (x * 1103515245 + 12345) & 0x7FFFFFFF;
      b = static_cast<std::byte>(x >> 16 & 0xFF);
    }
    return t;
  }();
  return all;
}

// What an end does in a round.
struct Round {
  std::uint32_t side, number;
  [[nodiscard]] std::vector<std::byte> written() const {
    return exchange_pattern(side * 20000 + number, number * std::size_t{7919} % 65537);
  }
  [[nodiscard]] std::vector<std::byte> text() const {
    return exchange_pattern(side * 20000 + 10000 + number, number * std::size_t{3571} % 20001);
  }
  [[nodiscard]] std::size_t read() const { return number * std::size_t{5003} % 65537; }
};

std::vector<std::byte> readable(std::uint32_t side) {
  return exchange_pattern(50021 + side, 65536);
}

}  // namespace

std::vector<std::byte> exchange_pattern(std::uint32_t seed, std::size_t octets) {
  std::vector<std::byte> out(octets);
  std::size_t at = std::size_t{seed} * 1009 % kTableBytes;
  for (std::byte& b : out) {
    b = table()[at];
    at = (at + 1) % kTableBytes;
  }
  return out;
}

Exchange::Exchange(verbs::CompletionQueue& cq, const verbs::ProtectionDomain& pd, sctp::Role role, std::uint32_t rounds)
    : side_(role == sctp::Role::kActive ? 0 : 1), rounds_(rounds), memory_(kInbox + kInboxes * kMessageBytes) {
  using ddp::Access;
  std::ranges::copy(readable(side_), memory_.begin() + kReadable);
  const MutBytes all(memory_);
  shared_ = verbs::MemoryRegion::register_memory(
                pd, all.first(kShared), {.access = Access::kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite})
                .value();
  local_ = verbs::MemoryRegion::register_memory(pd, all.subspan(kShared), {.access = Access::kLocalWrite}).value();
  stream::Options options;
  options.max_inline = kHeadBytes;
  qp_ = std::make_shared<verbs::QueuePair>(
      pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq, .stream = options, .user = this});
  for (std::size_t i = 0; i < kInboxes; ++i) receive(i);
}

std::vector<std::byte> Exchange::hello() const {
  std::vector<std::byte> out(kHelloBytes);
  FixedWriter<kHelloBytes> w{std::span<std::byte, kHelloBytes>(out)};
  w.be<0>(kMagic);
  w.be<4>(rounds_);
  w.be<8>(raw(shared_.stag()));
  w.be<12>(shared_.base_to());
  w.be<20>(static_cast<std::uint32_t>(kSlotBytes));
  w.be<24>(static_cast<std::uint32_t>(kSlots));
  return out;
}

void Exchange::check(bool holds, const std::string& what) const {
  if (!holds)
    throw Failure(what + " (begun " + std::to_string(begun_) + ", acknowledged " + std::to_string(acknowledged_) +
                  ", read " + std::to_string(read_) + ", taken " + std::to_string(taken_) + ")");
}

void Exchange::post(const verbs::SendWr& wr) {
  const auto posted = qp_->post_send(wr);
  check(posted.ok(), std::string("a request was refused: ") + (posted ? "" : posted.error().why));
}

void Exchange::receive(std::size_t inbox) {
  const auto posted =
      qp_->post_recv({.wr_id = kReceives + inbox, .sges = sge({kInbox + inbox * kMessageBytes, kMessageBytes})});
  check(posted.ok(), std::string("a Receive was refused: ") + (posted ? "" : posted.error().why));
}

void Exchange::on_established(const Error& error, std::shared_ptr<Connection> connection) {
  check(!error, std::string("not established: ") + name(error.code) + ": " + error.why);
  const std::vector<std::byte> said = connection->private_data();
  check(said.size() == kHelloBytes, "private data of " + std::to_string(said.size()) + " octets");
  const FixedView<kHelloBytes> v{std::span<const std::byte, kHelloBytes>(said)};
  check(v.be<std::uint32_t, 0>() == kMagic && v.be<std::uint32_t, 20>() == kSlotBytes &&
            v.be<std::uint32_t, 24>() == kSlots,
        "private data of another kind");
  peer_rounds_ = v.be<std::uint32_t, 4>();
  peer_stag_ = Stag{v.be<std::uint32_t, 8>()};
  peer_to_ = v.be<std::uint64_t, 12>();
  connection_ = std::move(connection);
  for (const auto& c : std::exchange(early_, {})) on_completion(c);
  step();
}

void Exchange::step() {
  if (!connection_ || over_) return;
  const bool begins = !faulty();
  while (begins && begun_ < rounds_ && begun_ - std::min({sent_, acknowledged_, read_}) < kSlots) begin_round();
  if (begins && !said_done_ && acknowledged_ == rounds_ && read_ == rounds_) {
    said_done_ = true;
    say(kDone, 0);
    if (complete() && side_ == 0) connection_->disconnect();
  }
  if (const auto how = connection_->disconnected()) on_end(*how);
}

void Exchange::begin_round() {
  const Round r{side_, begun_++};
  const std::size_t slot = r.number % kSlots;
  const auto octets = r.written(), text = r.text();
  const Piece source{kSources + slot * kSlotBytes, octets.size()};
  std::ranges::copy(octets, memory(source).begin());
  post({.wr_id = kWrites,
        .op = verbs::SendOp::kWrite,
        .sges = sge(source),
        .remote_stag = peer_stag_,
        .remote_to = peer_to_ + slot * kSlotBytes});
  const Piece message{kTexts + slot * kMessageBytes, kHeadBytes + text.size()};
  const MutBytes out = memory(message);
  std::ranges::fill(out.first(kHeadBytes), std::byte{0});
  out[0] = std::byte{kData};
  store_be<std::uint32_t>(out.subspan(4), r.number);
  store_be<std::uint32_t>(out.subspan(8), static_cast<std::uint32_t>(octets.size()));
  store_be<std::uint32_t>(out.subspan(12), static_cast<std::uint32_t>(text.size()));
  std::ranges::copy(text, out.subspan(kHeadBytes).begin());
  post({.wr_id = kSends, .op = verbs::SendOp::kSend, .sges = sge(message)});
  post({.wr_id = kReads,
        .op = verbs::SendOp::kRead,
        .sges = sge({kSinks + slot * kSlotBytes, r.read()}),
        .remote_stag = peer_stag_,
        .remote_to = peer_to_ + kReadable + (kSlotBytes - r.read()) / 2});
}

void Exchange::say(std::uint8_t kind, std::uint32_t round) {
  std::array<std::byte, kHeadBytes> head{};
  head[0] = std::byte{kind};
  store_be<std::uint32_t>(std::span(head).subspan(4), round);
  post({.wr_id = kSays, .op = verbs::SendOp::kSend, .sges = verbs::Sge{head.data(), kHeadBytes}, .inline_data = true});
}

void Exchange::on_completion(const verbs::Completion& c) {
  if (!connection_) return early_.push_back(c);
  if (c.status == Errc::kFlushed && (complete() || faulty())) return;  // its session has ended
  check(c.status == Errc::kOk, std::string("a request has failed: ") + name(c.status));
  if (c.wr_id == kSends) {
    ++sent_;
  } else if (c.wr_id == kReads) {
    on_read();
  } else if (c.wr_id < kInboxes) {
    on_message(memory({kInbox + c.wr_id * kMessageBytes, c.byte_len}));
    if (!complete()) receive(c.wr_id);
  }
  step();
}

void Exchange::on_message(ConstBytes message) {
  check(message.size() >= kHeadBytes, "message of " + std::to_string(message.size()) + " octets");
  const auto kind = std::to_integer<std::uint8_t>(message[0]);
  const auto round = load_be<std::uint32_t>(message.subspan(4));
  const ConstBytes text = message.subspan(kHeadBytes);
  check(load_be<std::uint32_t>(message.subspan(12)) == text.size(), "text of another length than announced");
  if (kind == kData) return on_data(round, load_be<std::uint32_t>(message.subspan(8)), text);
  if (kind == kAcknowledges) {
    check(round == acknowledged_ && round < begun_, "round " + std::to_string(round) + " acknowledged");
    ++acknowledged_;
    return;
  }
  check(kind == kDone && !heard_done_ && taken_ == peer_rounds_, "message of kind " + std::to_string(kind));
  heard_done_ = true;
  if (complete() && side_ == 0) connection_->disconnect();
}

void Exchange::on_data(std::uint32_t round, std::uint32_t written, ConstBytes text) {
  check(round == taken_ && round < peer_rounds_, "round " + std::to_string(round) + " came");
  const Round expected{1 - side_, round};
  const auto octets = expected.written();
  check(octets.size() == written && std::ranges::equal(memory({round % kSlots * kSlotBytes, written}), octets),
        "other octets were written in round " + std::to_string(round));
  check(std::ranges::equal(text, expected.text()), "other text in round " + std::to_string(round));
  ++taken_;
  say(kAcknowledges, round);
}

void Exchange::on_read() {
  const Round r{side_, read_};
  const auto all = readable(1 - side_);
  const auto from = all.begin() + static_cast<std::ptrdiff_t>((kSlotBytes - r.read()) / 2);
  const MutBytes got = memory({kSinks + r.number % kSlots * kSlotBytes, r.read()});
  check(std::equal(got.begin(), got.end(), from), "other octets were read in round " + std::to_string(r.number));
  ++read_;
}

void Exchange::on_end(const stream::Disconnected& how) {
  if (faulty()) {
    check(how.sent.has_value() && how.was_established, "a session of a peer that breaks a rule has ended otherwise");
    over_ = true;
    return;
  }
  const Errc expected = side_ == 0 ? Errc::kAborted : Errc::kPeerClosed;  // kAborted: as disconnect() asked for
  check(complete() && how.reason.code == expected && !how.received && !how.sent,
        std::string("the session has ended: ") + name(how.reason.code) + ": " + how.reason.why);
  over_ = true;
}

}  // namespace iwarp::sctp_cm
