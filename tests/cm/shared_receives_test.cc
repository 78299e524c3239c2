// Connections over loopback whose servers draw from one shared receive queue, and what is told of it.
#include <poll.h>

#include <map>
#include <thread>

#include "iwarp/cm/link.h"
#include "iwarp/verbs/shared_receive_queue.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

constexpr std::size_t kSlot = 64;

struct SharedReceivesTest : public ::testing::Test {
  // A Receive for each of that many slots.
  void post(std::uint64_t slot) {
    const verbs::Sge sge{memory.data() + slot * kSlot, kSlot, mr.stag()};
    ASSERT_TRUE(srq.post_recv({.wr_id = slot, .sges = sge}).ok());
  }
  // Connects `client` with a new queue pair here.
  void connect(Node& client) {
    auto connecting = start_connect(client, to(*listener));
    const auto request = next_request(*listener);
    verbs::QueuePair::Options o{.send_cq = &cq, .recv_cq = &cq, .srq = &srq};
    links.push_back(Link::make(pd, o).value());
    auto accepted = links.back().async_accept(*request, {}, cm::as_error(boost::asio::use_future));
    ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
    ASSERT_EQ(get_outcome(std::move(accepted)).error.code, Errc::kOk);
  }
  // The next asynchronous event; waits for it.
  verbs::AsyncEvent next_event() {
    pollfd p{.fd = engine.context()->async_event_fd().value(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())), 1);
    return engine.context()->poll_async_event().value();
  }

  Engine client_engine, engine;
  verbs::ProtectionDomain pd{engine.context()};
  verbs::CompletionQueue cq{4096, &engine};
  Bytes memory = Bytes(1024 * kSlot);
  verbs::MemoryRegion mr =
      verbs::MemoryRegion::register_memory(pd, memory, {.access = ddp::Access::kLocalWrite}).value();
  verbs::SharedReceiveQueue srq{pd, {.depth = 1024}};
  std::unique_ptr<Listener> listener = listen(engine);
  std::vector<Link> links;
};

// Two clients send from threads of their own, while a third thread takes what comes and posts the Receives anew.
TEST_F(SharedReceivesTest, ServesConnectionsOfSeveralThreads) {
  COVERS("RFC5042-2.3.5-1");
  constexpr std::uint64_t kMessages = 400;
  for (std::uint64_t slot = 0; slot < 2 * kMessages; ++slot) post(slot);
  Node one(client_engine), two(client_engine);
  connect(one);
  connect(two);
  std::vector<std::jthread> senders;
  for (Node* client : {&one, &two}) {
    senders.emplace_back([client] {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        client->send(i, kSlot);
        client->expect(verbs::WcOp::kSend, i);
      }
    });
  }
  std::map<std::uint32_t, std::uint64_t> taken;
  for (std::uint64_t got = 0; got < 2 * kMessages;) {
    std::array<verbs::Completion, 16> some;
    ASSERT_TRUE(cq.wait_for(kPatience));
    const std::size_t n = cq.poll(some);
    for (const verbs::Completion& c : std::span(some).first(n)) {
      ASSERT_EQ(c.status, Errc::kOk);
      ASSERT_EQ(c.op, verbs::WcOp::kRecv);
      ++taken[c.qp_number];
      post(c.wr_id);
    }
    got += n;
  }
  for (auto& t : senders) t.join();
  ASSERT_EQ(taken.size(), 2U);
  for (const Link& link : links) {
    EXPECT_EQ(taken[link->number()], kMessages);
    EXPECT_EQ(link->receives_taken(), kMessages);
  }
  EXPECT_EQ(srq.posted(), 2 * kMessages);
  EXPECT_FALSE(engine.context()->poll_async_event());
}

// RFC 5042 s6.4.3.1: the low-water notification, the statistics of who consumes, and the end of that stream, all before
// another one finds the queue empty.
TEST_F(SharedReceivesTest, APeerThatTakesMoreThanItsShareIsFoundAndEnded) {
  COVERS("RFC5042-6.4.3.1-1");
  COVERS("RFC5040-8.1.2-9");
  COVERS("RFC5041-8.3.2-7");
  for (std::uint64_t slot = 0; slot < 32; ++slot) post(slot);
  ASSERT_TRUE(srq.set_limit(16).ok());
  Node greedy(client_engine), modest(client_engine);
  connect(greedy);
  connect(modest);
  modest.send(0, kSlot);
  for (std::uint64_t i = 0; i < 20; ++i) greedy.send(i, 1);
  const verbs::AsyncEvent low = next_event();
  ASSERT_EQ(low.type, verbs::AsyncEventType::kSrqLimitReached);
  ASSERT_EQ(low.srq, &srq);
  EXPECT_TRUE(eventually([&] { return links[0]->receives_taken() == 20; }));
  EXPECT_LE(links[1]->receives_taken(), 1U);
  links[0]->abort();
  for (std::uint64_t slot = 32; slot < 64; ++slot) post(slot);
  EXPECT_EQ(next_event().type, verbs::AsyncEventType::kLastWqeReached);
  modest.send(1, kSlot);
  EXPECT_TRUE(eventually([&] { return links[1]->receives_taken() == 2; }));
  EXPECT_FALSE(engine.context()->poll_async_event());
}

TEST_F(SharedReceivesTest, OneWhoFindsItEmptyIsToldSoAndTheApplicationHears) {
  COVERS("RFC5041-7.1-2");
  Node client(client_engine);
  connect(client);
  client.send(1, 1);
  const verbs::AsyncEvent fatal = next_event(), last = next_event();
  EXPECT_EQ(fatal.type, verbs::AsyncEventType::kQpFatal);
  EXPECT_EQ(fatal.reason.code, Errc::kUntaggedNoBuffer);
  EXPECT_EQ(last.type, verbs::AsyncEventType::kLastWqeReached);
  EXPECT_EQ(last.qp_number, links[0]->number());
  EXPECT_TRUE(eventually([&] { return client_engine.context()->poll_async_event().has_value(); })) << "the Terminate";
}

TEST_F(SharedReceivesTest, NoEventNamesALinkThatIsGone) {
  Node client(client_engine);
  connect(client);
  links.clear();
  EXPECT_FALSE(engine.context()->poll_async_event());
}

}  // namespace
}  // namespace iwarp::cm
