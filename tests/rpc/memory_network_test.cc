// The endpoint for tests keeps the rules of RDMA, like a real one.
#include "iwarp/rpc/memory_network.h"

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

using rpcrdma::Completion;
using rpcrdma::OpStatus;
using rpcrdma::RemoteAccess;

struct Joined {
  Joined() {
    std::promise<void> taken;
    network.server()
        ->listen([&](Incoming incoming) {
          server = std::move(incoming.channel);
          incoming.accept({}, [](const Error&) {});
        })
        .value();
    std::promise<std::unique_ptr<Channel>> made;
    network.client()->connect(pattern(8, 1), [&](const Error& error, std::unique_ptr<Channel> channel) {
      EXPECT_EQ(error.code, Errc::kOk);
      made.set_value(std::move(channel));
    });
    client = made.get_future().get();
  }
  std::vector<Completion> taken(Channel& channel) {
    std::vector<Completion> out(16);
    out.resize(channel.poll(out));
    return out;
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  std::jthread thread{[this] { io.run(); }};
  MemoryNetwork network{io.get_executor()};
  std::unique_ptr<Channel> client, server;
  struct Stop {
    boost::asio::io_context& io;
    ~Stop() { io.stop(); }
  } stop{io};
};

TEST(MemoryNetwork, MovesMessages) {
  Joined j;
  EXPECT_TRUE(std::ranges::equal(j.server->peer_data(), pattern(8, 1)));
  auto from = pattern(100, 3);
  std::vector<std::byte> to(200);
  j.server->endpoint().post_recv(1, {to, {}}).value();
  const rpcrdma::LocalSlice slices[] = {{std::span(from).first(60), {}}, {std::span(from).subspan(60), {}}};
  j.client->endpoint().post_send(2, slices, std::nullopt).value();
  const auto got = j.taken(*j.server);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_len, 100u);
  EXPECT_TRUE(std::ranges::equal(std::span(to).first(100), from));
  EXPECT_EQ(j.taken(*j.client).size(), 1u);
}

TEST(MemoryNetwork, ASendWithoutAReceiveEndsIt) {
  Joined j;
  std::vector<std::byte> memory(4);
  j.client->endpoint().post_recv(7, {memory, {}}).value();
  const rpcrdma::LocalSlice slice{memory, {}};
  j.client->endpoint().post_send(1, {&slice, 1}, std::nullopt).value();
  const auto got = j.taken(*j.client);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, OpStatus::kFailed);
  EXPECT_EQ(got[1].status, OpStatus::kFlushed);
}

TEST(MemoryNetwork, MemoryIsReachedThroughItsRegistrationAlone) {
  for (const int broken : {0, 1, 2, 3, 4}) {
    Joined j;
    auto theirs = pattern(100, 3);
    std::vector<std::byte> own(50);
    const auto exposed = j.server->endpoint()
                             .register_memory(theirs, broken == 1 ? RemoteAccess::kWrite : RemoteAccess::kRead, false)
                             .value();
    if (broken == 2) j.server->endpoint().invalidate(exposed.handle).value();
    const Stag handle = broken == 3 ? Stag{raw(exposed.handle) + 1} : exposed.handle;
    j.client->endpoint().post_read(1, {own, {}}, handle, exposed.offset + (broken == 4 ? 51 : 50)).value();
    const auto got = j.taken(*j.client);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, broken == 0 ? OpStatus::kOk : OpStatus::kFailed) << broken;
    EXPECT_EQ(std::ranges::equal(own, std::span(theirs).last(50)), broken == 0);
  }
}

TEST(MemoryNetwork, NobodyListens) {
  boost::asio::io_context io;
  MemoryNetwork network(io.get_executor());
  Errc code{};
  network.client()->connect({}, [&](const Error& error, std::unique_ptr<Channel>) { code = error.code; });
  io.run();
  EXPECT_EQ(code, Errc::kConnectionRefused);
  network.server()->listen([](Incoming) {}).value();  // who takes none refuses
  network.client()->connect({}, [&](const Error& error, std::unique_ptr<Channel>) { code = error.code; });
  io.restart();
  io.run();
  EXPECT_EQ(code, Errc::kPeerRejected);
}

}  // namespace
}  // namespace iwarp::rpc::test
