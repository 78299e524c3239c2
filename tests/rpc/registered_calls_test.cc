// Calls and answers in registered memory: sent from where they lie, exposed as long as their RPC, and let go of.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "iwarp/rpc/registered_memory.h"
#include "tests/rpc/program.h"
#include "tests/rpc/watched.h"

namespace iwarp::rpc::test {
namespace {

using rpcrdma::BulkItem;
using rpcrdma::DeclaredBinding;

// Without credentials.
constexpr std::size_t kCallHead = 40, kReplyHead = 24;
// Of version 2: says the arguments again, a word and an opaque<>. Of version 3: makes as many octets as the word says.
constexpr Procedure kSayAgain{kProgram, 2, 1}, kMakeThere{kProgram, 3, 1};

std::shared_ptr<const DeclaredBinding> binding() {
  auto made = std::make_shared<DeclaredBinding>();
  made->add({.program = kProgram, .version = 2, .procedure = 1, .offset = 4}).value();
  made->add({.program = kProgram, .version = 3, .procedure = 1, .where = BulkItem::Where::kResults, .offset = 4})
      .value();
  return made;
}

// A word, and an opaque<> of so many octets.
std::pmr::vector<std::byte> item_in(RegisteredMemory& memory, std::uint32_t size) {
  const Octets front = words({77}), item = opaque(pattern(size, 2));
  std::pmr::vector<std::byte> out(&memory);
  out.reserve(front.size() + item.size());
  out.insert(out.end(), front.begin(), front.end());
  out.insert(out.end(), item.begin(), item.end());
  return out;
}

bool all_back(const RegisteredMemory& memory) {
  return eventually([&] { return memory.in_use_bytes() == 0; });
}

using Case = std::tuple<Carrier, bool>;

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto [carrier, declares] = info.param;
  return std::string(carrier == Carrier::kMemory ? "Memory" : "Iwarp") + (declares ? "Declares" : "");
}

class Registered : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto [carrier, declares] = GetParam();
    ServerOptions served{.threads = 2};
    if (declares) options.requester.declared = served.responder.declared = binding();
    server.emplace(engine, served);
    server->serve(kProgram, 1, program.handler());
    server->serve(kProgram, 2, [](Call call) -> awaitable<Answer> { co_return copy(call.arguments()); });
    server->serve(kProgram, 3, [this](Call call) -> awaitable<Answer> {
      if (call.procedure() == kNull) co_return AcceptStat::kSuccess;
      ++made;
      auto out = item_in(memory, word(call.arguments()));
      made_at = out.data();
      co_return RegisteredOctets(std::move(out));
    });
    if (carrier == Carrier::kMemory) {
      listener = std::make_shared<WatchedServer>(network.server());
      server->listen(listener).value();
      transport = std::make_shared<WatchedClient>(network.client());
      return;
    }
    const auto iwarp = on_iwarp(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}});
    listener = std::make_shared<WatchedServer>(iwarp);
    server->listen(listener).value();
    transport =
        std::make_shared<WatchedClient>(over_iwarp(engine, {.host = "127.0.0.1", .port = iwarp->local().port()}));
  }
  void TearDown() override { release(); }
  void release() {
    if (!std::exchange(released, true)) program.let_go.set_value();
  }
  [[nodiscard]] bool declares() const { return std::get<1>(GetParam()); }

  RegisteredMemory memory{16u << 20};  // goes last
  cm::Engine engine;
  MemoryNetwork network{engine.get_executor()};
  Program program;
  std::atomic<unsigned> made{0};
  std::atomic<const std::byte*> made_at{nullptr};
  ClientOptions options;
  std::optional<Server> server;
  std::shared_ptr<WatchedServer> listener;
  std::shared_ptr<WatchedClient> transport;
  bool released = false;
};
INSTANTIATE_TEST_SUITE_P(Over, Registered,
                         ::testing::Combine(::testing::Values(Carrier::kMemory, Carrier::kIwarp), ::testing::Bool()),
                         name_of);

TEST_P(Registered, ArgumentsAreReadWhereTheyLie) {
  COVERS("D2005-7-1");
  Client client(engine, transport, options);
  std::size_t registrations = 0;
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t size : {65537u, 1u << 20}) {
      auto arguments = item_in(memory, size);
      const Octets expected(arguments.begin(), arguments.end());
      const std::byte* const at = arguments.data();
      const auto reply = client.call(kSayAgain, RegisteredOctets(std::move(arguments)));
      ASSERT_TRUE(reply.ok()) << reply.error().why;
      EXPECT_TRUE(std::ranges::equal(reply->results(), expected)) << size;
      const auto read = transport->watch->take_read();
      ASSERT_EQ(read.size(), 1u);
      EXPECT_EQ(read[0].data(), declares() ? at + 8 : at - kCallHead);
      EXPECT_EQ(read[0].size(), declares() ? size : expected.size() + kCallHead);
      EXPECT_EQ(transport->watch->exposed_now(), 0u);
    }
    if (round == 0) registrations = transport->watch->registrations();
  }
  EXPECT_EQ(transport->watch->registrations(), registrations);  // not anew for every Call
  EXPECT_TRUE(all_back(memory));
}

TEST_P(Registered, ShortOnesGoInLine) {
  Client client(engine, transport, options);
  for (const std::uint32_t size : {0u, 5u, 1000u}) {
    auto arguments = item_in(memory, size);
    const Octets expected(arguments.begin(), arguments.end());
    const CallOptions as{.credential = Credential::sys("here", 1, 2, {3, 4}), .max_results = 2000};
    const auto reply = client.async_call(kSayAgain, RegisteredOctets(std::move(arguments)), as, use_future).get();
    EXPECT_TRUE(std::ranges::equal(reply.results(), expected)) << size;
  }
  EXPECT_TRUE(transport->watch->take_read().empty());
  // Nothing at all, and what is not there.
  EXPECT_TRUE(client.call(kSayAgain, RegisteredOctets(std::pmr::vector<std::byte>(&memory))).ok());
  const auto elsewhere = client.call(kSayAgain, RegisteredOctets(std::pmr::vector<std::byte>(100000, std::byte{4})));
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_EQ(elsewhere->results().size(), 100000u);
  EXPECT_TRUE(all_back(memory));
}

TEST_P(Registered, ResultsAreWrittenFromWhereTheyLie) {
  COVERS("D2005-7-1");
  Client client(engine, transport, options);
  std::size_t registrations = 0;
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t size : {65536u, 1u << 20}) {
      const auto reply = client.call(kMakeThere, words({size}));
      ASSERT_TRUE(reply.ok()) << reply.error().why;
      ASSERT_EQ(reply->results().size(), 8u + size);
      EXPECT_EQ(word(reply->results(), 1), size);
      EXPECT_TRUE(std::ranges::equal(reply->results().subspan(8), pattern(size, 2)));
      const auto written = listener->watch->take_written();
      ASSERT_FALSE(written.empty());
      EXPECT_EQ(written[0].data(), declares() ? made_at + 8 : made_at - kReplyHead);
    }
    ASSERT_TRUE(all_back(memory));
    if (round == 0) registrations = listener->watch->registrations();
  }
  EXPECT_EQ(listener->watch->registrations(), registrations);
  const auto small = client.call(kMakeThere, words({5}), {.max_results = 100});
  ASSERT_TRUE(small.ok());
  EXPECT_TRUE(std::ranges::equal(small->results().subspan(4), opaque(pattern(5, 2))));
  EXPECT_TRUE(all_back(memory));
}

// The Call's Send is lost, or that of the Reply: it goes from the same memory once more, and its answer from what is
// remembered.
TEST_P(Registered, CallsOutliveTheirConnection) {
  if (std::get<0>(GetParam()) != Carrier::kMemory) GTEST_SKIP() << "connections are cut at will in memory only";
  Client client(engine, transport, options);
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  for (const std::uint64_t n : {1u, 2u}) {
    network.cut_at_send(n);
    auto arguments = item_in(memory, 100000);
    const Octets expected(arguments.begin(), arguments.end());
    const auto reply = client.call(kSayAgain, RegisteredOctets(std::move(arguments)));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_TRUE(std::ranges::equal(reply->results(), expected));
    network.cut_at_send(n);
    const auto there = client.call(kMakeThere, words({100000}));
    ASSERT_TRUE(there.ok()) << there.error().why;
    EXPECT_TRUE(std::ranges::equal(there->results().subspan(8), pattern(100000, 2)));
  }
  EXPECT_EQ(client.stats().sent_again, 4u);
  EXPECT_EQ(made, 2u);
  EXPECT_TRUE(all_back(memory));
}

// No longer than the server may reach it, and not a moment less.
TEST_P(Registered, GivenUpTheyWaitForTheServer) {
  Client client(engine, transport, options);
  boost::asio::cancellation_signal signal;
  std::promise<Error> told;
  client.async_call(proc(kHold), RegisteredOctets(item_in(memory, 100000)), {},
                    boost::asio::bind_cancellation_slot(
                        signal.slot(), [&](const Error& error, const Reply&) { told.set_value(error); }));
  ASSERT_TRUE(eventually([&] { return program.held == 1; }));
  signal.emit(boost::asio::cancellation_type::terminal);
  auto future = told.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(future.get().code, Errc::kAborted);
  EXPECT_GT(memory.in_use_bytes(), 100000u);
  EXPECT_GT(transport->watch->exposed_now(), 0u);
  release();
  EXPECT_TRUE(all_back(memory));
  EXPECT_TRUE(eventually([&] { return transport->watch->exposed_now() == 0; }));
}

TEST_P(Registered, AClientThatGoesLetsGo) {
  {
    Client client(engine, transport, options);
    auto call = client.async_call(proc(kHold), RegisteredOctets(item_in(memory, 100000)), {}, cm::as_error(use_future));
    ASSERT_TRUE(eventually([&] { return program.held == 1; }));
    client.close();
    EXPECT_EQ(std::get<0>(call.get()).code, Errc::kAborted);
  }
  EXPECT_TRUE(all_back(memory));
  release();
}

TEST_P(Registered, BackwardAnswersAreCopied) {
  Client client(engine, transport, options);
  client.serve(kProgram, 4, [this](Call) -> awaitable<Answer> { co_return RegisteredOctets(item_in(memory, 100)); });
  server->serve(kProgram, 5, [](Call call) -> awaitable<Answer> {
    if (call.procedure() == kNull) co_return AcceptStat::kSuccess;
    const Reply reply = co_await call.caller().async_call({kProgram, 4, 1}, {}, {}, use_awaitable);
    co_return copy(reply.results());
  });
  const auto reply = client.call({kProgram, 5, 1}, {});
  ASSERT_TRUE(reply.ok()) << reply.error().why;
  EXPECT_TRUE(std::ranges::equal(reply->results().subspan(8), pattern(100, 2)));
  EXPECT_TRUE(all_back(memory));
}

}  // namespace
}  // namespace iwarp::rpc::test
