// rpoll() and rselect(), with rsockets, with other descriptors, and with both.
#include "tests/dropin/rsocket_support.h"
//
#include <signal.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <tuple>
#include <vector>

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  [[nodiscard]] int reader() const { return ends_[0]; }
  void write() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  std::array<int, 2> ends_{};
};

TEST(RsocketPoll, OfPlainDescriptorsIsPoll) {
  const Pipe pipe;
  std::array<pollfd, 3> watched{{{pipe.reader(), POLLIN, 0}, {-1, POLLIN, 7}, {4095, POLLIN, 0}}};
  EXPECT_EQ(::rpoll(watched.data(), 2, 0), 0);
  EXPECT_EQ(watched[1].revents, 0);
  pipe.write();
  EXPECT_EQ(::rpoll(watched.data(), 3, -1), 2);
  EXPECT_EQ(watched[0].revents, POLLIN);
  EXPECT_EQ(watched[2].revents, POLLNVAL);
  const auto begin = Clock::now();
  EXPECT_EQ(::rpoll(nullptr, 0, 20), 0);
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST_F(RsocketTest, PollWaitsForEitherKind) {
  connect();
  const Pipe pipe;
  std::array<pollfd, 3> watched{{{pipe.reader(), POLLIN, 0}, {accepted, POLLIN, 0}, {-1, POLLIN, 0}}};
  EXPECT_EQ(::rpoll(watched.data(), 3, 0), 0);
  const auto begin = Clock::now();
  EXPECT_EQ(::rpoll(watched.data(), 3, 30), 0);
  EXPECT_GE(Clock::now() - begin, 30ms);

  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(send_text(client, "x"), 1);
  });
  EXPECT_EQ(::rpoll(watched.data(), 3, -1), 1);
  EXPECT_EQ(watched[0].revents, 0);
  EXPECT_EQ(watched[1].revents, POLLIN);
  later.join();
  EXPECT_EQ(receive_text(accepted), "x");

  std::thread again([&] {
    std::this_thread::sleep_for(20ms);
    pipe.write();
  });
  EXPECT_EQ(::rpoll(watched.data(), 3, 5000), 1);
  EXPECT_EQ(watched[0].revents, POLLIN);
  EXPECT_EQ(watched[1].revents, 0);
  again.join();
}

TEST_F(RsocketTest, PollTellsOfWritingAndOfEnds) {
  connect();
  EXPECT_EQ(polled(client, POLLIN | POLLOUT, 5000), POLLOUT);
  EXPECT_EQ(::rshutdown(accepted, SHUT_WR), 0);
  EXPECT_EQ(polled(client, POLLIN | POLLRDHUP, 5000), POLLIN | POLLRDHUP);
  EXPECT_EQ(receive_text(client), "");
  EXPECT_EQ(::rclose(std::exchange(accepted, -1)), 0);
  EXPECT_EQ(polled(client, 0, 5000), POLLHUP);
}

TEST_F(RsocketTest, ManyPollersAreAllWoken) {
  connect();
  std::vector<std::thread> pollers;
  for (int i = 0; i < 4; ++i) pollers.emplace_back([&] { EXPECT_EQ(polled(accepted, POLLIN, 10'000), POLLIN); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(send_text(client, "x"), 1);
  for (auto& poller : pollers) poller.join();
}

TEST_F(RsocketTest, SignalsEndAPoll) {
  connect();
  interrupted([&] {
    pollfd watched{accepted, POLLIN, 0};
    EXPECT_EQ(::rpoll(&watched, 1, -1), -1);
    EXPECT_EQ(errno, EINTR);
  });
}

TEST_F(RsocketTest, SelectWaitsForEitherKind) {
  connect();
  const Pipe pipe;
  const int most = std::max({accepted, int{client}, pipe.reader()}) + 1;
  const auto select = [&](timeval limit) {
    std::pair<fd_set, fd_set> sets{};
    FD_SET(accepted, &sets.first);
    FD_SET(pipe.reader(), &sets.first);
    FD_SET(client, &sets.second);
    const int found = ::rselect(most, &sets.first, &sets.second, nullptr, &limit);
    return std::tuple(found, FD_ISSET(accepted, &sets.first) != 0, FD_ISSET(pipe.reader(), &sets.first) != 0,
                      FD_ISSET(client, &sets.second) != 0);
  };
  EXPECT_EQ(polled(client, POLLOUT, 5000), POLLOUT);
  EXPECT_EQ(select({0, 0}), std::tuple(1, false, false, true));
  pipe.write();
  EXPECT_EQ(send_text(client, "x"), 1);
  EXPECT_EQ(polled(accepted, POLLIN, 5000), POLLIN);
  EXPECT_EQ(select({5, 0}), std::tuple(3, true, true, true));
  timeval limit{0, 20'000};
  const auto begin = Clock::now();
  EXPECT_EQ(::rselect(0, nullptr, nullptr, nullptr, &limit), 0);
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST_F(RsocketTest, MappedMemoryIsWrittenByThePeer) {
  connect();
  std::string memory(100'000, '.');
  EXPECT_EQ(::riomap(accepted, memory.data(), memory.size(), PROT_WRITE, 0, 1000), 1000);
  EXPECT_EQ(send_text(accepted, "mapped"), 6);
  EXPECT_EQ(receive_text(client), "mapped");
  const std::string octets = pattern(90'000);
  EXPECT_EQ(::riowrite(client, octets.data(), octets.size(), 1010, 0), octets.size());
  EXPECT_EQ(send_text(client, "written"), 7);
  EXPECT_EQ(receive_text(accepted), "written");
  EXPECT_EQ(memory.substr(0, 10), "..........");
  EXPECT_TRUE(memory.substr(10, octets.size()) == octets);
  EXPECT_EQ(memory.back(), '.');
  // Nobody has mapped that: nothing is written.
  EXPECT_EQ(::riowrite(client, octets.data(), 10, 5, 0), 0U);
  EXPECT_EQ(::riowrite(client, octets.data(), 10, 1000 + 99'995, 0), 5U);
  EXPECT_EQ(::riounmap(accepted, memory.data(), 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::riounmap(accepted, memory.data(), memory.size()), 0);
  EXPECT_EQ(::riounmap(accepted, memory.data(), memory.size()), -1);
}

TEST_F(RsocketTest, TheTableOfMappedMemoryMayBeFull) {
  connect();
  std::array<char, 8> memory{};
  int mapped = 0;
  while (::riomap(client, memory.data(), memory.size(), PROT_WRITE, 0, -1) != -1 && mapped < 1000) ++mapped;
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_GE(mapped, 1);
  EXPECT_LT(mapped, 1000);
  EXPECT_EQ(::riomap(client, memory.data(), memory.size(), PROT_EXEC, 0, -1), -1);
  EXPECT_EQ(errno, EINVAL);
  // Memory that nobody may write takes no place.
  EXPECT_EQ(::riomap(client, memory.data(), 5, PROT_NONE, 0, 3), 3);
  EXPECT_EQ(::riounmap(client, memory.data(), 5), 0);
  EXPECT_EQ(::riounmap(client, memory.data(), 5), -1);
  // The connection is as it was.
  EXPECT_EQ(send_text(client, "x"), 1);
  EXPECT_EQ(receive_text(accepted), "x");
}

}  // namespace
}  // namespace iwarp::dropin::test
