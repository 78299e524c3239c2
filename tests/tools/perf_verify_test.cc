// The pass of `iwarp perf` that compares data sees when it is not what was sent: each end against one that lies.
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <thread>

#include "tests/tools/perf_ends.h"
#include "tools/perf/rdma_tests.h"

namespace iwarp::tools::perf {
namespace {

Spec spec_of(Test test, std::uint32_t size) {
  Spec s;
  s.test = test;
  s.size = size;
  s.manual = test == Test::kWriteLat;
  return s;
}

// A passive end that says that all is well, or what else it is given, and neither fills, compares nor writes. Sends
// come back as zeros.
class Liar {
 public:
  explicit Liar(const Spec& spec, Note says = Note::kGood) : spec_(spec), says_(says), engine_(mode_of(spec)) {
    cm::ListenOptions o;
    o.endpoint = {boost::asio::ip::make_address(kHost), 0};
    o.policy = policy_of(spec);
    layer_ = lower_layer_of(spec, engine_);
    auto listener = layer_->listen(o);
    if (!listener) throw std::runtime_error(listener.error().why);
    listener_ = std::move(*listener);
    thread_ = std::jthread([this] { serve(); });
  }
  [[nodiscard]] std::uint16_t port() const { return listener_->local().port(); }

 private:
  void serve() {
    Told<std::unique_ptr<llp::ConnectRequest>> told;
    listener_->accept(told.handler());
    auto [error, request] = await(engine_, spec_.manual, told.result());
    const std::size_t receives = spec_.test == Test::kSendLat ? kLatencyReceives : 0;
    RdmaSide side(spec_, engine_, receives);
    for (std::size_t i = 0; i < receives; ++i) side.post_receive(i, side.slice(i * spec_.size, spec_.size));
    side.accept(*request);
    std::array<verbs::Completion, 4> completions;
    while (!side.ended()) {
      for (const auto& c : side.poll(completions)) {
        Message m;
        if (side.is_note(c, m)) {
          side.say({says_, m.value});
        } else if (c.op == verbs::WcOp::kRecv) {
          const verbs::SendWr wr{.sges = side.slice(side.region().size() / 2, spec_.size), .signaled = false};
          side.post({&wr, 1});
        }
      }
      side.progress();
    }
  }

  Spec spec_;
  Note says_;
  cm::Engine engine_;
  LayerHandle layer_;
  std::unique_ptr<llp::Listener> listener_;
  std::jthread thread_;
};

class Latency : public ::testing::TestWithParam<Test> {};

TEST_P(Latency, OfAnHonestEndIsVerified) {
  for (const std::uint32_t size : {1U, 8U, 1000U, 300'000U}) {
    const Spec spec = spec_of(GetParam(), size);
    const Honest other(spec);
    const auto active = connect_rdma(spec, kHost, other.port());
    EXPECT_NO_THROW(active->verify()) << size;
    (void)active->run(std::chrono::milliseconds{1});
    EXPECT_NO_THROW(active->verify()) << size;
  }
}

TEST_P(Latency, SeesThatNothingComesBack) {
  for (const std::uint32_t size : {8U, 1000U}) {
    const Spec spec = spec_of(GetParam(), size);
    const Liar other(spec);
    const auto active = connect_rdma(spec, kHost, other.port());
    EXPECT_THROW(active->verify(), std::runtime_error) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Tests, Latency, ::testing::Values(Test::kWriteLat, Test::kReadLat, Test::kSendLat),
                         [](const auto& p) { return std::string(name(p.param)); });

// An active end that does what the test makes it do.
class Scripted {
 public:
  explicit Scripted(const Spec& spec) : other_(spec), engine_(mode_of(spec)), side_(spec, engine_, 0) {
    side_.connect(kHost, other_.port());
  }
  [[nodiscard]] RdmaSide& side() { return side_; }

  // Sends the message that belongs into slot `number`, saying it is the one of slot `says`.
  void send(std::uint32_t number, std::uint32_t says) {
    const std::size_t size = side_.spec().size;
    std::byte* at = &side_.region()[number * size];
    write_message(at, {Note::kVerify, says});
    fill_pattern(at + kNoteBytes, size - kNoteBytes, number);
    const verbs::SendWr wr{.sges = side_.slice(number * size, size), .signaled = false};
    side_.post({&wr, 1});
  }
  // Credits are no answer.
  Note ask(Message m) {
    side_.say(m);
    std::array<verbs::Completion, 1> completion;
    for (Message answer;;) {
      const auto got = side_.wait(completion);
      if (got.empty()) throw std::runtime_error("the connection has ended");
      if (side_.is_note(got.front(), answer) && answer.note != Note::kCredit) return answer.note;
    }
  }

 private:
  Honest other_;
  cm::Engine engine_;
  RdmaSide side_;
};

TEST(ReadBandwidth, SeesThatNothingComes) {
  const Spec spec = spec_of(perf::Test::kReadBw, 4096);
  const Liar other(spec);
  EXPECT_THROW(connect_rdma(spec, kHost, other.port())->verify(), std::runtime_error);
}

TEST(WriteBandwidth, AsksTheOtherEnd) {
  const Spec spec = spec_of(perf::Test::kWriteBw, 4096);
  const Liar other(spec, Note::kBad);
  EXPECT_THROW(connect_rdma(spec, kHost, other.port())->verify(), std::runtime_error);
}

TEST(WriteBandwidth, OtherEndSeesThatNothingWasWritten) {
  Scripted end(spec_of(perf::Test::kWriteBw, 4096));
  EXPECT_EQ(end.ask({Note::kVerify, 7}), Note::kBad);
  EXPECT_EQ(end.ask({Note::kEnd, 0}), Note::kGood);
}

TEST(Bandwidth, OfAnHonestEndIsVerified) {
  for (const perf::Test test : {perf::Test::kWriteBw, perf::Test::kReadBw, perf::Test::kSendBw}) {
    const Spec spec = spec_of(test, 4096);
    const Honest other(spec);
    const auto active = connect_rdma(spec, kHost, other.port());
    EXPECT_NO_THROW(active->verify()) << name(test);
    (void)active->run(std::chrono::milliseconds{1});
    EXPECT_NO_THROW(active->verify()) << name(test);
  }
}

TEST(WriteLatency, OtherEndSeesThatNothingWasWritten) {
  Scripted end(spec_of(perf::Test::kWriteLat, 8));
  EXPECT_EQ(end.ask({Note::kVerify, 0}), Note::kBad);
}

TEST(SendRate, OtherEndComparesMessagesOfEightOctets) {
  Scripted end(spec_of(perf::Test::kSendRate, 8));
  const auto send = [&](std::initializer_list<std::uint32_t> numbers) {
    for (const std::uint32_t n : numbers) end.send(n, n);
  };
  send({0, 1, 2});
  EXPECT_EQ(end.ask({Note::kEnd, 3}), Note::kGood);
  send({0, 2, 1});
  EXPECT_EQ(end.ask({Note::kEnd, 3}), Note::kBad) << "out of order";
  send({0, 1});
  EXPECT_EQ(end.ask({Note::kEnd, 3}), Note::kBad) << "one is missing";
  EXPECT_EQ(end.ask({Note::kEnd, 0}), Note::kGood) << "as after a run that is measured";
}

TEST(SendRate, OtherEndComparesWhatFollowsTheFirstEight) {
  Scripted end(spec_of(perf::Test::kSendRate, 100));
  end.send(0, 0);
  end.send(1, 1);
  EXPECT_EQ(end.ask({Note::kEnd, 2}), Note::kGood);
  end.send(0, 0);
  end.send(2, 1);
  EXPECT_EQ(end.ask({Note::kEnd, 2}), Note::kBad);
}

}  // namespace
}  // namespace iwarp::tools::perf
