// The least lower layer that an Endpoint can have: messages handed across as vectors, in order, each with one segment
// or with news of the stream's end. No MPA, no TCP: what works here works over any half. Virtual time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "iwarp/endpoint/endpoint.h"
#include "tests/support/end_memory.h"

namespace iwarp::endpoint {

struct Message {
  enum class Kind : std::uint8_t { kSegment, kEnd, kGone };
  Kind kind = Kind::kSegment;
  test::Bytes ulpdu{};
};

// One end with its memory. Does what the header of Endpoint asks of a half.
class MessageHalf {
 public:
  explicit MessageHalf(unsigned number, const Options& options = {}, rdmap::ReceiveSource* shared = nullptr);

  [[nodiscard]] Endpoint& core() { return core_; }
  [[nodiscard]] ddp::StagTable& stags() { return memory_.stags; }
  test::Region& region(std::size_t bytes, ddp::Access access = test::kLocal) { return memory_.region(bytes, access); }

  void start(Opening opening, TimePoint now);
  void establish(const Terms& terms, TimePoint now);
  void disconnect(TimePoint now);
  void leave(TimePoint now);
  void end(Input how, const Error& reason, TimePoint now);
  void expire(TimePoint now);

  // The next message, if there is one: a segment of at most `mulpdu` octets, or the end.
  [[nodiscard]] std::optional<Message> send(std::size_t mulpdu, TimePoint now);
  // `direct`: the payload is written where the endpoint says it belongs, not copied by it.
  void receive(const Message& message, bool direct, TimePoint now);

  // Posting with the result checked.
  void post(const rdmap::SendWr& wr) { EXPECT_TRUE(core_.post_send(wr).ok()); }
  void post(const rdmap::RecvWr& wr) { EXPECT_TRUE(core_.post_recv(wr).ok()); }

  bool established = false;
  std::optional<Ended> ended;
  std::vector<rdmap::Completion> sends, recvs;
  std::size_t sent_segments = 0;

 private:
  void collect();
  void receive_directly(ConstBytes ulpdu);
  [[nodiscard]] std::optional<Message> send_end();

  test::EndMemory memory_;
  Endpoint core_;
  bool told_end_ = false;
};

// Two of them.
struct MessagePair {
  // `shared`: where `b` takes its Receives.
  explicit MessagePair(const Options& options = {}, rdmap::ReceiveSource* shared = nullptr)
      : a(1, options), b(2, options, shared) {}

  // Full operation; `b` is the passive side, which may send at once.
  void establish(const Terms& of_a = kEight, const Terms& of_b = kEight);
  // Moves messages until none are left.
  void settle();
  // The next message from one to the other, if there is one.
  bool move(MessageHalf& from, MessageHalf& to);
  // Lets time pass to the next deadline of an end and tells it.
  void expire(MessageHalf& half);

  static constexpr Terms kEight{.ird = 8, .ord = 8};
  std::size_t mulpdu = 1000;
  bool direct = false;
  TimePoint now{std::chrono::seconds{1000}};
  MessageHalf a, b;
};

}  // namespace iwarp::endpoint
