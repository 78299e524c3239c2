// A Server calls its clients, over the connection that they have made (RFC 8167).
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "tests/rpc/program.h"
#include "tests/rpc/settle.h"

namespace iwarp::rpc::test {
namespace {

class Backward : public ::testing::TestWithParam<Carrier> {
 protected:
  // A server of 2 procedures: 1 calls its caller's procedure with its arguments and gives what comes of it, 2 tells the
  // test who called.
  struct Both {
    explicit Both(Carrier carrier, ServerOptions options = {.threads = 2}, const ClientOptions& client_options = {})
        : w(carrier, options), client(w.engine, w.transport, client_options) {
      w.server.serve(kProgram, 2, [this](Call call) -> awaitable<Answer> {
        if (call.procedure() == 0) co_return AcceptStat::kSuccess;
        if (call.procedure() == 2) {
          callers.set_value(call.caller());
          co_return AcceptStat::kSuccess;
        }
        const Octets arguments = copy(call.arguments());
        const Procedure what{word(arguments), word(arguments, 1), word(arguments, 2)};
        const auto [error, reply] =
            co_await call.caller().async_call(what, ConstBytes(arguments).subspan(12), {}, cm::as_error(use_awaitable));
        if (error) co_return words({static_cast<std::uint32_t>(error.code)});
        Octets out = words({0, static_cast<std::uint32_t>(reply.accept_stat())});
        const ConstBytes results = reply.success() ? reply.results() : ConstBytes{};
        out.insert(out.end(), results.begin(), results.end());
        co_return out;
      });
      client.serve(kBack, 1, [](Call call) -> awaitable<Answer> {
        EXPECT_FALSE(call.caller());
        EXPECT_FALSE(call.peer().empty());
        switch (call.procedure()) {
          case 1:
            co_return words({word(call.arguments()) + word(call.arguments(), 1)});
          case 2:
            throw std::runtime_error("the handler has had enough");
          case 3:
            co_return Octets(100000);
          case 4:
            co_return copy(call.arguments());
          default:
            co_return AcceptStat::kProcUnavail;
        }
      });
    }
    Octets through_server(std::initializer_list<std::uint32_t> arguments) {
      const auto reply = client.call({kProgram, 2, 1}, words(arguments), {.timeout = 30s});
      EXPECT_TRUE(reply.ok());
      return reply.ok() ? copy(reply->results()) : Octets{};
    }
    // Once.
    Caller caller() {
      EXPECT_TRUE(client.call({kProgram, 2, 2}, {}).ok());
      return callers.get_future().get();
    }
    // Ends handlers that wait for it, and waits until they have ended.
    void end(boost::asio::steady_timer& timer) {
      boost::asio::post(w.engine.get_executor(), [&timer] { timer.cancel(); });
      for (int i = 0; i < 3; ++i) settle(w.engine);
    }
    static Error error_of(const Caller& caller, const Procedure& what, ConstBytes arguments) {
      auto call = caller.async_call(what, arguments, {}, cm::as_error(use_future));
      EXPECT_EQ(call.wait_for(kPatience), std::future_status::ready);
      return std::get<0>(call.get());
    }

    World w;
    std::promise<Caller> callers;
    Client client;
  };
  static constexpr std::uint32_t kBack = 0x40000001;
};
INSTANTIATE_TEST_SUITE_P(Over, Backward, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

std::uint32_t number(AcceptStat stat) {
  return static_cast<std::uint32_t>(stat);
}

TEST_P(Backward, AHandlerCallsItsCaller) {
  Both b(GetParam());
  for (std::uint32_t i = 0; i < 50; ++i) EXPECT_EQ(b.through_server({kBack, 1, 1, 40, i}), words({0, 0, 40 + i}));
  EXPECT_EQ(b.client.stats().connections, 1u);
}

TEST_P(Backward, ErrorsOfRpcAreReplies) {
  Both b(GetParam());
  EXPECT_EQ(b.through_server({kBack, 1, 99}), words({0, number(AcceptStat::kProcUnavail)}));
  EXPECT_EQ(b.through_server({kBack, 1, 2}), words({0, number(AcceptStat::kSystemErr)}));
  EXPECT_EQ(b.through_server({kBack, 1, 3}), words({0, number(AcceptStat::kSystemErr)}));  // too long for a Send
  EXPECT_EQ(b.through_server({kBack, 7, 1}), words({0, number(AcceptStat::kProgMismatch)}));
  EXPECT_EQ(b.through_server({kBack + 1, 1, 1}), words({0, number(AcceptStat::kProgUnavail)}));
  EXPECT_EQ(b.through_server({kBack, 1, 1, 1, 2}), words({0, 0, 3}));
}

// By chunks, where both ends want that (RFC 8167 s5.3).
TEST_P(Backward, LongCallsAndReplies) {
  COVERS("RFC8167-5.3-1");
  ServerOptions server{.threads = 2};
  server.responder.backward_chunks = true;
  server.responder.max_backward_reply_bytes = 200000;
  ClientOptions options;
  options.requester.backward_chunks = true;
  options.requester.max_backward_call_bytes = 200000;
  Both b(GetParam(), server, options);
  const Caller caller = b.caller();
  for (const std::size_t size : {std::size_t{4}, std::size_t{4000}, std::size_t{100000}}) {
    const auto octets = pattern(size, 9);
    auto call = caller.async_call({kBack, 1, 4}, octets, {}, use_future);
    ASSERT_EQ(call.wait_for(kPatience), std::future_status::ready);
    const Reply reply = call.get();
    ASSERT_TRUE(reply.success()) << size;
    EXPECT_TRUE(std::ranges::equal(reply.results(), octets)) << size;
  }
  EXPECT_EQ(b.through_server({kBack, 1, 3}).size(), 8u + 100000u) << "a long Reply to a short Call";
  EXPECT_EQ(b.client.stats().connections, 1u);
}

// When nothing else is under way, and more at a time than there are credits.
TEST_P(Backward, ServersCallWhenTheyLike) {
  Both b(GetParam());
  const Caller caller = b.caller();
  ASSERT_TRUE(caller);
  std::vector<std::future<Reply>> all;
  for (std::uint32_t i = 0; i < 8; ++i) all.push_back(caller.async_call({kBack, 1, 1}, words({i, 1}), {}, use_future));
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(all[i].wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(word(all[i].get().results()), i + 1);
  }
}

TEST_P(Backward, WhatCannotBeSentIsRefused) {
  ServerOptions without{.threads = 2};
  without.responder.backward_credits = 0;
  Both none(GetParam(), without);
  EXPECT_EQ(Both::error_of(none.caller(), {kBack, 1, 1}, {}).code, Errc::kInvalidArgument);
  Both b(GetParam());
  const Caller caller = b.caller();
  EXPECT_EQ(Both::error_of(caller, {kBack, 1, 1}, Octets(100000)).code, Errc::kInvalidArgument);
  EXPECT_EQ(Both::error_of(caller, {kBack, 1, 1}, Octets(8u << 20)).code, Errc::kInvalidArgument);
  EXPECT_EQ(Both::error_of(caller, {kBack, 1, 1}, words({1, 2})).code, Errc::kOk);
}

TEST_P(Backward, TheyEndWithTheTimeOrTheConnection) {
  ServerOptions hasty{.threads = 2};
  hasty.responder.backward_timeout = 100ms;
  for (const ServerOptions& options : {hasty, ServerOptions{.threads = 2}}) {
    Both b(GetParam(), options);
    boost::asio::steady_timer never(b.w.engine.get_executor(), 1h);
    b.client.serve(kBack, 2, [&never](Call) -> awaitable<Answer> {
      boost::system::error_code code;
      co_await never.async_wait(boost::asio::redirect_error(use_awaitable, code));
      co_return AcceptStat::kSuccess;
    });
    const Caller caller = b.caller();
    if (options.responder.backward_timeout == 100ms) {
      EXPECT_EQ(Both::error_of(caller, {kBack, 2, 1}, {}).code, Errc::kTimeout);
      b.client.close();
      b.end(never);
      continue;
    }
    boost::asio::cancellation_signal signal;
    std::promise<Error> told;
    caller.async_call({kBack, 2, 1}, {}, {},
                      boost::asio::bind_cancellation_slot(
                          signal.slot(), [&](const Error& error, const Reply&) { told.set_value(error); }));
    signal.emit(boost::asio::cancellation_type::terminal);
    EXPECT_EQ(told.get_future().get().code, Errc::kAborted);
    auto under_way = caller.async_call({kBack, 2, 1}, {}, {}, cm::as_error(use_future));
    b.client.close();
    ASSERT_EQ(under_way.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(std::get<0>(under_way.get()).code, Errc::kConnectionLost);
    EXPECT_TRUE(eventually([&] { return Both::error_of(caller, {kBack, 1, 1}, {}).code == Errc::kConnectionLost; }));
    b.end(never);
  }
}

// Of a connection that has ended handlers may be at work yet: they count on the next one.
TEST_P(Backward, HandlersAreBoundedOverAllConnections) {
  Both b(GetParam());
  std::atomic<unsigned> begun{0};
  boost::asio::steady_timer never(b.w.engine.get_executor(), 1h);
  b.client.serve(kBack, 2, [&](Call) -> awaitable<Answer> {
    ++begun;
    boost::system::error_code code;
    co_await never.async_wait(boost::asio::redirect_error(use_awaitable, code));
    co_return AcceptStat::kSuccess;
  });
  for (unsigned connection = 1; connection <= 16; ++connection) {
    auto call = b.caller().async_call({kBack, 2, 1}, {}, {}, cm::as_error(use_future));
    ASSERT_TRUE(eventually([&] { return begun == connection; }));
    b.w.server.drop_connections();
    EXPECT_EQ(std::get<0>(call.get()).code, Errc::kConnectionLost);
    b.callers = {};
  }
  // 16 are at it: the backward credits of the client.
  const auto [error, reply] = b.caller().async_call({kBack, 2, 1}, {}, {}, cm::as_error(use_future)).get();
  ASSERT_FALSE(error);
  EXPECT_EQ(reply.accept_stat(), AcceptStat::kSystemErr);
  EXPECT_EQ(begun, 16u);
  b.end(never);
  EXPECT_EQ(b.through_server({kBack, 1, 1, 40, 2}), words({0, 0, 42}));
}

// The engine is held up, so that what is said happens between two acts of it.
struct HeldEngine {
  explicit HeldEngine(cm::Engine& engine) {
    boost::asio::post(engine.get_executor(), [this] {
      there.set_value();
      gate.wait();
      gone.set_value();
    });
  }
  void release() {
    let_go.set_value();
    gone.get_future().wait();
  }
  std::promise<void> there, let_go, gone;
  std::shared_future<void> gate = let_go.get_future().share();
};

TEST_F(Backward, NoHandlerBeginsWhenTheConnectionHasEnded) {
  Both b(Carrier::kMemory);
  std::atomic<unsigned> begun{0};
  b.client.serve(kBack, 2, [&](Call) -> awaitable<Answer> {
    ++begun;
    co_return AcceptStat::kSuccess;
  });
  const Caller caller = b.caller();
  HeldEngine held(b.w.engine);
  held.there.get_future().wait();
  auto call = caller.async_call({kBack, 2, 1}, {}, {}, cm::as_error(use_future));
  auto forward = b.client.async_call(proc(kNull), {}, {}, cm::as_error(use_future));  // finds the Call
  b.client.close();
  held.release();
  EXPECT_EQ(std::get<0>(call.get()).code, Errc::kConnectionLost);
  EXPECT_EQ(std::get<0>(forward.get()).code, Errc::kAborted);
  settle(b.w.engine);
  EXPECT_EQ(begun, 0u);
}

TEST_F(Backward, RepliesBeforeTheEndCount) {
  Both b(Carrier::kMemory);
  std::optional<HeldEngine> held;
  std::promise<void> answers;
  b.client.serve(kBack, 2, [&](Call) -> awaitable<Answer> {
    held.emplace(b.w.engine);  // behind the answer, before the server sees it
    answers.set_value();
    co_return words({5});
  });
  const Caller caller = b.caller();
  auto call = caller.async_call({kBack, 2, 1}, {}, {}, cm::as_error(use_future));
  answers.get_future().wait();
  held->there.get_future().wait();
  b.w.server.drop_connections();
  held->release();
  const auto [error, reply] = call.get();
  ASSERT_FALSE(error) << error.why;
  EXPECT_EQ(word(reply.results()), 5u);
}

}  // namespace
}  // namespace iwarp::rpc::test
