// An endpoint on a passive session, and a peer whose segments are recorded: they arrive in whatever order, and are
// placed early or kept, as a driver does it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "iwarp/session/half.h"
#include "tests/support/end_memory.h"

namespace iwarp::session {

// With octets that tell a place from any other.
inline void fill(test::Region& region, unsigned seed) {
  std::minstd_rand random(seed + 1);
  for (std::byte& octet : region.bytes()) octet = static_cast<std::byte>(random() >> 8);
}

class World {
 public:
  static constexpr std::size_t kMulpdu = 600;
  static constexpr TimePoint kNow{std::chrono::seconds(1000)};

  struct Peer : test::EndMemory {
    explicit Peer(unsigned number, const endpoint::Options& options, rdmap::ReceiveSource* shared = nullptr)
        : EndMemory({PdId{number}, ddp::StreamId{100 + number}}), core(stags, key, options, shared), half(core) {}
    endpoint::Endpoint core;
    Half half;
  };

  // `b` is the end under test. Established, with 8 Reads each way.
  explicit World(const endpoint::Options& options = {}, const sctp::SessionOptions& session = {},
                 rdmap::ReceiveSource* shared = nullptr)
      : a(1, options), b(2, options, shared), session_(session, budget_) {
    a.half.start(kNow);
    b.half.start(kNow);
    sctp::Session::Established e;
    e.settled.depths = {8, 8};
    a.half.on_event(sctp::Session::Event{e}, sctp::Role::kActive, kNow);
    const test::Bytes initiate = test::hex("00000001");
    give({17, false, initiate});
    EXPECT_TRUE(session_.accept({8, 8}, {}).ok());
    drain();
    session_.control_taken();
    session_.arrived(1);
  }

  // What wants to leave, as segments.
  static std::vector<test::Bytes> send(Peer& from) {
    std::vector<test::Bytes> out;
    for (auto m = from.half.next(kMulpdu, kNow); !m.empty(); m = from.half.next(kMulpdu, kNow)) {
      out.emplace_back(m.begin() + sctp::kSsnBytes, m.end());
      from.half.taken(kNow);
    }
    return out;
  }
  // Of b, to be answered by a; then what a has to say is recorded.
  void ask() {
    for (const test::Bytes& segment : send(b))
      a.half.on_event(sctp::Session::Event{sctp::Session::Delivered{segment}}, sctp::Role::kActive, kNow);
    record();
  }
  void record() {
    for (test::Bytes& segment : send(a)) segments.push_back(std::move(segment));
  }

  // The i-th segment arrives at b.
  void arrive(std::size_t i) {
    test::Bytes octets(sctp::kSsnBytes);
    sctp::write_ssn(sctp::DdpSsn{static_cast<std::uint16_t>(i + 1)}, octets);
    octets.insert(octets.end(), segments[i].begin(), segments[i].end());
    sctp::Message message{16, false, octets};
    if (const auto early = session_.early(message)) {
      message.placed = place(*early);
      message.bytes = message.bytes.first(message.bytes.size() - message.placed);
    }
    give(message);
    answer();
  }
  void arrive_in(const std::vector<std::size_t>& order) {
    for (const std::size_t i : order) arrive(i);
  }
  // The association is lost: an end that waits for the peer's is told.
  void lose() {
    session_.lost(make_error(Errc::kConnectionLost));
    drain();
  }
  // Behind a call of the application.
  void look() {
    while (const auto c = b.core.poll_recv()) log.push_back("recv " + text(*c));
    while (const auto c = b.core.poll_send()) log.push_back("send " + text(*c));
    while (const auto event = b.core.poll_event()) {
      if (const auto* e = std::get_if<endpoint::Ended>(&*event)) {
        log.push_back(std::string("ended ") + name(e->reason.code) + (e->sent ? " " + test::to_hex(octets(*e)) : ""));
      }
    }
  }

  [[nodiscard]] std::vector<test::Bytes> memory() const {
    std::vector<test::Bytes> out;
    for (const auto& region : b.regions) out.push_back(region->bytes());
    return out;
  }
  [[nodiscard]] const rdmap::RxCounters& counters() const { return b.core.rx_counters(); }
  [[nodiscard]] const sctp::HoldBudget& budget() const { return budget_; }

  Peer a, b;
  std::function<std::size_t(const sctp::Session::Early&)> place = [this](const sctp::Session::Early& early) {
    return b.half.on_early(early);
  };
  std::vector<test::Bytes> segments;  // of a, in the order sent
  std::vector<std::string> log;       // what b's application has heard
  std::vector<test::Bytes> answers;   // what b has sent

 private:
  static test::Bytes octets(const endpoint::Ended& e) {
    test::Bytes out(e.sent->size());
    e.sent->write_to(out);
    return out;
  }
  static std::string text(const rdmap::Completion& c) {
    std::string out = std::to_string(c.wr_id) + " " + name(c.status);
    if (c.status != Errc::kOk) return out;
    return out + " " + std::to_string(c.byte_len) + (c.invalidated ? " invalidated" : "");
  }
  void answer() {
    for (test::Bytes& segment : send(b)) answers.push_back(std::move(segment));
    look();
  }
  void give(const sctp::Message& message) {
    session_.receive(message);
    drain();
  }
  void drain() {
    while (const auto event = session_.poll_event()) {
      if (std::holds_alternative<sctp::Session::Requested>(*event)) continue;
      b.half.on_event(*event, sctp::Role::kPassive, kNow);
      answer();  // before the next: what an end has sent by then is the same in whatever order segments come
    }
    EXPECT_TRUE(session_.is_consistent());
    EXPECT_TRUE(b.core.is_consistent());
  }

  sctp::HoldBudget budget_;
  sctp::Session session_;
};

// All orders of `count` things.
template <class Use>
void each_order(std::size_t count, const Use& use) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    use(order);
  } while (!::testing::Test::HasFailure() && std::next_permutation(order.begin(), order.end()));
}

inline std::string text(const std::vector<std::size_t>& order) {
  std::string out = "order";
  for (const std::size_t i : order) out += " " + std::to_string(i);
  return out;
}

}  // namespace iwarp::session
