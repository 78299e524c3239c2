// The pass of the baselines that compares data: each end of the raw tests against one that lies.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "iwarp/base/wire.h"
#include "tests/support/tcp_sockets.h"
#include "tests/tools/perf_ends.h"
#include "tools/perf/tcp_socket.h"

namespace iwarp::tools::perf {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr std::byte kEnd{1};     // the first octet of a run's last buffer
constexpr std::byte kVerify{2};  // the first octet of a buffer that carries the pattern
constexpr std::byte kGood{10};   // answers
constexpr std::byte kBad{11};

Spec spec_of(Test test, std::uint32_t size, bool fetch = false) {
  Spec s;
  s.test = test;
  s.fetch = fetch;
  s.size = s.call = size;
  return s;
}

// Accepts one connection, and converses with it in a thread of its own.
class Other {
 public:
  explicit Other(const std::function<void(const TcpSocket&)>& converse)
      : thread_([this, converse](const std::stop_token& stop) {
          TcpSocket socket;
          while (!socket && !stop.stop_requested()) socket = listener_.accept(false);
          if (socket) converse(socket);
        }) {}
  [[nodiscard]] std::uint16_t port() const { return listener_.local().port(); }

 private:
  TcpSocket listener_ = TcpSocket::listen(kHost);
  std::jthread thread_;
};

struct Between {
  Test test;
  bool fetch;
};
class Congestion : public ::testing::TestWithParam<Between> {};

TEST_P(Congestion, IsThatOfBothEnds) {
  Spec spec = spec_of(GetParam().test, 1000, GetParam().fetch);
  spec.congestion = "reno";  // every kernel has it, and allows it to everyone unless told otherwise
  const Honest passive(spec);
  const auto active = connect(spec, passive.port());
  active->verify();
  const auto found = test::congestion_controls(passive.port());
  EXPECT_THAT(found, SizeIs(3));  // listening, and both ends
  EXPECT_THAT(found, Each("reno"));
}

INSTANTIATE_TEST_SUITE_P(Ways, Congestion,
                         ::testing::Values(Between{Test::kTcpBw, false}, Between{Test::kTcpBw, true},
                                           Between{Test::kTcpLat, false}, Between{Test::kTcpRate, false},
                                           Between{Test::kWriteBw, false}, Between{Test::kReadLat, false}));

TEST(CongestionOfPlainTcp, MustBeKnownToTheKernel) {
  Spec spec = spec_of(perf::Test::kTcpBw, 1000);
  spec.congestion = "nonesuch";
  EXPECT_THAT([&] { (void)listen_raw(spec, kHost); },
              ThrowsMessage<std::runtime_error>(HasSubstr("nonesuch: the kernel has no")));
}

class Stream : public ::testing::TestWithParam<Test> {};

// The listening end, asked about what is right and what is not.
TEST_P(Stream, ReceiverComparesEveryBuffer) {
  const Spec spec = spec_of(GetParam(), 1000);
  const auto passive = listen_raw(spec, kHost);
  std::atomic<bool> stop{false};
  const std::jthread thread([&] { passive->serve(stop); });
  const TcpSocket socket = TcpSocket::connect(kHost, passive->port(), false);
  std::vector<std::byte> buffer(spec.size);
  const auto ask = [&](std::uint64_t seed, std::size_t damaged) {
    buffer[0] = kVerify;
    fill_pattern(&buffer[1], buffer.size() - 1, seed);
    if (damaged > 0) buffer[damaged] ^= std::byte{1};
    socket.send_all(buffer.data(), buffer.size());
    std::byte answer{};
    EXPECT_TRUE(socket.receive_all(&answer, 1));
    return answer;
  };
  EXPECT_EQ(ask(0, 0), kGood);
  EXPECT_EQ(ask(1000, 0), kGood);
  EXPECT_EQ(ask(2000, 1), kBad);
  EXPECT_EQ(ask(3000, 999), kBad);
  EXPECT_EQ(ask(5000, 0), kBad) << "another buffer's";
}

TEST_P(Stream, SenderHearsThatItArrivedDamaged) {
  const Spec spec = spec_of(GetParam(), 1000);
  const Other other([&](const TcpSocket& socket) {
    std::vector<std::byte> buffer(spec.size);
    while (socket.receive_all(buffer.data(), buffer.size())) socket.send_all(&kBad, 1);
  });
  const auto active = connect_raw(spec, kHost, other.port());
  EXPECT_THAT([&] { active->verify(); }, ThrowsMessage<std::runtime_error>(HasSubstr("damaged")));
}

TEST_P(Stream, OfAnHonestEndIsVerified) {
  for (const bool nodelay : {false, true}) {
    Spec spec = spec_of(GetParam(), 32);
    spec.nodelay = nodelay;
    const auto passive = listen_raw(spec, kHost);
    std::atomic<bool> stop{false};
    const std::jthread thread([&] { passive->serve(stop); });
    const auto active = connect_raw(spec, kHost, passive->port());
    EXPECT_NO_THROW(active->verify());
    EXPECT_GT(active->run(std::chrono::milliseconds{1}).operations, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Tests, Stream, ::testing::Values(Test::kTcpBw, Test::kTcpRate),
                         [](const auto& p) { return std::string(name(p.param)); });

// The same where the listening end sends.

TEST(Fetch, IsVerified) {
  for (const bool spin : {false, true}) {
    Spec spec = spec_of(perf::Test::kTcpBw, 1000, true);
    spec.manual = spin;
    const auto passive = listen_raw(spec, kHost);
    std::atomic<bool> stop{false};
    const std::jthread thread([&] { passive->serve(stop); });
    const auto active = connect_raw(spec, kHost, passive->port());
    EXPECT_NO_THROW(active->verify());
    const Sample sample = active->run(std::chrono::milliseconds{1});
    EXPECT_GT(sample.operations, 0U);
    EXPECT_EQ(sample.octets, sample.operations * 1000);
  }
}

TEST(Fetch, ReceiverComparesEveryBuffer) {
  const Spec spec = spec_of(perf::Test::kTcpBw, 1000, true);
  const std::size_t buffers = spec.region_bytes() / spec.size;
  for (const std::size_t damaged : {std::size_t{0}, std::size_t{1}, buffers - 1, buffers}) {  // the last: none
    const Other other([&](const TcpSocket& socket) {
      std::vector<std::byte> request(8), buffer(spec.size);
      if (!socket.receive_all(request.data(), request.size())) return;
      for (std::size_t i = 0; i < buffers; ++i) {
        buffer[0] = kVerify;
        fill_pattern(&buffer[1], buffer.size() - 1, i * spec.size);
        if (i == damaged) buffer[999] ^= std::byte{1};
        socket.send_all(buffer.data(), buffer.size());
        std::byte answer{};
        if (!socket.receive_all(&answer, 1)) return;
        EXPECT_EQ(answer, i == damaged ? kBad : kGood);
      }
    });
    const auto active = connect_raw(spec, kHost, other.port());
    if (damaged == buffers) {
      EXPECT_NO_THROW(active->verify());
    } else {
      EXPECT_THAT([&] { active->verify(); }, ThrowsMessage<std::runtime_error>(HasSubstr("damaged")));
    }
  }
}

// The passive end, asked by a socket.
class FetchServer : public ::testing::Test {
 protected:
  void ask(std::uint64_t nanoseconds) const {
    std::array<std::byte, 8> request{};
    store_be(request, nanoseconds);
    socket_.send_all(request.data(), request.size());
  }

  const Spec spec_ = spec_of(perf::Test::kTcpBw, 1000, true);
  const std::unique_ptr<Passive> passive_ = listen_raw(spec_, kHost);
  std::atomic<bool> stop_{false};
  std::future<void> served_ = std::async(std::launch::async, [this] { passive_->serve(stop_); });
  const TcpSocket socket_ = TcpSocket::connect(kHost, passive_->port(), false);
};

TEST_F(FetchServer, IsContentWhenTheTestEndsBeforeItHasSeenTheLastAnswer) {
  ask(1'000'000);
  std::vector<std::byte> buffer(spec_.size);
  while (socket_.receive_all(buffer.data(), buffer.size()) && buffer[0] != kEnd) {
  }
  EXPECT_EQ(buffer[0], kEnd);
  stop_ = true;
  EXPECT_NO_THROW(served_.get());
}

class TooLong : public FetchServer, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(TooLong, IsRefused) {
  ask(GetParam());
  const bool ended = served_.wait_for(std::chrono::seconds{10}) == std::future_status::ready;
  stop_ = true;
  ASSERT_TRUE(ended);
  EXPECT_THAT([&] { served_.get(); }, ThrowsMessage<std::runtime_error>(HasSubstr("more than an hour")));
}

INSTANTIATE_TEST_SUITE_P(Runs, TooLong,
                         ::testing::Values(3'600'000'000'001, std::uint64_t{1} << 63, ~std::uint64_t{0}));

TEST(Fetch, SaysThatTheOtherEndHasGone) {
  const Other other([](const TcpSocket&) {});
  const auto active = connect_raw(spec_of(perf::Test::kTcpBw, 1000, true), kHost, other.port());
  EXPECT_THROW(active->run(std::chrono::milliseconds{1}), Gone);
}

TEST(RawLatency, SeesThatSomethingElseComesBack) {
  const Spec spec = spec_of(perf::Test::kTcpLat, 8);
  const Other other([&](const TcpSocket& socket) {
    std::vector<std::byte> buffer(spec.size);
    while (socket.receive_all(buffer.data(), buffer.size())) {
      std::fill(buffer.begin(), buffer.end(), std::byte{0});
      socket.send_all(buffer.data(), buffer.size());
    }
  });
  const auto active = connect_raw(spec, kHost, other.port());
  EXPECT_THAT([&] { active->verify(); }, ThrowsMessage<std::runtime_error>(HasSubstr("damaged")));
}

}  // namespace
}  // namespace iwarp::tools::perf
