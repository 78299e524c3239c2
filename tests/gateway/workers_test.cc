// Threads that serve connections: what runs where, how clients are spread, what the workers share, how they end.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "iwarp/gateway/service.h"
#include "tests/gateway/front_fixture.h"

namespace iwarp::gateway::test {
namespace {

using ::testing::ElementsAre;

ProcessOptions with_workers(std::size_t n) {
  ProcessOptions o;
  o.workers = n;
  return o;
}

class Workers : public ::testing::Test {
 protected:
  void start(std::size_t n) {
    process = std::make_unique<Process>(engine, with_workers(n));
    process->start_workers();
  }
  Loop loop;
  cm::Engine engine{loop.io};
  std::unique_ptr<Process> process;
};

TEST_F(Workers, OneIsTheThreadOfTheProcess) {
  start(1);
  ASSERT_EQ(process->workers().size(), 1U);
  EXPECT_TRUE(process->home().here());
  EXPECT_EQ(&process->home().engine(), &engine);
  bool ran = false;
  process->home().run([&] { ran = true; });
  EXPECT_TRUE(ran) << "at once";
  process->when_all_answer([&] { ran = false; });
  EXPECT_FALSE(ran) << "likewise";
}

TEST_F(Workers, TheOthersHaveThreadsOfTheirOwn) {
  start(3);
  ASSERT_EQ(process->workers().size(), 3U);
  std::vector<std::thread::id> threads;
  std::vector<int> order;
  for (const auto& worker : process->workers()) {
    EXPECT_EQ(worker->engine().context(), engine.context()) << "or memory of one would not serve the others";
    worker->run([&] { order.push_back(1); });
    worker->run([&] { order.push_back(2); });
    worker->run_and_wait([&] {
      EXPECT_TRUE(worker->here());
      threads.push_back(std::this_thread::get_id());
    });
    EXPECT_EQ(worker->here(), worker == process->workers().front());
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_NE(threads[1], threads[0]);
  EXPECT_NE(threads[2], threads[0]);
  EXPECT_NE(threads[2], threads[1]);
}

TEST_F(Workers, AllAnswerInTheThreadOfTheProcess) {
  start(3);
  std::atomic<bool> held{true};
  process->workers()[2]->run([&] {
    while (held) std::this_thread::yield();
  });
  bool all = false;
  process->when_all_answer([&] {
    EXPECT_TRUE(process->home().here());
    all = true;
  });
  loop.run_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(all) << "one hangs";
  held = false;
  EXPECT_TRUE(loop.until([&] { return all; }));
}

// The process goes before the answers have come to its thread, which runs on.
TEST_F(Workers, NobodyHearsOfARoundWhoseProcessIsGone) {
  for (int handlers = 0; handlers < 6; ++handlers) {
    start(3);
    bool told = false;
    process->when_all_have_looked([&] { told = true; });
    for (int n = 0; n < handlers; ++n) {
      for (int i = 1; i < 3; ++i) process->workers()[i]->run_and_wait([] {});  // they have answered
      loop.io.restart();
      ASSERT_EQ(loop.io.poll_one(), 1U);
    }
    for (int i = 1; i < 3; ++i) process->workers()[i]->run_and_wait([] {});
    process.reset();
    loop.run_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(told) << handlers;
  }
}

TEST_F(Workers, WhoServesTheFewestIsNext) {
  start(2);
  EXPECT_EQ(&process->idlest_worker(), &process->home());
  auto first = process->home().take_seat();
  EXPECT_EQ(&process->idlest_worker(), process->workers()[1].get());
  const auto second = process->workers()[1]->take_seat();
  first.reset();
  EXPECT_EQ(process->home().seats(), 0U);
  EXPECT_EQ(&process->idlest_worker(), &process->home());
}

TEST_F(Workers, EndWithoutRunningWhatWaits) {
  start(2);
  std::atomic<bool> begun{false}, held{true}, ran{false};
  Worker& worker = *process->workers()[1];
  worker.run([&] {
    begun = true;
    while (held) std::this_thread::yield();
  });
  while (!begun) std::this_thread::yield();
  worker.run([&, seat = worker.take_seat()] { ran = true; });
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held = false;
  });
  worker.end();
  EXPECT_FALSE(held) << "the handler that it is in comes to its end";
  EXPECT_FALSE(ran);
  process.reset();
}

// Memory that one worker's connections hold unused is given back when another one's need it.
TEST_F(Workers, GiveMemoryToEachOther) {
  ProcessOptions o = with_workers(2);
  o.memory_bytes = std::size_t{16} << 20;
  process = std::make_unique<Process>(engine, o);
  process->start_workers();
  struct Member : rpcrdma::MemoryBudget::Member {
    explicit Member(rpcrdma::MemoryBudget& b) : budget(b) { budget.join(*this); }
    ~Member() override { budget.leave(*this); }
    void give_back() override { budget.give(std::exchange(held, 0)); }
    [[nodiscard]] std::size_t unused_bytes() const override { return held; }
    [[nodiscard]] std::size_t registered_bytes() const override { return held; }
    rpcrdma::MemoryBudget& budget;
    std::size_t held = 0;
  };
  using Stage = rpcrdma::MemoryBudget::Stage;
  Worker& other = *process->workers()[1];
  std::optional<Member> theirs;
  other.run_and_wait([&] {
    theirs.emplace(*other.memory());
    ASSERT_TRUE(other.memory()->take(std::size_t{15} << 20, Stage::kControl, *theirs));
    theirs->held = std::size_t{15} << 20;
  });
  Member own(*process->memory());
  EXPECT_EQ(process->memory()->used(), std::size_t{15} << 20);
  // Refused at first, unless they answer at once.
  ASSERT_TRUE(loop.until([&] { return process->memory()->take(std::size_t{2} << 20, Stage::kControl, own); }));
  own.held = std::size_t{2} << 20;
  EXPECT_EQ(process->memory()->used(), std::size_t{2} << 20);
  own.give_back();
  other.run_and_wait([&] { theirs.reset(); });
}

class WorkersServe : public FrontFixture {
 protected:
  ~WorkersServe() override {
    clients.clear();
    service.reset();
  }
  void open_service(std::size_t workers) {
    settings.process = with_workers(workers);
    settings.listeners.resize(1);
    settings.listeners[0].listen = {boost::asio::ip::make_address("127.0.0.1"), 0};
    settings.listeners[0].server = server.host_port();
    settings.listeners[0].options = options;
    service = std::make_unique<Service>(gateway_engine, settings.process);
    const auto changes = service->apply(settings);
    ASSERT_TRUE(changes) << changes.error;
  }
  RdmaClient& connect() {
    clients.push_back(std::make_unique<RdmaClient>(loop, client_engine));
    EXPECT_TRUE(clients.back()->connect(service->fronts().front().local));
    return *clients.back();
  }
  std::vector<std::size_t> seats() const {
    std::vector<std::size_t> out;
    for (const auto& worker : service->process().workers()) out.push_back(worker->seats());
    return out;
  }
  ServiceSettings settings;
  std::unique_ptr<Service> service;
  std::vector<std::unique_ptr<RdmaClient>> clients;
};

TEST_F(WorkersServe, ClientsInTurn) {
  open_service(3);
  for (std::uint32_t i = 0; i < 6; ++i) {
    RdmaClient& c = connect();
    c.call(samples::null_call(i));
    EXPECT_EQ(c.await(i).payload, samples::rpc_reply(i));
  }
  EXPECT_THAT(seats(), ElementsAre(2, 2, 2));
  const auto snapshot = service->snapshot();
  EXPECT_EQ(snapshot.active(), 6U);
  EXPECT_EQ(snapshot.of(MessageKind::kCall).forwarded, 6U);
  EXPECT_GT(snapshot.registered_bytes, 0U);
  EXPECT_EQ(snapshot.credits_granted, 6 * options.credits);
  clients.erase(clients.begin(), clients.begin() + 3);
  ASSERT_TRUE(loop.until([&] { return service->snapshot().active() == 3; }));
  ASSERT_TRUE(loop.until([&] { return seats() == std::vector<std::size_t>({1, 1, 1}); }));
  bool drained = false;
  service->drain([&] { drained = true; });
  EXPECT_TRUE(loop.until([&] { return drained; }));
  EXPECT_TRUE(loop.until([&] { return service->process().memory()->used() == 0; })) << "sessions go on their workers";
}

// A change of the settings starts no thread.
TEST_F(WorkersServe, CountAtTheStartOnly) {
  open_service(2);
  settings.process.workers = 6;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(service->apply(settings));
    EXPECT_EQ(service->process().workers().size(), 2U);
  }
}

// A client has just come, and its worker is busy.
TEST_F(WorkersServe, MayEndWhileASessionIsMade) {
  for (const auto direction : {Direction::kTcpToRdma, Direction::kRdmaToTcp}) {
    boost::asio::io_context io{1};
    std::optional<cm::Engine> engine(std::in_place, io);
    ServiceSettings of_both;
    of_both.process = with_workers(2);
    of_both.listeners.resize(1);
    of_both.listeners[0].direction = direction;
    of_both.listeners[0].listen = {boost::asio::ip::make_address("127.0.0.1"), 0};
    of_both.listeners[0].server = server.host_port();
    of_both.listeners[0].options.insecure_ports = true;
    std::optional<Service> ends(std::in_place, *engine, of_both.process);
    ASSERT_TRUE(ends->apply(of_both));
    const auto local = ends->fronts().front().local;
    Worker& busy = *ends->process().workers()[1];
    const auto seat = ends->process().home().take_seat();
    std::atomic<bool> begun{false}, held{true};
    busy.run([&] {
      begun = true;
      while (held) std::this_thread::yield();
    });
    while (!begun) std::this_thread::yield();
    boost::asio::ip::tcp::socket tcp_client(loop.io);
    RdmaClient rdma_client(loop, client_engine);
    direction == Direction::kTcpToRdma ? tcp_client.connect(local) : rdma_client.begin_connect(local);
    ASSERT_TRUE(loop.until([&] {
      (void)io.poll();
      return busy.seats() == 1;
    }));
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      held = false;
    });
    ends.reset();
    EXPECT_FALSE(held) << "nothing runs any more";
    engine.reset();
  }
}

// The whole goes at any time: with clients that come, that are served, and that leave.
TEST_F(WorkersServe, MayEndAtAnyTime) {
  for (int round = 0; round < 20; ++round) {
    open_service(3);
    const auto local = service->fronts().front().local;
    for (int i = 0; i < 6; ++i) {
      clients.push_back(std::make_unique<RdmaClient>(loop, client_engine));
      clients.back()->begin_connect(local);
    }
    loop.run_for(std::chrono::milliseconds(round));
    if (round % 2 == 0) clients.resize(3);
    service.reset();
    clients.clear();
  }
}

}  // namespace
}  // namespace iwarp::gateway::test
