// Several engines that share one Context: one region serves connections of all, and a listener spreads them.
#include <algorithm>
#include <deque>
#include <thread>

#include "iwarp/cm/link.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

constexpr std::size_t kPiece = 4096;

// The server: two engines, one Protection Domain, one region, one completion queue of the first engine.
class Engines : public ::testing::Test {
 protected:
  Engines()
      : second_(Engine::Mode::kAutomatic, Engine::kUsualSpin, first_.context()),
        pd_(first_.context()),
        memory_(16 * kPiece),
        region_(make_region()),
        cq_(4096, &first_) {}

  verbs::MemoryRegion make_region() {
    verbs::MemoryRegion::Options o;
    o.access = ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite | ddp::Access::kRemoteRead;
    auto made = verbs::MemoryRegion::register_memory(pd_, memory_, o);
    if (!made) throw std::runtime_error(made.error().why);
    return std::move(made).value();
  }
  std::shared_ptr<verbs::QueuePair> make_qp() {
    verbs::QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    return std::make_shared<verbs::QueuePair>(pd_, o);
  }
  // Of both engines, unless `one` says which.
  std::unique_ptr<Listener> spread(std::vector<Engine*> over) {
    ListenOptions o;
    o.engines = std::move(over);
    return listen(first_, o);
  }
  struct Accepted {
    Engine* engine = nullptr;
    Outcome client, server;
  };
  Accepted join_with(Node& client, Listener& listener) {
    Accepted a;
    auto connecting = start_connect(client, to(listener));
    const auto request = next_request(listener);
    a.engine = &request->engine();
    links_.emplace_back(make_qp());
    a.server = get_outcome(request->async_accept(links_.back().qp(), {}, cm::as_error(boost::asio::use_future)));
    a.client = get_outcome(std::move(connecting));
    return a;
  }

  Engine first_;
  Engine second_;
  verbs::ProtectionDomain pd_;
  Bytes memory_;
  verbs::MemoryRegion region_;
  verbs::CompletionQueue cq_;
  Engine client_engine_;
  std::deque<Link> links_;
};

std::uint64_t address_of(const Bytes& memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data());
}

void write_to(Node& client, std::uint64_t id, Stag stag, std::uint64_t to) {
  const verbs::Sge sge{client.out.data(), kPiece, client.out_mr.stag()};
  const auto ok = client.qp->post_send(
      verbs::SendWr{.wr_id = id, .op = verbs::SendOp::kWrite, .sges = sge, .remote_stag = stag, .remote_to = to});
  ASSERT_TRUE(ok.ok()) << ok.error().why;
}

TEST_F(Engines, OneRegionServesConnectionsOfAll) {
  const auto listener = spread({&first_, &second_});
  std::deque<Node> clients;
  std::vector<Engine*> served;
  for (unsigned i = 0; i < 4; ++i) {
    clients.emplace_back(client_engine_);
    const Accepted a = join_with(clients.back(), *listener);
    ASSERT_EQ(a.server.error.code, Errc::kOk) << a.server.error.why;
    ASSERT_EQ(a.client.error.code, Errc::kOk) << a.client.error.why;
    served.push_back(a.engine);
  }
  EXPECT_EQ(std::ranges::count(served, &first_), 2);
  EXPECT_EQ(std::ranges::count(served, &second_), 2);
  EXPECT_EQ(first_.load(), 2U);
  EXPECT_EQ(second_.load(), 2U);
  for (unsigned i = 0; i < 4; ++i) {
    write_to(clients[i], i, region_.stag(), address_of(memory_) + i * kPiece);
    clients[i].expect(verbs::WcOp::kWrite, i);
  }
  for (unsigned i = 0; i < 4; ++i) {
    const verbs::Sge sge{clients[i].in.data(), kPiece, clients[i].in_mr.stag()};
    const auto ok = clients[i].qp->post_send(verbs::SendWr{.wr_id = 9,
                                                           .op = verbs::SendOp::kRead,
                                                           .sges = sge,
                                                           .remote_stag = region_.stag(),
                                                           .remote_to = address_of(memory_) + i * kPiece});
    ASSERT_TRUE(ok.ok()) << ok.error().why;
    clients[i].expect(verbs::WcOp::kRead, 9);  // behind the Write
    EXPECT_EQ(clients[i].in, clients[i].out);
  }
}

// A queue of one engine may take completions of connections that another one serves.
TEST_F(Engines, CompletionsComeFromAnyToAQueueOfOne) {
  const auto listener = spread({&second_});
  Node client(client_engine_);
  const Accepted a = join_with(client, *listener);
  ASSERT_EQ(a.engine, &second_) << "the listener's own engine takes part only when it is named";
  ASSERT_EQ(a.server.error.code, Errc::kOk) << a.server.error.why;
  const verbs::Sge sge{memory_.data(), kPiece, region_.stag()};
  ASSERT_TRUE(links_.back()->post_recv({.wr_id = 3, .sges = sge}));
  std::jthread later([&] {
    std::this_thread::sleep_for(20ms);  // the queue is waited for meanwhile
    client.send(1, 100);
  });
  ASSERT_TRUE(cq_.wait_for(kPatience));
  verbs::Completion c;
  ASSERT_EQ(cq_.poll(std::span{&c, 1}), 1U);
  EXPECT_EQ(c.wr_id, 3U);
  EXPECT_EQ(c.status, Errc::kOk);
  EXPECT_EQ(c.byte_len, 100U);
}

TEST_F(Engines, ListenerGivesEachRequestToTheOneWithTheFewest) {
  const auto listener = spread({&first_, &second_});
  std::deque<Node> clients;
  for (int i = 0; i < 3; ++i) (void)join_with(clients.emplace_back(client_engine_), *listener);
  EXPECT_EQ(first_.load(), 2U);
  // Undecided requests count, too.
  auto fourth = start_connect(clients.emplace_back(client_engine_), to(*listener));
  const auto request = next_request(*listener);
  EXPECT_EQ(&request->engine(), &second_);
  EXPECT_EQ(second_.load(), 2U);
  request->reject();
  EXPECT_EQ(get_outcome(std::move(fourth)).error.code, Errc::kPeerRejected);
  EXPECT_EQ(second_.load(), 1U) << "one that is rejected counts no more";
  // Connections that end make room, whoever holds on to them.
  links_[0].reset();
  links_[2]->abort();
  ASSERT_TRUE(eventually([&] { return first_.load() == 0; }));
  EXPECT_EQ(join_with(clients.emplace_back(client_engine_), *listener).engine, &first_);
}

TEST_F(Engines, TheApplicationMayChooseAnother) {
  const auto listener = listen(first_);
  Node client(client_engine_);
  auto connecting = start_connect(client, to(*listener));
  const auto request = next_request(*listener);
  EXPECT_EQ(&request->engine(), &first_);
  const auto of_another = request->move_to(client_engine_);
  ASSERT_FALSE(of_another.ok());
  EXPECT_EQ(of_another.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(&request->engine(), &first_);
  ASSERT_TRUE(request->move_to(second_).ok());
  ASSERT_TRUE(request->move_to(second_).ok()) << "harmless";
  EXPECT_EQ(second_.load(), 1U);
  links_.emplace_back(make_qp());
  const Outcome server =
      get_outcome(request->async_accept(links_.back().qp(), {}, cm::as_error(boost::asio::use_future)));
  ASSERT_EQ(server.error.code, Errc::kOk) << server.error.why;
  ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_EQ(second_.load(), 1U);
  EXPECT_EQ(first_.load(), 0U);
  const auto late = request->move_to(first_);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::kInvalidArgument);
}

TEST_F(Engines, QueuePairsOfAnotherContextAreRefused) {
  const auto listener = listen(first_);
  Node client(client_engine_), stranger(client_engine_);
  auto connecting = start_connect(client, to(*listener));
  const auto request = next_request(*listener);
  EXPECT_EQ(get_outcome(request->async_accept(stranger.qp, {}, cm::as_error(boost::asio::use_future))).error.code,
            Errc::kInvalidArgument);
  links_.emplace_back(make_qp());  // the request is undecided still
  EXPECT_EQ(
      get_outcome(request->async_accept(links_.back().qp(), {}, cm::as_error(boost::asio::use_future))).error.code,
      Errc::kOk);
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_EQ(
      get_outcome(async_connect(first_, stranger.qp, to(*listener), cm::as_error(boost::asio::use_future))).error.code,
      Errc::kInvalidArgument);
}

TEST_F(Engines, OptionsThatCannotBeAreRefused) {
  for (Engine* const engine : {static_cast<Engine*>(nullptr), &client_engine_}) {
    ListenOptions o;
    o.engines = {&first_, engine};
    const auto listener = Listener::listen(first_, o);
    ASSERT_FALSE(listener.ok());
    EXPECT_EQ(listener.error().code, Errc::kInvalidArgument);
    EXPECT_NE(std::string(listener.error().why).find("ListenOptions::engines"), std::string::npos);
  }
}

// Revocation holds for every connection, whichever engine serves it: nothing is placed behind it.
TEST_F(Engines, RevokedMemoryIsOutOfReachOfAll) {
  const auto listener = spread({&first_, &second_});
  std::deque<Node> clients;
  for (int i = 0; i < 4; ++i) (void)join_with(clients.emplace_back(client_engine_), *listener);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> writers;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    // Each to its own piece: Writes of two connections to one octet would be a race of the applications.
    writers.emplace_back([&, &client = clients[i], to = address_of(memory_) + i * kPiece] {
      for (std::uint64_t id = 0; !stop; ++id) {
        const verbs::Sge sge{client.out.data(), kPiece, client.out_mr.stag()};
        if (!client.qp->post_send(verbs::SendWr{
                .wr_id = id, .op = verbs::SendOp::kWrite, .sges = sge, .remote_stag = region_.stag(), .remote_to = to}))
          return;
        if (client.next().status != Errc::kOk) return;
      }
    });
  }
  std::this_thread::sleep_for(30ms);
  const Stag stag = region_.stag();
  region_.invalidate();
  std::ranges::fill(memory_, std::byte{0x77});
  EXPECT_TRUE(eventually([&] { return first_.load() + second_.load() == 0; })) << "each has met the revoked STag";
  EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0x77}; }));
  EXPECT_EQ(region_.stag(), stag);
  stop = true;
}

// Requests that nobody has taken are of the engines, which may go as soon as the listener has.
TEST(EnginesEnd, ListenerThatClosesUnderAStorm) {
  for (int round = 0; round < 10; ++round) {
    Engine first;
    Engine second(Engine::Mode::kAutomatic, Engine::kUsualSpin, first.context());
    ListenOptions o;
    o.engines = {&second};
    auto listener = listen(first, o);
    std::vector<RawTcp> peers;
    for (int i = 0; i < 8; ++i) {
      peers.push_back(RawTcp::connect(listener->local().port()));
      ASSERT_TRUE(peers.back().send(octets(good_request())));
    }
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds{300 * round});
    listener.reset();
  }
}

TEST(EnginesEnd, ItsConnectionsStayWhenAnotherGoes) {
  Engine first, client_engine;
  auto second = std::make_unique<Engine>(Engine::Mode::kAutomatic, Engine::kUsualSpin, first.context());
  Node a(first), b(first), to_first(client_engine), to_second(client_engine);
  auto listener = listen(first);
  const Ends kept = join(to_first, a, *listener);
  auto connecting = start_connect(to_second, to(*listener));
  auto request = next_request(*listener);
  ASSERT_TRUE(request->move_to(*second).ok());
  const Outcome moved = get_outcome(request->async_accept(b.qp, {}, cm::as_error(boost::asio::use_future)));
  ASSERT_EQ(moved.error.code, Errc::kOk) << moved.error.why;
  ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  request.reset();
  b.recv(7);
  second.reset();
  b.expect(verbs::WcOp::kRecv, 7, Errc::kFlushed);
  a.recv(8);
  to_first.send(1, 64);
  a.expect(verbs::WcOp::kRecv, 8);
}

TEST(EnginesManual, EachMovesItsOwn) {
  Engine first(Engine::Mode::kManual);
  Engine second(Engine::Mode::kManual, Engine::kUsualSpin, first.context());
  Engine client_engine;
  Node client(client_engine), server(first);
  ListenOptions o;
  o.engines = {&second};
  auto listener = listen(first, o);
  auto connecting = start_connect(client, to(*listener));
  auto accepting = listener->async_accept(cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(first.wait_for(accepting, kPatience));
  const auto request = std::get<1>(accepting.get());
  ASSERT_EQ(&request->engine(), &second);
  server.recv(5);
  auto established = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(second.wait_for(established, kPatience));
  ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  client.send(1, 64);
  EXPECT_FALSE(server.cq.wait_for(50ms)) << "that moves the first engine only";
  ASSERT_TRUE(eventually([&] {
    second.poll();
    return !server.cq.empty();
  }));
  server.expect(verbs::WcOp::kRecv, 5);
}

}  // namespace
}  // namespace iwarp::cm
