// The RPC tests of `iwarp perf`: their program, and each end against one that lies.
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <thread>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/client.h"
#include "iwarp/rpc/iwarp_transport.h"
#include "iwarp/rpc/server.h"
#include "tests/tools/perf_ends.h"
#include "tools/perf/rpc_program.h"
#include "tools/perf/rpc_tests.h"
#include "tools/perf/tcp_socket.h"

namespace iwarp::tools::perf {
namespace {

constexpr auto kTests = {perf::Test::kRpcNull, perf::Test::kRpcRead, perf::Test::kRpcWrite};
constexpr auto kTcpTests = {perf::Test::kTcpRpcNull, perf::Test::kTcpRpcRead, perf::Test::kTcpRpcWrite};

Spec spec_of(perf::Test test, std::uint32_t size = 1000) {
  Spec s;
  s.test = test;
  s.size = size;
  s.depth = 1;
  return s;
}

rpc::Octets words(std::initializer_list<std::uint32_t> values) {
  rpc::Octets out(values.size() * 4);
  WriteCursor cursor(out);
  for (const std::uint32_t v : values) cursor.be(v);
  return out;
}

TEST(RpcProgram, AnswersWhatRpcUseAsksFor) {
  for (const auto test : kTests) {
    for (const std::uint32_t size : {1U, 2U, 4U, 1001U}) {
      const Spec spec = spec_of(test, size);
      const RpcProgram program(spec);
      const RpcUse use(spec);
      const auto measured = program.answer(use.procedure().procedure, use.arguments());
      ASSERT_TRUE(measured) << name(test) << ' ' << size;
      EXPECT_TRUE(use.answered(*measured));
      EXPECT_LE(measured->size(), use.most_results());
      const auto compared = program.answer(use.procedure().procedure, use.arguments(5));
      ASSERT_TRUE(compared);
      EXPECT_TRUE(use.answered(*compared, 5));
      EXPECT_EQ(use.payload(), test == perf::Test::kRpcNull ? 0 : size);
    }
  }
}

TEST(RpcProgram, SeesOtherData) {
  const Spec spec = spec_of(perf::Test::kRpcWrite);
  const RpcUse use(spec);
  for (const std::size_t at : {8U, 500U, 1007U}) {
    rpc::Octets arguments = use.arguments(5);
    arguments[at] ^= std::byte{1};
    EXPECT_EQ(RpcProgram(spec).answer(kRpcWrite, arguments), words({0})) << at;
  }
  EXPECT_FALSE(use.answered(words({0}), 5));
}

TEST(RpcProgram, RefusesArgumentsOfOthers) {
  const RpcProgram program(spec_of(perf::Test::kRpcRead));
  EXPECT_FALSE(program.answer(kRpcNull, words({1})));
  EXPECT_FALSE(program.answer(kRpcRead, words({0})));
  EXPECT_FALSE(program.answer(kRpcRead, words({0, 1001})));
  EXPECT_FALSE(program.answer(kRpcRead, words({5, UINT32_MAX})));
  EXPECT_FALSE(program.answer(kRpcRead, words({0, 1000, 0})));
  EXPECT_FALSE(program.answer(kRpcWrite, words({0, 1000})));
  EXPECT_FALSE(program.answer(kRpcWrite, words({0, UINT32_MAX})));
  EXPECT_FALSE(program.answer(kRpcWrite, {}));
  EXPECT_FALSE(program.answer(3, {}));
}

TEST(RpcUse, SeesOtherResults) {
  const RpcUse null(spec_of(perf::Test::kRpcNull)), read(spec_of(perf::Test::kRpcRead)),
      write(spec_of(perf::Test::kRpcWrite));
  EXPECT_FALSE(null.answered(words({0})));
  EXPECT_FALSE(read.answered({}));
  EXPECT_FALSE(read.answered(words({1000})));
  EXPECT_FALSE(write.answered({}));
  const auto right = RpcProgram(spec_of(perf::Test::kRpcRead)).answer(kRpcRead, words({5, 1000}));
  EXPECT_TRUE(read.answered(*right, 5));
  EXPECT_FALSE(read.answered(*right, 6));
  rpc::Octets longer = *right;
  longer.resize(longer.size() + 4);
  EXPECT_FALSE(read.answered(longer));
}

TEST(RpcEnds, AreVerified) {
  for (const auto& tests : {kTests, kTcpTests}) {
    for (const auto test : tests) {
      for (const char* host : {"127.0.0.1", "::1"}) {
        Spec spec = spec_of(test, 100'001);
        spec.depth = 3;
        const Honest other(spec, host);
        const auto active = connect(spec, other.port(), host);
        EXPECT_NO_THROW(active->verify()) << name(test);
        const Sample s = active->run(std::chrono::milliseconds{5});
        EXPECT_GE(s.operations, 3U) << name(test);
        EXPECT_EQ(s.octets, has_size(test) ? s.operations * spec.size : 0) << name(test);
        EXPECT_GT(s.seconds, 0) << name(test);
        EXPECT_NO_THROW(active->verify()) << name(test);
      }
    }
  }
}

TEST(RpcEnds, OfATestShareAServer) {
  const Spec spec = spec_of(perf::Test::kRpcNull);
  const Honest one(spec), other(spec);
  EXPECT_EQ(one.port(), other.port());
  EXPECT_NE(Honest(spec_of(perf::Test::kRpcRead)).port(), one.port());
  const auto first = connect(spec, one.port()), second = connect(spec, other.port());
  EXPECT_GT(first->run(std::chrono::milliseconds{1}).operations, 0U);
  EXPECT_GT(second->run(std::chrono::milliseconds{1}).operations, 0U);
}

TEST(RpcEnds, SayThatNobodyIsThere) {
  std::uint16_t port = 0;
  {
    const Honest gone(spec_of(perf::Test::kRpcNull));
    port = gone.port();
  }
  try {
    (void)connect(spec_of(perf::Test::kRpcNull), port);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, 26), "cannot connect over iWARP:") << e.what();
  }
}

// Answers all Calls but NULL with these results.
class Liar {
 public:
  explicit Liar(rpc::Octets results) : results_(std::move(results)) {
    server_.serve(kRpcProgram, kRpcVersion, [this](rpc::Call call) -> boost::asio::awaitable<rpc::Answer> {
      if (call.procedure() == kRpcNull) co_return rpcrdma::AcceptStat::kSuccess;
      co_return results_;
    });
    listener_ = rpc::on_iwarp(engine_, {.endpoint = {boost::asio::ip::make_address(kHost), 0}});
    server_.listen(listener_).value();
  }
  ~Liar() { server_.stop(); }
  Liar(const Liar&) = delete;
  Liar& operator=(const Liar&) = delete;
  [[nodiscard]] std::uint16_t port() const { return listener_->local().port(); }

 private:
  rpc::Octets results_;
  cm::Engine engine_;
  std::shared_ptr<rpc::IwarpServer> listener_;
  rpc::Server server_{engine_};
};

TEST(RpcActive, SeesThatTheDataAreOthers) {
  const Spec read = spec_of(perf::Test::kRpcRead), write = spec_of(perf::Test::kRpcWrite);
  rpc::Octets zeros = words({1000});
  zeros.resize(1004);
  const Liar zeroer(zeros), denier(words({0}));
  EXPECT_THROW(connect(read, zeroer.port())->verify(), std::runtime_error);
  EXPECT_THROW(connect(write, denier.port())->verify(), std::runtime_error);
  EXPECT_THROW(connect(write, denier.port())->run(std::chrono::milliseconds{1}), std::runtime_error);
  EXPECT_THROW(connect(read, denier.port())->run(std::chrono::milliseconds{1}), std::runtime_error);
}

// One that speaks plain TCP, and says what it is given whatever it hears.
class Parrot {
 public:
  explicit Parrot(rpc::Octets says)
      : says_(std::move(says)), listener_(TcpSocket::listen(kHost)), thread_([this] { serve(); }) {}
  ~Parrot() { stop_ = true; }
  Parrot(const Parrot&) = delete;
  Parrot& operator=(const Parrot&) = delete;
  [[nodiscard]] std::uint16_t port() const { return listener_.local().port(); }

 private:
  void serve() {
    while (!stop_) {
      const TcpSocket socket = listener_.accept(false, &stop_);
      std::array<std::byte, 4096> call{};  // all of it, or closing would reset the connection
      if (!socket || socket.receive_some(call.data(), call.size()) == 0) continue;
      socket.send_all(says_.data(), says_.size());
    }
  }

  rpc::Octets says_;
  TcpSocket listener_;
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

TEST(TcpRpcActive, SeesWhatIsNoAnswer) {
  const Spec spec = spec_of(perf::Test::kTcpRpcNull);
  const auto good = words({0x80000018, 1, 1, 0, 0, 0, 0});
  EXPECT_NO_THROW(connect(spec, Parrot(good).port())->verify());
  for (const auto& bad : {words({0x80000018, 2, 1, 0, 0, 0, 0}),     // another xid
                          words({0x80000018, 1, 1, 0, 0, 0, 3}),     // PROC_UNAVAIL
                          words({0x8000001C, 1, 1, 0, 0, 0, 0, 9}),  // results
                          words({0x80000004, 1}), words({0x80000000}), words({0x00000018, 1, 1, 0, 0, 0, 0}),
                          words({0xFFFFFFFF}), words({0x80000018, 1})}) {
    const Parrot parrot(bad);
    EXPECT_THROW(connect(spec, parrot.port())->verify(), std::runtime_error);
  }
}

TEST(TcpRpcPassive, EndsWithARecordThatIsTooLong) {
  const Spec spec = spec_of(perf::Test::kTcpRpcWrite);
  for (const auto& bad : {words({0x80001000}), words({0x80000000}), words({0x00000010}), words({0x80000004, 0})}) {
    const auto passive = listen_raw(spec, kHost);
    const std::atomic<bool> stop{false};
    std::jthread talker([&] {
      const TcpSocket socket = TcpSocket::connect(kHost, passive->port(), false);
      socket.send_all(bad.data(), bad.size());
      std::byte octet{};
      (void)socket.receive_some(&octet, 1);  // until it has closed
    });
    EXPECT_THROW(passive->serve(stop), std::runtime_error);
  }
}

}  // namespace
}  // namespace iwarp::tools::perf
