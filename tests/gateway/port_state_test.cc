// Source ports over restarts: what is written is read again, and nothing else.
#include "iwarp/gateway/port_state.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::make_address;
using ::testing::HasSubstr;

const std::string kServer = "nas.example:2049";
const HostPort kNas{"nas.example", 2049};

class PortState : public ::testing::Test {
 protected:
  PortState() { std::filesystem::create_directories(directory); }
  ~PortState() override { std::filesystem::remove_all(directory); }

  std::string load(PortMemories& to, const Clocks& at) const { return load_ports(file, to, at); }
  void write(const std::string& text) const { std::ofstream(file) << text; }
  std::string content() const {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // After a reboot: the steady clock began anew.
  static Clocks later(const Clocks& then, std::chrono::seconds by) { return {TimePoint{} + 1h, then.wall + by}; }

  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("iwarp-port-state-" + std::to_string(::getpid()));
  const std::filesystem::path file = directory / "ports";
  const Clocks now{TimePoint{} + 1000h, std::chrono::system_clock::now()};
};

TEST_F(PortState, ComesBackInTheSameOrder) {
  PortMemories before;
  const auto nas = before.of(kNas);
  nas->remember(make_address("10.0.0.1"), 700, false, now.steady);
  nas->remember(make_address("10.0.0.1"), 701, true, now.steady);
  nas->remember(make_address("10.0.0.1"), 702, true, now.steady);
  nas->remember(make_address("fd00::1"), 703, false, now.steady);
  before.of(HostPort{"::1", 2049})->remember(make_address("10.0.0.1"), 704, false, now.steady);
  ASSERT_EQ(save_ports(file, before, now), "");
  PortMemories after;
  const Clocks then = later(now, 60s);
  ASSERT_EQ(load(after, then), "");
  for (const int port : {701, 702, 700}) EXPECT_EQ(after.of(kNas)->take(make_address("10.0.0.1"), then.steady), port);
  EXPECT_FALSE(after.of(kNas)->take(make_address("10.0.0.1"), then.steady));
  EXPECT_EQ(after.of(kNas)->take(make_address("fd00::1"), then.steady), 703);
  EXPECT_EQ(after.of(HostPort{"::1", 2049})->take(make_address("10.0.0.1"), then.steady), 704);
}

TEST_F(PortState, HasThePortsThatAreInUseAsLostWithCallsOutstanding) {
  PortMemories before;
  const auto nas = before.of(kNas);
  nas->remember(make_address("10.0.0.1"), 700, true, now.steady);
  auto use = PortMemory::use(nas, make_address("::ffff:10.0.0.1"), 701);
  auto ended = PortMemory::use(nas, make_address("10.0.0.1"), 702);
  ended.reset();
  ASSERT_EQ(save_ports(file, before, now), "");
  PortMemories after;
  ASSERT_EQ(load(after, now), "");
  EXPECT_EQ(after.of(kNas)->take(make_address("10.0.0.1"), now.steady), 701);
  EXPECT_EQ(after.of(kNas)->take(make_address("10.0.0.1"), now.steady), 700);
  EXPECT_FALSE(after.of(kNas)->take(make_address("10.0.0.1"), now.steady));
}

TEST_F(PortState, ExpiresByTheTimeOfDay) {
  PortMemories before;
  before.of(kNas)->remember(make_address("10.0.0.1"), 700, false, now.steady);
  ASSERT_EQ(save_ports(file, before, now), "");
  PortMemories in_time, late;
  ASSERT_EQ(load(in_time, later(now, 590s)), "");
  EXPECT_EQ(in_time.of(kNas)->addresses(), 1u);
  EXPECT_FALSE(in_time.of(kNas)->take(make_address("10.0.0.1"), TimePoint{} + 1h + 20s));
  ASSERT_EQ(load(late, later(now, 610s)), "");
  EXPECT_EQ(late.of(kNas)->addresses(), 0u);
  // A clock that was set back does not make them last for longer.
  PortMemories odd;
  const Clocks back = later(now, -240h);
  ASSERT_EQ(load(odd, back), "");
  EXPECT_FALSE(odd.of(kNas)->take(make_address("10.0.0.1"), back.steady + 601s));
}

// Times that no gateway writes, and that no clock can hold.
TEST_F(PortState, TakesAnImpossibleTimeForTheNearestPossibleOne) {
  write("iwarp-gateway-ports 1\n" + kServer + " 10.0.0.1 700 9223372036854775807 1\n" + kServer +
        " 10.0.0.2 701 -9223372036854775808 1\nend 2\n");
  PortMemories after;
  ASSERT_EQ(load(after, now), "");
  EXPECT_FALSE(after.of(kNas)->take(make_address("10.0.0.2"), now.steady));
  EXPECT_EQ(after.of(kNas)->take(make_address("10.0.0.1"), now.steady), 700);
}

TEST_F(PortState, NoFileIsNoFault) {
  PortMemories after;
  EXPECT_EQ(load(after, now), "");
}

TEST_F(PortState, AnEmptyMemoryMakesAGoodFile) {
  ASSERT_EQ(save_ports(file, PortMemories{}, now), "");
  EXPECT_EQ(content(), "iwarp-gateway-ports 1\nend 0\n");
  PortMemories after;
  EXPECT_EQ(load(after, now), "");
}

// No host has a name of 600 letters: such lines are left out, and the others come back.
TEST_F(PortState, WhatIsWrittenIsReadHoweverLongNamesAre) {
  PortMemories before;
  const std::string longest = std::string(600, 'x') + ":2049";
  before.of(longest)->remember(make_address("10.0.0.1"), 700, false, now.steady);
  before.of(kNas)->remember(make_address("10.0.0.1"), 701, false, now.steady);
  ASSERT_EQ(save_ports(file, before, now), "");
  PortMemories after;
  ASSERT_EQ(load(after, now), "");
  EXPECT_EQ(after.of(kNas)->addresses(), 1u);
  EXPECT_EQ(after.of(longest)->addresses(), 0u);
}

TEST_F(PortState, AFullFileOfLongNamesIsReadAgain) {
  PortMemories before;
  const std::string name(240, 'x');
  std::size_t clients = 0;
  for (unsigned server = 1; server <= 4; ++server) {
    const auto memory = before.of(HostPort{name, static_cast<std::uint16_t>(server)});
    for (std::uint32_t client = 0; client < 1024; ++client) {
      const boost::asio::ip::address_v4 address(0x0A000000 + client);
      for (std::uint16_t port = 1; port <= 16; ++port) memory->remember(address, port, false, now.steady);
    }
    clients += memory->addresses();
  }
  ASSERT_EQ(save_ports(file, before, now), "");
  ASSERT_GT(std::filesystem::file_size(file), 16u << 20);
  PortMemories after;
  ASSERT_EQ(load(after, now), "");
  for (const auto& [server, memory] : after.all()) clients -= memory->addresses();
  EXPECT_EQ(clients, 0u);
}

TEST(PortMemories, ForgetTheServerThatWasAskedForLongestAgo) {
  const auto host = [](std::size_t n) { return HostPort{"nas" + std::to_string(n), 2049}; };
  PortMemories all;
  const auto in_use = all.of(host(0));
  for (std::size_t n = 1; n < PortMemories::kMaxServers; ++n) {
    all.of(host(n))->remember(make_address("10.0.0.1"), 700, false, TimePoint{});
  }
  (void)all.of(host(1));
  (void)all.of(host(1000));
  EXPECT_EQ(all.all().size(), PortMemories::kMaxServers);
  EXPECT_EQ(all.all().count(host(2).to_string()), 0u);
  EXPECT_EQ(all.of(host(1))->addresses(), 1u);
  EXPECT_EQ(all.of(host(3))->addresses(), 1u);
  EXPECT_EQ(all.of(host(0)), in_use);
}

TEST_F(PortState, ADamagedFileIsToldOfAndIgnored) {
  const std::string until = std::to_string(std::chrono::system_clock::to_time_t(now.wall) + 300);
  const std::string title = "iwarp-gateway-ports 1\n";
  const std::string good = kServer + " 10.0.0.1 700 " + until + " 1\n";
  write(title + good + "end 1\n");
  PortMemories whole;
  ASSERT_EQ(load(whole, now), "");
  EXPECT_EQ(whole.of(kNas)->addresses(), 1u);
  for (const std::string& wrong :
       {std::string(), title, title + good, title + good + "end 2\n", "iwarp-gateway-ports 2\n" + good + "end 1\n",
        title + good + kServer + " 10.0.0.x 700 " + until + " 1\nend 2\n",
        title + good + kServer + " 10.0.0.1 0 " + until + " 1\nend 2\n",
        title + good + kServer + " 10.0.0.1 65536 " + until + " 1\nend 2\n",
        title + good + kServer + " 10.0.0.1 700 " + until + " 2\nend 2\n",
        title + good + kServer + " 10.0.0.1 700 " + until + " 1 more\nend 2\n",
        title + good + kServer + " 10.0.0.1 700 99999999999999999999 1\nend 2\n",
        title + good + "nas 10.0.0.1 700 " + until + " 1\nend 2\n",
        title + good + std::string(600, 'x') + ":1 10.0.0.1 700 " + until + " 1\nend 2\n"}) {
    write(wrong);
    PortMemories after;
    EXPECT_THAT(load(after, now), HasSubstr(file.string() + ": ")) << wrong;
    EXPECT_EQ(after.of(kNas)->addresses(), 0u) << wrong;
  }
}

// Every octet of a good file cut off: nothing is taken for whole that is not.
TEST_F(PortState, ACutFileIsToldOf) {
  PortMemories before;
  before.of(kNas)->remember(make_address("10.0.0.1"), 700, true, now.steady);
  ASSERT_EQ(save_ports(file, before, now), "");
  const std::string whole = content();
  for (std::size_t n = 0; n + 1 < whole.size(); ++n) {
    write(whole.substr(0, n));
    PortMemories after;
    EXPECT_NE(load(after, now), "") << n;
    EXPECT_EQ(after.of(kNas)->addresses(), 0u);
  }
}

TEST_F(PortState, AFileOfAnotherKindIsToldOf) {
  std::filesystem::create_directory(file);
  PortMemories after;
  EXPECT_THAT(load(after, now), HasSubstr("is no file"));
  EXPECT_THAT(save_ports(file, after, now), HasSubstr("cannot rename"));
  std::filesystem::remove(file);
  write(std::string(std::size_t{40} << 20, 'x'));
  EXPECT_THAT(load(after, now), HasSubstr("too long"));
  EXPECT_THAT(save_ports(directory / "none" / "ports", after, now), HasSubstr("cannot write"));
}

TEST_F(PortState, IsReadableByItsOwnerOnly) {
  ASSERT_EQ(save_ports(file, PortMemories{}, now), "");
  struct stat s {};
  ASSERT_EQ(::stat(file.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777u, 0600u);
}

TEST_F(PortState, ServersAreBounded) {
  PortMemories many;
  for (std::size_t i = 0; i < 3 * PortMemories::kMaxServers; ++i) (void)many.of("server" + std::to_string(i) + ":2049");
  EXPECT_LE(many.all().size(), PortMemories::kMaxServers);
  const auto used = many.of(kServer);
  for (std::size_t i = 0; i < 2 * PortMemories::kMaxServers; ++i) (void)many.of("other" + std::to_string(i) + ":2049");
  EXPECT_EQ(many.of(kServer), used);
}

}  // namespace
}  // namespace iwarp::gateway::test
