// Client and Server over a device: the same program as over iWARP and over memory, and what is the device's own.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/device/rpc_over_device.h"

namespace iwarp::rpc::test {
namespace {

using rpcrdma::BulkItem;
using rpcrdma::DeclaredBinding;

// Where bulk data are: in the arguments of version 2, and in the results of kMake.
std::shared_ptr<const DeclaredBinding> binding() {
  auto made = std::make_shared<DeclaredBinding>();
  made->add({.program = kProgram, .version = 2, .procedure = 1, .offset = 4}).value();
  made->add({.program = kProgram,
             .version = 1,
             .procedure = kMake,
             .where = BulkItem::Where::kResults,
             .offset = 4,
             .max_bytes = 1u << 20,
             .arm = BulkItem::Arm{0, 0}})
      .value();
  return made;
}

TEST_F(RpcOverDevice, CallsAndReplies) {
  serve();
  Client client(engine, to_server());
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto reply = client.call(proc(kAdd), words({i, 1000}));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_EQ(word(reply->results()), i + 1000);
  }
  EXPECT_EQ(client.call(proc(99), {})->accept_stat(), AcceptStat::kProcUnavail);
  EXPECT_EQ(program.executed, 51u);
  EXPECT_EQ(verbs.connections(), 1u);
}

TEST_F(RpcOverDevice, ManyOutstanding) {
  serve({.threads = 4});
  Client client(engine, to_server());
  for (const std::uint32_t outstanding : {1u, 8u, 64u}) {
    std::vector<std::future<Reply>> all;
    for (std::uint32_t i = 0; i < outstanding * 4; ++i) {
      all.push_back(client.async_call(proc(kAdd), words({i, outstanding}), {}, use_future));
      if (i < outstanding) continue;
      ASSERT_EQ(all[i - outstanding].wait_for(kPatience), std::future_status::ready);
    }
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i].wait_for(kPatience), std::future_status::ready);
      EXPECT_EQ(word(all[i].get().results()), i + outstanding);
    }
  }
  EXPECT_EQ(client.stats().connections, 1u);
}

TEST_F(RpcOverDevice, ManyThreads) {
  serve({.threads = 4});
  Client client(engine, to_server());
  std::vector<std::future<bool>> all;
  for (std::uint32_t thread = 0; thread < 8; ++thread) {
    all.push_back(std::async(std::launch::async, [&client, thread] {
      bool right = true;
      for (std::uint32_t i = 0; i < 100; ++i) {
        const auto reply = client.call(proc(kAdd), words({i, thread}));
        right = right && reply.ok() && word(reply->results()) == i + thread;
      }
      return right;
    }));
  }
  for (auto& each : all) EXPECT_TRUE(each.get());
}

// Bulk data by RDMA Read and Write, where both declare them, and where nobody does.
TEST_F(RpcOverDevice, LargeArgumentsAndResultsTravelInChunks) {
  COVERS("RFC8166-3.4.4.3-2");
  for (const bool declared : {false, true}) {
    ServerOptions served{.threads = 2};
    ClientOptions options;
    if (declared) {
      served.responder.declared = options.requester.declared = binding();
      served.responder.enforce_binding = true;
    }
    serve(served);
    server->serve(kProgram, 2, [](Call call) -> awaitable<Answer> { co_return copy(call.arguments()); });
    Client client(engine, to_server(), options);
    for (const std::uint32_t size : {0u, 511u, 4096u, 65537u, 1u << 20}) {
      const std::uint64_t written = verbs.written(), read = verbs.read();
      const auto made = client.call(proc(kMake), words({size}));
      ASSERT_TRUE(made.ok()) << size << ' ' << made.error().why;
      EXPECT_TRUE(std::ranges::equal(made->results().subspan(8, size), pattern(size, 7))) << size;
      Octets arguments = words({77});
      const Octets item = opaque(pattern(size, 2));
      arguments.insert(arguments.end(), item.begin(), item.end());
      const auto put = client.call({kProgram, 2, 1}, arguments);
      ASSERT_TRUE(put.ok()) << size << ' ' << put.error().why;
      EXPECT_TRUE(std::ranges::equal(put->results(), arguments)) << size;
      if (size < 4096) continue;
      EXPECT_GE(verbs.written() - written, 2 * size);
      EXPECT_GE(verbs.read() - read, size);
    }
    client.close();
    server.reset();
  }
}

TEST_F(RpcOverDevice, ServersCallTheirClients) {
  COVERS("RFC8167-4.3.1-3");
  ServerOptions served{.threads = 2};
  ClientOptions options;
  served.responder.backward_credits = options.requester.backward_credits = 4;
  serve(served);
  server->serve(kProgram, 2, [](Call call) -> awaitable<Answer> {
    const auto there = call.caller();
    const Reply back = co_await there.async_call({kProgram, 3, 1}, copy(call.arguments()), {}, use_awaitable);
    co_return copy(back.results());
  });
  Client client(engine, to_server(), options);
  client.serve(kProgram, 3, [](Call call) -> awaitable<Answer> { co_return words({word(call.arguments()) + 1}); });
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto reply = client.call({kProgram, 2, 1}, words({i}));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_EQ(word(reply->results()), i + 1);
  }
}

TEST_F(RpcOverDevice, TheServerKnowsItsClient) {
  serve();
  std::string peer;
  server->serve(kProgram, 2, [&peer](Call call) -> awaitable<Answer> {
    peer = call.peer();
    co_return AcceptStat::kSuccess;
  });
  Client client(engine, to_server());
  ASSERT_TRUE(client.call({kProgram, 2, 1}, {}).ok());
  EXPECT_EQ(peer, "10.0.0.5");
}

// A Send with Invalidate would end the connection: memory of a program cannot be invalidated.
TEST_F(RpcOverDevice, ThePeerIsToldNotToInvalidate) {
  COVERS("RFC8797-4.1-3");
  serve();
  EXPECT_FALSE(to_server()->remote_invalidation());
  Client client(engine, to_server(), {.requester = {.remote_invalidation = true}});
  const auto made = client.call(proc(kMake), words({100000}));
  ASSERT_TRUE(made.ok()) << made.error().why;
  EXPECT_EQ(client.stats().connections, 1u);
}

TEST_F(RpcOverDevice, OutstandingCallsAreSentAgainAndExecutedOnce) {
  COVERS("RFC8166-4.5.5-1");
  serve({.threads = 6});
  Client client(engine, to_server());
  std::vector<std::future<Reply>> all;
  for (std::uint32_t i = 0; i < 4; ++i) all.push_back(client.async_call(proc(kHold), words({i}), {}, use_future));
  ASSERT_TRUE(eventually([&] { return program.held == 4; }));
  EXPECT_EQ(verbs.cut(), 1u);
  ASSERT_TRUE(eventually([&] { return server->stats().recognized == 4; }));
  release();
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(all[i].wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(word(all[i].get().results()), i);
  }
  EXPECT_EQ(program.executed, 4u);
  EXPECT_EQ(client.stats().sent_again, 4u);
  EXPECT_EQ(client.stats().connections, 2u);
}

TEST_F(RpcOverDevice, LostMessagesAreMadeGood) {
  serve();
  Client client(engine, to_server());
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  for (std::uint32_t n = 1; n <= 10; ++n) {
    verbs.cut_at_send(n % 2 + 1);  // the Call's Send, or that of the Reply
    const auto reply = client.call(proc(kAdd), words({1, n}));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_EQ(word(reply->results()), 1 + n);
  }
  EXPECT_EQ(program.executed, 10u);
}

TEST_F(RpcOverDevice, ByPolicyOutstandingCallsEndWithTheConnection) {
  serve();
  Client client(engine, to_server(), {.retransmit = false});
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  auto held = client.async_call(proc(kHold), words({1}), {}, cm::as_error(use_future));
  ASSERT_TRUE(eventually([&] { return program.held == 1; }));
  verbs.cut();
  ASSERT_EQ(held.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(std::get<0>(held.get()));
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
}

TEST_F(RpcOverDevice, AServerThatGoesTakesItsCallsAlong) {
  serve();
  Client client(engine, to_server(), {.retransmit = false});
  std::vector<std::future<std::tuple<Error, Reply>>> all;
  for (std::uint32_t i = 0; i < 2; ++i)
    all.push_back(client.async_call(proc(kHold), words({i}), {}, cm::as_error(use_future)));
  ASSERT_TRUE(eventually([&] { return program.held == 2; }));
  release();  // a Server waits for its handlers
  server.reset();
  for (auto& each : all) ASSERT_EQ(each.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(verbs.connections(), 0u);
  // It may have the end of the connection yet to hear.
  EXPECT_TRUE(eventually([&] {
    const auto gone = client.call(proc(kNull), {});
    return !gone.ok() && gone.error().code == Errc::kPeerRejected;
  }));
}

// And on the same port. Calls that begin meanwhile wait for it.
TEST_F(RpcOverDevice, AServerMayStopAndListenAgain) {
  serve();
  Client client(engine, to_server(), {.first_pause = 5ms});
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());  // Calls wait for one that was there
  for (int round = 0; round < 5; ++round) {
    server.reset();
    std::vector<std::future<Reply>> all;
    for (std::uint32_t i = 0; i < 8; ++i) all.push_back(client.async_call(proc(kAdd), words({i, 1}), {}, use_future));
    serve();
    for (std::uint32_t i = 0; i < 8; ++i) {
      ASSERT_EQ(all[i].wait_for(kPatience), std::future_status::ready);
      EXPECT_EQ(word(all[i].get().results()), i + 1);
    }
  }
}

TEST_F(RpcOverDevice, ClientsBeyondTheLimitAreRefused) {
  serve({.threads = 2, .max_connections = 1});
  Client first(engine, to_server());
  ASSERT_TRUE(first.call(proc(kNull), {}).ok());
  Client second(engine, to_server());
  const auto refused = second.call(proc(kNull), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kPeerRejected);
  EXPECT_TRUE(first.call(proc(kNull), {}).ok());
}

TEST_F(RpcOverDevice, WhereNobodyListensTheErrorSaysSo) {
  Client client(engine, to_server());
  const auto reply = client.call(proc(kNull), {});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::kPeerRejected);
  EXPECT_NE(std::string(reply.error().why).find("nobody listens there"), std::string::npos) << reply.error().why;
}

TEST_F(RpcOverDevice, WhoDoesNotAnswerIsGivenUp) {
  verbs.ignore_requests();
  Client client(engine, over_device(device, {.host = "10.0.0.1", .timeout = 20ms}));
  const auto reply = client.call(proc(kNull), {});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::kTimeout);
  Client other(engine, to_server());
  auto under_way = other.async_call(proc(kNull), {}, {}, cm::as_error(use_future));
  other.close();
  ASSERT_EQ(under_way.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(std::get<0>(under_way.get()).code, Errc::kAborted);
}

TEST_F(RpcOverDevice, AnAddressOfAnotherDeviceIsRefused) {
  verbs.fake().device_of_address = 1;
  Client client(engine, to_server());
  EXPECT_EQ(client.call(proc(kNull), {}).error().code, Errc::kInvalidArgument);
  Server there(engine);
  EXPECT_EQ(there.listen(on_device(device, {.endpoint = kAddress()})).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(Client(engine, over_device(device, {.host = "10.0.0.1", .port = 0})).call(proc(kNull), {}).error().code,
            Errc::kInvalidArgument);
}

TEST_F(RpcOverDevice, AServerThatCannotListenSaysWhy) {
  verbs.fake().fail("bind_addr", EADDRINUSE);
  Server there(engine);
  const auto failed = there.listen(on_device(device, {.endpoint = kAddress()}));
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(std::string(failed.error().why).find("Address already in use"), std::string::npos);
}

// What cannot be had for one connection costs only that one.
TEST_F(RpcOverDevice, AForkedChildIsRefused) {
  const auto at = on_device(device, {.endpoint = kAddress()});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto listening = at->listen([](Incoming) {});
    ::_exit(!listening && listening.error().code == Errc::kInvalidArgument ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RpcOverDevice, WantOfResourcesEndsOneAttempt) {
  serve();
  for (const char* const call : {"alloc_pd", "create_cq", "create_qp", "create_id", "resolve_addr", "connect", "accept",
                                 "migrate_id", "create_comp_channel"}) {
    Client client(engine, to_server());
    verbs.fake().fail(call, ENOMEM);
    const auto failed = client.call(proc(kNull), {});
    EXPECT_FALSE(failed.ok()) << call;
    const auto works = client.call(proc(kNull), {});
    EXPECT_TRUE(works.ok()) << call << ": " << works.error().why;
  }
}

TEST_F(RpcOverDevice, ADeviceThatTakesNoRequestLosesItsConnection) {
  serve();
  Client client(engine, to_server());
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  verbs.fake().fail("poll_cq", EIO);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto reply = client.call(proc(kAdd), words({i, 1}));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_EQ(word(reply->results()), i + 1);
  }
  EXPECT_EQ(client.stats().connections, 2u);
}

TEST_F(RpcOverDevice, ADeviceThatIsRemovedEndsItsConnections) {
  serve();
  Client client(engine, to_server(), {.retransmit = false});
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  auto held = client.async_call(proc(kHold), words({1}), {}, cm::as_error(use_future));
  ASSERT_TRUE(eventually([&] { return program.held == 1; }));
  verbs.fake().there = false;
  verbs.fake().break_async();
  ASSERT_EQ(held.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(std::get<0>(held.get()));
  EXPECT_EQ(client.call(proc(kNull), {}).error().code, Errc::kSystem);
}

TEST_F(RpcOverDevice, ADeviceIsOpenOnce) {
  EXPECT_EQ(HomeDevice::open(engine, "fake0", verbs.table()).device, device);
  EXPECT_EQ(device->name(), "fake0");
  cm::Engine other;
  const auto refused = HomeDevice::open(other, "fake0", verbs.table());
  EXPECT_FALSE(refused.device);
  EXPECT_NE(refused.error.find("for another engine"), std::string::npos) << refused.error;
  const auto none = HomeDevice::open(engine, "mlx9", verbs.table());
  EXPECT_FALSE(none.device);
  EXPECT_NE(none.error.find("fake0, fake1"), std::string::npos) << none.error;
}

// In the caller's threads alone, and in threads of the application.
TEST_F(RpcOverDevice, AnyKindOfEngineWillDo) {
  serve();
  cm::Engine manual(cm::Engine::Mode::kManual);
  {
    verbs.fake().device_of_address = 1;
    const auto second = HomeDevice::open(manual, "fake1", verbs.table()).device;
    ASSERT_TRUE(second);
    Server there(manual);
    there.serve(kProgram, 1, program.handler());
    there.listen(on_device(second, {.endpoint = kAddress()})).value();
    Client client(manual, over_device(second, {.host = "10.0.0.1"}));
    const auto reply = client.call(proc(kAdd), words({3, 4}));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_EQ(word(reply->results()), 7u);
  }
  manual.poll();
  verbs.fake().device_of_address = 0;
  boost::asio::io_context io;
  std::optional<cm::Engine> borrowed(std::in_place, io);
  {
    const auto second = HomeDevice::open(*borrowed, "fake1", verbs.table()).device;
    ASSERT_TRUE(second);
    verbs.fake().device_of_address = 1;
    Server there(*borrowed);
    there.serve(kProgram, 1, program.handler());
    there.listen(on_device(second, {.endpoint = kAddress()})).value();
    Client client(*borrowed, over_device(second, {.host = "10.0.0.1"}));
    auto reply = client.async_call(proc(kAdd), words({2, 3}), {}, use_future);
    while (reply.wait_for(0s) != std::future_status::ready) io.run_one_for(1ms);
    EXPECT_EQ(word(reply.get().results()), 5u);
  }
  io.poll();
}

// Nobody runs the io_context any more, and nothing is left behind.
TEST_F(RpcOverDevice, WhatIsUnderWayGoesWithItsEngine) {
  verbs.ignore_requests();
  verbs.fake().device_of_address = 1;
  {
    boost::asio::io_context io;
    cm::Engine borrowed(io);
    const auto second = HomeDevice::open(borrowed, "fake1", verbs.table()).device;
    ASSERT_TRUE(second);
    Client client(borrowed, over_device(second, {.host = "10.0.0.1"}));
    auto under_way = client.async_call(proc(kNull), {}, {}, cm::as_error(use_future));
    ASSERT_TRUE(eventually([&] {
      io.poll();
      io.restart();
      return verbs.fake().calls("connect") == 1;
    }));
  }
}

}  // namespace
}  // namespace iwarp::rpc::test
