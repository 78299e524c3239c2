// What systemd is told: each message as sd_notify(3) has it, to a path and to an abstract socket.
#include "tools/service_manager.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "tests/tools/notify_socket.h"
#include "tests/tools/recording.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using tools::ServiceManager;

// Set while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(ServiceManager, IsToldAtAPathAndAtAnAbstractSocket) {
  const Scratch scratch("service-manager");
  for (const std::string& name : {scratch.file("notify"), "@iwarp-test-notify-" + std::to_string(::getpid())}) {
    NotifySocket socket(name);
    ASSERT_TRUE(socket.bound());
    const Variable where("NOTIFY_SOCKET", name);
    ServiceManager manager;
    manager.ready("2 listeners");
    EXPECT_EQ(socket.next(), "READY=1\nSTATUS=2 listeners\n");
    manager.reloading();
    EXPECT_THAT(socket.next(), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+\n"));
    manager.stopping(std::chrono::seconds(5));
    EXPECT_THAT(socket.next(), MatchesRegex("STOPPING=1\nSTATUS=.*\nEXTEND_TIMEOUT_USEC=15000000\n"));
    manager.alive();
    EXPECT_EQ(socket.next(), "WATCHDOG=1\n");
  }
}

TEST(ServiceManager, IsNotToldWhereThereIsNone) {
  EXPECT_FALSE(ServiceManager().told());
  EXPECT_FALSE(ServiceManager().watchdog());
  const std::string too_long = "/" + std::string(200, 'x');
  for (const std::string& wrong : {std::string("relative"), std::string(), too_long}) {
    const Variable where("NOTIFY_SOCKET", wrong);
    ServiceManager odd;
    EXPECT_FALSE(odd.told()) << wrong;
    odd.ready("well");
  }
  const Variable where("NOTIFY_SOCKET", "/right");
  EXPECT_TRUE(ServiceManager().told());
}

// A busy manager reads later. Signs of life may be lost, news not.
TEST(ServiceManager, WaitsForRoomInAFullQueue) {
  NotifySocket socket("@iwarp-test-full-" + std::to_string(::getpid()));
  ASSERT_TRUE(socket.bound());
  const Variable where("NOTIFY_SOCKET", socket.name());
  const int filler = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_TRUE(socket.fill_from(filler));
  ServiceManager manager;
  manager.alive();  // returns
  std::thread busy([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::string news;
    while ((news = socket.next()) == "x") {
    }
    EXPECT_EQ(news, "READY=1\nSTATUS=well\n");
  });
  manager.ready("well");
  busy.join();
  ::close(filler);
}

TEST(ServiceManager, WantsSignsOfLifeTwiceInItsTime) {
  const Variable time("WATCHDOG_USEC", "3000000");
  EXPECT_EQ(ServiceManager().watchdog(), std::chrono::microseconds(1500000));
  {
    const Variable mine("WATCHDOG_PID", std::to_string(::getpid()));
    EXPECT_TRUE(ServiceManager().watchdog());
  }
  {
    const Variable of_another("WATCHDOG_PID", "1");
    EXPECT_FALSE(ServiceManager().watchdog());
  }
  for (const char* wrong : {"0", "-1", "soon", ""}) {
    const Variable no_time("WATCHDOG_USEC", wrong);
    EXPECT_FALSE(ServiceManager().watchdog()) << wrong;
  }
}

}  // namespace
}  // namespace iwarp::test
