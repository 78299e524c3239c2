#include "tests/endpoint/message_half.h"

#include <cstring>

namespace iwarp::endpoint {
using test::Bytes;

MessageHalf::MessageHalf(unsigned number, const Options& options, rdmap::ReceiveSource* shared)
    : memory_({PdId{number}, ddp::StreamId{100 + number}}, number),
      core_(memory_.stags, memory_.key, options, shared) {}

void MessageHalf::start(Opening opening, TimePoint now) {
  core_.at(now);
  core_.start(opening);
  collect();
}

void MessageHalf::establish(const Terms& terms, TimePoint now) {
  core_.at(now);
  core_.establish(terms);
  collect();
}

void MessageHalf::disconnect(TimePoint now) {
  core_.at(now);
  core_.disconnect();
  collect();
}

void MessageHalf::leave(TimePoint now) {
  core_.at(now);
  core_.leave(make_error(Errc::kAborted));
  collect();
}

void MessageHalf::end(Input how, const Error& reason, TimePoint now) {
  core_.at(now);
  core_.end(how, reason);
  collect();
}

void MessageHalf::expire(TimePoint now) {
  core_.at(now);
  core_.on_deadline();
  collect();
}

std::optional<Message> MessageHalf::send(std::size_t mulpdu, TimePoint now) {
  core_.at(now);
  std::optional<Message> out;
  while (!out && core_.ready()) {  // a violation leaves a Terminate to send
    Endpoint::Segment segment;
    std::vector<ddp::Pin> payload;
    if (!core_.next_segment(mulpdu, segment, payload)) continue;
    const ConstBytes head = segment.head_and_copy();
    out.emplace();
    out->ulpdu.assign(head.begin(), head.end());
    for (const ddp::Pin& pin : payload) out->ulpdu.insert(out->ulpdu.end(), pin.bytes().begin(), pin.bytes().end());
    EXPECT_EQ(out->ulpdu.size(), segment.header_bytes + segment.payload_bytes);
    EXPECT_LE(out->ulpdu.size(), mulpdu);
    core_.sent(segment.done);
    core_.progress();
    ++sent_segments;
  }
  if (!out) {
    if (core_.drained()) core_.finish();
    out = send_end();
  }
  collect();
  return out;
}

std::optional<Message> MessageHalf::send_end() {
  if (told_end_) return std::nullopt;
  const bool closed = core_.phase() == Phase::kClosed;
  if (!closed && core_.phase() != Phase::kEndWait) return std::nullopt;
  told_end_ = true;
  const bool gone = closed && core_.ending() == Ending::kAbrupt;
  return Message{.kind = gone ? Message::Kind::kGone : Message::Kind::kEnd};
}

void MessageHalf::receive(const Message& message, bool direct, TimePoint now) {
  core_.at(now);
  switch (message.kind) {
    case Message::Kind::kEnd:
      core_.end(Input::kPeerEnd, make_error(Errc::kPeerClosed));
      break;
    case Message::Kind::kGone:
      core_.end(Input::kLost, make_error(Errc::kConnectionLost));
      break;
    case Message::Kind::kSegment:
      core_.heard();
      if (!core_.receiving()) break;
      core_.heard_segment();
      direct ? receive_directly(message.ulpdu) : core_.receive(message.ulpdu);
      core_.let_go();
      break;
  }
  collect();
}

void MessageHalf::receive_directly(ConstBytes ulpdu) {
  if (!core_.begin_segment(ulpdu, ulpdu.size())) return;
  ConstBytes payload = ulpdu.subspan(core_.header_bytes());
  if (!core_.direct()) return core_.receive(ulpdu);
  std::vector<ddp::Pin> places;
  if (!core_.targets(places)) return;
  for (const ddp::Pin& place : places) {
    std::memcpy(place.bytes().data(), payload.data(), place.bytes().size());
    payload = payload.subspan(place.bytes().size());
    core_.placed(place.bytes().size());
  }
  EXPECT_EQ(core_.payload_remaining(), 0U);
  core_.end_segment();
}

void MessageHalf::collect() {
  EXPECT_TRUE(core_.is_consistent()) << "in " << name(core_.phase());
  while (const auto event = core_.poll_event()) {
    EXPECT_FALSE(ended) << "nothing follows the end";
    if (const auto* how = std::get_if<Ended>(&*event)) {
      ended = *how;
    } else {
      EXPECT_FALSE(established);
      established = true;
    }
  }
  while (const auto c = core_.poll_send()) sends.push_back(*c);
  while (const auto c = core_.poll_recv()) recvs.push_back(*c);
}

void MessagePair::establish(const Terms& of_a, const Terms& of_b) {
  a.start(Opening::kAtOnce, now);
  b.start(Opening::kAtOnce, now);
  b.establish(of_b, now);
  a.establish(of_a, now);
}

bool MessagePair::move(MessageHalf& from, MessageHalf& to) {
  const auto message = from.send(mulpdu, now);
  if (message) to.receive(*message, direct, now);
  return message.has_value();
}

void MessagePair::settle() {
  for (int moves = 0; move(a, b) || move(b, a); ++moves) ASSERT_LT(moves, 10000);
}

void MessagePair::expire(MessageHalf& half) {
  const auto deadline = half.core().deadline();
  ASSERT_TRUE(deadline.has_value());
  half.expire(*deadline - std::chrono::milliseconds{1});
  EXPECT_EQ(half.core().deadline(), deadline) << "too early";
  now = *deadline;
  half.expire(now);
}

}  // namespace iwarp::endpoint
