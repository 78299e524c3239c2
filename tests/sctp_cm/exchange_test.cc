// The exchange that interop/run sctp-* has with the kernel's SCTP, between two ends of our own: so a fault of the
// exchange itself is found here.
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "iwarp/cm/completion_queue.h"
#include "tests/sctp_cm/exchange.h"
#include "tests/sctp_cm/net.h"
#include "tests/sctp_cm/service_net.h"

namespace iwarp::sctp_cm {
namespace {

class SctpExchange : public SctpServiceBase {
 protected:
  SctpExchange() : SctpServiceBase(cm::Engine::Mode::kManual) {}

  void TearDown() override {
    ending = true;
    SctpServiceBase::TearDown();
    x.reset();
    y.reset();
  }
  // Both ends, to their end.
  void run(std::uint32_t rounds_x, std::uint32_t rounds_y, const ConnectOptions& to) {
    x = std::make_unique<Exchange>(cq, pd, sctp::Role::kActive, rounds_x);
    y = std::make_unique<Exchange>(cq, pd, sctp::Role::kPassive, rounds_y);
    listener->accept([this](const Error& error, const std::unique_ptr<ConnectRequest>& request) {
      if (error) return;
      request->accept(y->qp(), {8, 8, y->hello()}, [this](const Error& e, auto connection) {
        if (!ending) y->on_established(e, std::move(connection));
      });
    });
    ConnectOptions options = to;
    options.private_data = x->hello();
    sctp->connect(x->qp(), options, [this](const Error& e, auto connection) {
      if (!ending) x->on_established(e, std::move(connection));
    });
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!(x->over() && y->over()) && std::chrono::steady_clock::now() < end) {
      cq.wait_for(20ms);
      std::array<verbs::Completion, 32> some;
      const std::size_t n = cq.poll(some);
      for (std::size_t i = 0; i < n; ++i) static_cast<Exchange*>(some[i].user)->on_completion(some[i]);
      x->step();
      y->step();
    }
    EXPECT_TRUE(x->over() && y->over());
    EXPECT_EQ(x->taken(), rounds_y);
    EXPECT_EQ(y->taken(), rounds_x);
  }

  cm::CompletionQueue cq{engine, 2 * Exchange::kCompletions};
  std::unique_ptr<Exchange> x, y;
  bool ending = false;
};

TEST_F(SctpExchange, EndsWhenBothHaveDoneTheirRounds) {
  listen();
  run(20, 13, to_listener());
  EXPECT_EQ(x->connection()->counters().tx.writes, 20u);
  EXPECT_EQ(x->connection()->counters().rx.writes, 13u);
  EXPECT_EQ(y->connection()->counters().rx.sends, 20u + 13u + 1u);
}

TEST_F(SctpExchange, HasNoRoundsAtAll) {
  listen();
  run(0, 0, to_listener());
}

TEST_F(SctpExchange, BeginsWithTheRtr) {
  listen();
  ConnectOptions options = to_listener();
  options.session.offer.peer_to_peer = true;
  run(2, 3, options);
}

// As interop/guest/sctp_exchange.py has it.
TEST(SctpExchangePattern, IsThatOfTheOtherEnd) {
  const std::vector<std::byte> expected{std::byte{0xc6}, std::byte{0x7e}, std::byte{0x81}, std::byte{0x6b},
                                        std::byte{0x4b}, std::byte{0xfb}, std::byte{0xe2}, std::byte{0xfb}};
  EXPECT_EQ(exchange_pattern(0, 8), expected);
  EXPECT_EQ(exchange_pattern(20003, 3), (std::vector<std::byte>{std::byte{0xc0}, std::byte{0xc5}, std::byte{0xc4}}));
}

}  // namespace
}  // namespace iwarp::sctp_cm
