// Two ends over a net with virtual time that reorders and loses (what is lost comes again later, as with SCTP): Writes
// over each other, Sends and Reads, both ways at once, with data verified.
#include <deque>
#include <queue>
#include <tuple>

#include "tests/session/early_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::session {
namespace {

using test::Bytes;
using test::list;

constexpr std::size_t kArea = 8000, kLongest = 1500, kReceives = 40, kOperations = 1500;
constexpr std::size_t kStamp = 16;  // octets of a Write in front of each Send

struct Side : World::Peer {
  Side(unsigned number, const endpoint::Options& options, bool active)
      : Peer(number, options),
        session(active ? std::make_unique<sctp::Session>(sctp::SessionOptions{}, budget, ConstBytes{}, World::kNow)
                       : std::make_unique<sctp::Session>(sctp::SessionOptions{}, budget)),
        role(active ? sctp::Role::kActive : sctp::Role::kPassive),
        source(region(kArea, test::kRemoteAll)),
        area(region(kArea, test::kRemoteAll)),
        stamps(region(kOperations * kStamp, test::kRemoteAll)),
        sink(region(8 * kLongest)),
        inbox(region(kReceives * kLongest)),
        model(kArea) {
    fill(source, number);
  }

  sctp::HoldBudget budget;
  std::unique_ptr<sctp::Session> session;
  sctp::Role role;
  test::Region &source, &area, &stamps, &sink, &inbox;
  Bytes model;  // of the area, as the peer has written to it
  bool established = false;
  std::size_t posted = 0, sent = 0, received = 0, reads = 0, read = 0;
  std::deque<std::pair<std::size_t, std::size_t>> sends, asked;  // places in the source, and octets
  std::size_t most_kept = 0;
};

class Net {
 public:
  Net(unsigned seed, bool place) : random_(seed) {
    endpoint::Options options;
    options.place_early = place;
    options.rq_depth = kReceives;
    for (const bool active : {true, false}) {
      sides_.push_back(std::make_unique<Side>(active ? 1 : 2, options, active));
      sides_.back()->half.start(World::kNow);
      for (std::size_t i = 0; i < kReceives; ++i) post_receive(*sides_.back(), i);
    }
  }

  void run() {
    for (now_ = 0; now_ < 2'000'000 && !done(); ++now_) {
      for (std::size_t s = 0; s < 2; ++s) {
        while (!under_way_.empty() && under_way_.top().at <= now_) deliver();
        post_something(*sides_[s], *sides_[1 - s]);
        send_one(s);
        ASSERT_FALSE(::testing::Test::HasFailure());
      }
    }
    for (const auto& side : sides_) {
      EXPECT_EQ(side->posted, kOperations);
      EXPECT_EQ(side->area.bytes(), side->model);
      EXPECT_EQ(side->budget.held(), 0u);
    }
  }
  [[nodiscard]] const Side& side(std::size_t s) const { return *sides_[s]; }

 private:
  struct UnderWay {
    std::uint64_t at, number;
    std::size_t to;
    std::uint32_t ppid;
    Bytes octets;
    bool operator>(const UnderWay& other) const { return std::tie(at, number) > std::tie(other.at, other.number); }
  };

  [[nodiscard]] bool done() const {
    return under_way_.empty() && std::all_of(sides_.begin(), sides_.end(), [](const auto& s) {
             return s->posted == kOperations && s->sends.empty() && s->asked.empty() && !s->core.ready();
           });
  }
  std::size_t draw(std::size_t n) { return random_() % n; }

  static void post_receive(Side& side, std::size_t i) {
    ASSERT_TRUE(side.core.post_recv({.wr_id = i, .sges = list({side.inbox.sge(i * kLongest, kLongest)})}));
  }
  void post_something(Side& from, Side& to) {
    if (!from.established || !to.established || from.posted == kOperations || from.core.sends_posted() > 20) return;
    const std::size_t bytes = 1 + draw(kLongest - 1), at = draw(kArea - bytes);
    const auto own = list({from.source.sge(at, bytes)});
    switch (draw(4)) {
      case 0:
        if (from.asked.size() == 8) return;
        ASSERT_TRUE(from.core.post_send(
            test::read_wr(from.posted, list({from.sink.sge(from.reads++ % 8 * kLongest, bytes)}), to.source, at)));
        from.asked.emplace_back(at, bytes);
        break;
      case 1: {
        if (to.sends.size() == kReceives) return;
        const auto stamp = list({from.source.sge(at, kStamp)});
        if (at + kStamp > kArea) return;
        ASSERT_TRUE(from.core.post_send(test::write_wr(from.posted, stamp, to.stamps, to.sent++ * kStamp)));
        ASSERT_TRUE(from.core.post_send(test::send_wr(from.posted, own)));
        to.sends.emplace_back(at, bytes);
        break;
      }
      default: {
        const std::size_t target = draw(kArea - bytes);
        ASSERT_TRUE(from.core.post_send(test::write_wr(from.posted, own, to.area, target)));
        std::copy_n(from.source.bytes().begin() + static_cast<std::ptrdiff_t>(at), bytes,
                    to.model.begin() + static_cast<std::ptrdiff_t>(target));
      }
    }
    ++from.posted;
  }

  void send_one(std::size_t s) {
    Side& side = *sides_[s];
    if (const ConstBytes control = side.session->control(); !control.empty()) {
      put(1 - s, 17, control);
      side.session->control_taken();
      return;
    }
    const MutBytes message = side.half.next(World::kMulpdu, World::kNow);
    if (message.empty() || !side.session->may_send_segment()) return;
    sctp::write_ssn(side.session->next_ssn(), message);
    put(1 - s, 16, message);
    side.session->segment_taken();
    side.half.taken(World::kNow);
    collect(side, *sides_[1 - s]);
  }
  void put(std::size_t to, std::uint32_t ppid, ConstBytes octets) {
    const std::uint64_t delay = draw(100) == 0 ? 3000 : draw(60);
    under_way_.push({now_ + delay, number_++, to, ppid, {octets.begin(), octets.end()}});
  }
  void deliver() {
    const UnderWay m = under_way_.top();
    under_way_.pop();
    Side& side = *sides_[m.to];
    Side& from = *sides_[1 - m.to];
    from.session->arrived(1);
    sctp::Message message{m.ppid, false, m.octets};
    if (const auto early = side.session->early(message)) {
      message.placed = side.half.on_early(*early);
      message.bytes = message.bytes.first(message.bytes.size() - message.placed);
    }
    side.session->receive(message);
    side.most_kept = std::max(side.most_kept, side.budget.held());
    while (const auto event = side.session->poll_event()) {
      if (std::holds_alternative<sctp::Session::Requested>(*event)) {
        ASSERT_TRUE(side.session->accept({8, 8}, {}).ok());
        continue;
      }
      side.established |= std::holds_alternative<sctp::Session::Established>(*event);
      side.half.on_event(*event, side.role, World::kNow);
      collect(side, from);
    }
    ASSERT_TRUE(side.core.phase() == endpoint::Phase::kFull || !side.established);
  }
  // Completions of a side, each with its data.
  void collect(Side& side, Side& peer) {
    while (const auto c = side.core.poll_recv()) {
      ASSERT_EQ(c->status, Errc::kOk);
      ASSERT_FALSE(side.sends.empty());
      const auto [at, bytes] = side.sends.front();
      side.sends.pop_front();
      ASSERT_EQ(c->byte_len, bytes);
      ASSERT_TRUE(same(side.inbox, c->wr_id * kLongest, peer.source, at, bytes));
      ASSERT_TRUE(same(side.stamps, side.received++ * kStamp, peer.source, at, kStamp)) << "the Write in front of it";
      post_receive(side, c->wr_id);
    }
    while (const auto c = side.core.poll_send()) {
      ASSERT_EQ(c->status, Errc::kOk);
      if (c->op != rdmap::WcOp::kRead) continue;
      ASSERT_FALSE(side.asked.empty());
      const auto [at, bytes] = side.asked.front();
      side.asked.pop_front();
      ASSERT_TRUE(same(side.sink, side.read++ % 8 * kLongest, peer.source, at, bytes));
    }
  }
  static bool same(test::Region& one, std::size_t at, test::Region& other, std::size_t from, std::size_t bytes) {
    return std::equal(one.bytes().begin() + static_cast<std::ptrdiff_t>(at),
                      one.bytes().begin() + static_cast<std::ptrdiff_t>(at + bytes),
                      other.bytes().begin() + static_cast<std::ptrdiff_t>(from));
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::priority_queue<UnderWay, std::vector<UnderWay>, std::greater<>> under_way_;
  std::uint64_t now_ = 0, number_ = 0;
};

TEST(EarlyNet, BothWaysAtOnceWithLossAndDelay) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-3-7");
  COVERS("RFC5041-5.3-8");
  COVERS("RFC5041-5.4-4");
  COVERS("RFC5041-5.4-5");
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    Net placed(seed, true), kept(seed, false);
    placed.run();
    kept.run();
    for (const std::size_t s : {0u, 1u}) {
      EXPECT_GT(placed.side(s).core.rx_counters().early, 1000u);
      EXPECT_EQ(kept.side(s).core.rx_counters().early, 0u);
      EXPECT_LT(placed.side(s).most_kept, kept.side(s).most_kept / 2);
    }
  }
}

}  // namespace
}  // namespace iwarp::session
