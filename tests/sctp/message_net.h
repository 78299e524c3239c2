// Two associations over a net that shows every order: which message arrives next, when an end hears that all of its own
// have arrived, and what the applications do in between, is a choice; explore() runs through all of them. Time is the
// number of choices: nothing waits for a clock.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "iwarp/sctp/association.h"
#include "tests/support/hex.h"

namespace iwarp::sctp {

// Runs through all sequences of choices, as an odometer does.
class Chooser {
 public:
  // 0 to n-1. Precondition: n > 0.
  std::size_t choose(std::size_t n) {
    if (at_ == digits_.size()) digits_.push_back({0, n});
    return digits_[at_++].value;
  }
  // To the next sequence; false: that was the last.
  bool advance() {
    at_ = 0;
    while (!digits_.empty() && digits_.back().value + 1 == digits_.back().base) digits_.pop_back();
    if (digits_.empty()) return false;
    ++digits_.back().value;
    return true;
  }
  [[nodiscard]] std::string to_string() const {
    std::string out;
    for (const Digit& d : digits_) out += std::to_string(d.value) + "/" + std::to_string(d.base) + " ";
    return out;
  }

 private:
  struct Digit {
    std::size_t value, base;
  };
  std::vector<Digit> digits_;
  std::size_t at_ = 0;
};

enum class Decision : std::uint8_t { kAccept, kReject, kRefuse };

// What the applications of a scenario do. 0 is the end that begins the sessions.
struct Scenario {
  std::size_t sessions = 1;  // one after the other, or at once
  bool at_once = false;      // on streams of their own; else the next begins when the stream is free
  Decision decision = Decision::kAccept;
  std::array<int, 2> segments{1, 1};            // each end sends in each session, as soon as it may
  std::array<bool, 2> terminates{true, false};  // at any time, even before all segments have left
  bool when_all_sent = false;                   // but not before
  bool may_be_lost = false;                     // the association, at any time
  bool places = false;                          // both ends place what is early; else they keep it
};

// One run.
class MessageNet {
 public:
  MessageNet(const Scenario& scenario, Chooser& chooser)
      : scenario_(scenario),
        chooser_(chooser),
        ends_{End(Association::Side::kConnected), End(Association::Side::kAccepted)} {
    SessionOptions o;
    o.offer.peer_to_peer = false;
    for (std::size_t i = 0; i < (scenario.at_once ? scenario.sessions : 1); ++i) begin(o);
    pump();
  }

  void run() {
    for (int steps = 0; steps < 200 && step(); ++steps) {
    }
    check_end();
  }
  // Segments that were placed early.
  [[nodiscard]] int early() const { return ends_[0].early + ends_[1].early; }

 private:
  using Key = std::uint16_t;  // stream
  struct Life {               // of a session at one end
    int sent = 0;
    std::vector<int> got;
    std::map<std::uint64_t, int> placed;  // early, and not delivered yet: by position
    bool established = false, terminated = false, ended = false;
    std::string end;
  };
  struct UnderWay {
    StreamId stream;
    std::uint32_t ppid;
    test::Bytes bytes;
  };
  struct End {
    explicit End(Association::Side side) : association(std::make_unique<Association>(AssociationOptions{}, side)) {
      EXPECT_TRUE(association->up(1, 8, 8).ok());
    }
    std::unique_ptr<Association> association;
    std::map<Key, Life> lives;
    std::vector<UnderWay> out;  // to the other end
    std::size_t unacknowledged = 0;
    int early = 0;
  };

  void begin(const SessionOptions& o) {
    const auto stream = ends_[0].association->open(o, {}, TimePoint{});
    ASSERT_TRUE(stream.ok());
    ends_[0].lives[raw(*stream)] = {};
    ++begun_;
  }

  // One choice among what can happen; false: nothing can.
  bool step() {
    std::vector<std::function<void()>> may;
    for (std::size_t e = 0; e < 2 && !lost_; ++e) {
      End& end = ends_[e];
      for (std::size_t i = 0; i < end.out.size(); ++i) may.emplace_back([this, e, i] { deliver(e, i); });
      if (end.out.empty() && end.unacknowledged > 0) {
        may.emplace_back([&end] {
          end.unacknowledged = 0;
          end.association->all_arrived();
        });
      }
      for (auto& [id, life] : end.lives) {
        const StreamId stream{id};
        Life* l = &life;
        const bool all_sent = life.sent == scenario_.segments[e];
        if (!all_sent && may_send(e, stream)) may.emplace_back([this, e, stream, l] { send(e, stream, *l); });
        const bool time = all_sent || !scenario_.when_all_sent;
        if (scenario_.terminates[e] && time && !life.terminated && !life.ended && (e == 0 || life.established)) {
          may.emplace_back([&end, stream, l] {
            l->terminated = true;
            end.association->terminate(stream);
          });
        }
      }
    }
    if (!lost_ && !scenario_.at_once && begun_ < scenario_.sessions && free_again())
      may.emplace_back([this] { again(); });
    if (scenario_.may_be_lost && !lost_) may.emplace_back([this] { lose(); });
    if (may.empty()) return false;
    may[chooser_.choose(may.size())]();
    pump();
    return true;
  }

  [[nodiscard]] bool may_send(std::size_t e, StreamId stream) const {
    const Session* s = ends_[e].association->find(stream);
    return s != nullptr && s->may_send_segment();
  }
  void send(std::size_t e, StreamId stream, Life& life) {
    test::Bytes m(kSsnBytes);
    write_ssn(ends_[e].association->find(stream)->next_ssn(), m);
    m.push_back(static_cast<std::byte>(++life.sent));
    m.push_back(static_cast<std::byte>(0x80 | life.sent));  // its payload
    put(e, {stream, 16, m});
    ends_[e].association->segment_taken(stream);
  }
  void put(std::size_t e, UnderWay m) {
    if (m.ppid == 17) {  // RFC 5043 s6.6: nothing may overtake an earlier control message of its direction
      for (const UnderWay& other : ends_[e].out) {
        EXPECT_FALSE(other.ppid == 17 && other.stream == m.stream) << "two control messages at once";
      }
    }
    ends_[e].out.push_back(std::move(m));
    ++ends_[e].unacknowledged;
  }
  void deliver(std::size_t e, std::size_t i) {
    const UnderWay m = ends_[e].out[i];
    ends_[e].out.erase(ends_[e].out.begin() + static_cast<std::ptrdiff_t>(i));
    Message message{m.ppid, false, m.bytes};
    End& to = ends_[1 - e];
    if (const auto early = to.association->early(m.stream, message)) {
      Life& life = to.lives[raw(m.stream)];
      EXPECT_TRUE(life.established && !life.ended);
      EXPECT_EQ(early->segment.size(), 2u);
      if (scenario_.places) {
        EXPECT_TRUE(life.placed.emplace(early->position, std::to_integer<int>(early->segment[0])).second) << "once";
        message.placed = 1;
        message.bytes = message.bytes.first(message.bytes.size() - 1);
        ++to.early;
      }
    }
    EXPECT_TRUE(to.association->receive(m.stream, message).ok());
    drain(1 - e);
  }
  void lose() {
    lost_ = true;
    for (End& end : ends_) {
      end.out.clear();
      end.association->lost(make_error(Errc::kConnectionLost));
    }
  }
  [[nodiscard]] bool free_again() const {
    const Session* s = ends_[0].association->find(StreamId{0});
    return s != nullptr && s->leaves_stream_free();
  }
  void again() {
    const auto before = ends_[0].lives[0];
    EXPECT_TRUE(before.ended);
    const auto stream = ends_[0].association->open({}, {}, TimePoint{});
    EXPECT_TRUE(stream.ok());
    EXPECT_EQ(*stream, StreamId{0}) << "it is free";
    ends_[0].lives[0] = {};
    ++begun_;
  }

  void pump() {
    for (std::size_t e = 0; e < 2; ++e) {
      drain(e);
      while (const auto c = ends_[e].association->control()) {
        put(e, {c->stream, 17, {c->message.begin(), c->message.end()}});
        ends_[e].association->control_taken(c->stream);
        drain(e);
      }
    }
  }
  void drain(std::size_t e) {
    while (const auto event = ends_[e].association->poll_event()) on(e, event->stream, event->what);
  }
  void on(std::size_t e, StreamId stream, const Session::Event& event) {
    Life& life = ends_[e].lives[raw(stream)];
    if (std::holds_alternative<Session::Requested>(event)) {
      life = {};
      if (scenario_.decision == Decision::kAccept) {
        EXPECT_TRUE(ends_[e].association->accept(stream, {4, 4}, {}).ok());
      }
      if (scenario_.decision == Decision::kReject) {
        EXPECT_TRUE(ends_[e].association->reject(stream, {}).ok());
        life.ended = true;
        life.end = "rejected";
      }
      if (scenario_.decision == Decision::kRefuse) ends_[e].association->terminate(stream);
      return;
    }
    EXPECT_FALSE(life.ended) << "nothing is told behind the end";
    if (std::holds_alternative<Session::Established>(event)) {
      EXPECT_FALSE(life.established);
      life.established = true;
    } else if (const auto* d = std::get_if<Session::Delivered>(&event)) {
      EXPECT_TRUE(life.established);
      life.got.push_back(std::to_integer<int>(d->segment[0]));
      EXPECT_EQ(life.got.back(), static_cast<int>(life.got.size())) << "in order, once";
      EXPECT_EQ(d->segment.size() + d->placed, 2u);
      if (d->placed > 0) {
        EXPECT_FALSE(life.placed.empty());
        if (life.placed.empty()) return;
        EXPECT_EQ(life.placed.begin()->second, life.got.back()) << "the first of those that are placed";
        life.placed.erase(life.placed.begin());
      }
    } else if (const auto* ended = std::get_if<Session::Ended>(&event)) {
      life.ended = true;
      life.end = name(ended->error.code);
    } else {
      life.ended = true;
      life.end = "rejected";
    }
  }

  void check_end() {
    for (std::size_t e = 0; e < 2; ++e) {
      EXPECT_TRUE(ends_[e].association->idle());
      EXPECT_EQ(ends_[e].association->budget().held(), 0U);
      for (const auto& [stream, life] : ends_[e].lives) {
        EXPECT_TRUE(life.ended) << "end " << e;
        EXPECT_TRUE(life.end == "peer_closed" || life.end == "aborted" || life.end == "peer_rejected" ||
                    life.end == "rejected" || (lost_ && life.end == "connection_lost"))
            << life.end;
        // Whoever learnt of the peer's orderly end has all that the peer had sent before.
        if (life.established && life.end == "peer_closed") {
          EXPECT_EQ(static_cast<int>(life.got.size()), ends_[1 - e].lives.at(stream).sent);
          EXPECT_TRUE(life.placed.empty());
        }
      }
    }
    EXPECT_TRUE(lost_ || begun_ == scenario_.sessions);
  }

  Scenario scenario_;
  Chooser& chooser_;
  std::array<End, 2> ends_;
  std::size_t begun_ = 0;
  bool lost_ = false;
};

// All runs of a scenario; their number. `early`: to it is added how many segments were placed early.
inline std::size_t explore(const Scenario& scenario, int* early = nullptr) {
  constexpr std::size_t kLimit = 100'000;  // more are a mistake of the test
  Chooser chooser;
  std::size_t runs = 0;
  do {
    MessageNet net(scenario, chooser);
    net.run();
    if (early != nullptr) *early += net.early();
    ++runs;
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "run " << runs << ": " << chooser.to_string();
      break;
    }
    if (runs > kLimit) {
      ADD_FAILURE() << "more than " << kLimit << " runs";
      break;
    }
  } while (chooser.advance());
  return runs;
}

}  // namespace iwarp::sctp
