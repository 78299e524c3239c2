// A host that vanishes - no FIN, no RST, no answer - between two network namespaces whose link is taken down. TCP gives
// up in the time that SocketOptions say, idle or not; both ends report it and free everything. Needs root, or `unshare
// -rn`.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "tests/cm/node.h"
#include "tests/tools/subprocess.h"

namespace iwarp::faults {
namespace {

using namespace std::chrono_literals;
using test::Node;

constexpr const char* kServerAddress = "10.77.0.1";

// A network namespace that the calling thread can enter. Empty when it may not.
class Host {
 public:
  Host() {
    if (::unshare(CLONE_NEWNET) == 0) fd_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  }
  ~Host() {
    if (fd_ >= 0) ::close(fd_);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  void enter() const { ASSERT_EQ(::setns(fd_, CLONE_NEWNET), 0); }
  // A command run there.
  [[nodiscard]] bool run(const std::string& command) const {
    enter();
    return test::shell(command + " 2>&1").code == 0;
  }
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_);
  }

 private:
  int fd_ = -1;
};

// Two hosts with a cable between them. Made and used in a thread of its own, which it leaves in one of them.
struct Cable {
  Host server, client;
  bool plugged = server && client && server.run("ip link add iw0 type veth peer name iw1") &&
                 server.run("ip link set iw1 netns " + client.path()) &&
                 server.run(std::string("ip addr add ") + kServerAddress + "/24 dev iw0 && ip link set iw0 up") &&
                 client.run("ip addr add 10.77.0.2/24 dev iw1 && ip link set iw1 up");
  void pull() const { EXPECT_TRUE(client.run("ip link set iw1 down")); }
};

// `outstanding`: data are sent when the other host is gone already.
void lose_each_other(const Cable& cable, const cm::SocketOptions& options, bool outstanding) {
  cable.server.enter();
  cm::Engine server_engine;
  cm::ListenOptions listen{.endpoint = {boost::asio::ip::make_address(kServerAddress), 0}, .socket = options};
  const auto listener = test::listen(server_engine, listen);
  cable.client.enter();
  cm::Engine client_engine;
  Node server(server_engine), client(client_engine);
  cm::ConnectOptions to = test::to_port(listener->local().port());
  to.host = kServerAddress;
  to.socket = options;
  const test::Ends ends = test::join(client, server, *listener, to);
  test::ping_pong(client, server);
  const std::size_t connected = test::open_descriptors();
  client.recv(7);
  server.recv(7);

  cable.pull();
  const auto pulled = std::chrono::steady_clock::now();
  if (outstanding) {
    client.write(8, server, 1000);
    server.write(8, client, 1000);
  }
  for (const test::Outcome* side : {&ends.client, &ends.server}) {
    const stream::Disconnected how = test::ending(*side->connection);
    EXPECT_EQ(how.reason.code, Errc::kConnectionLost);
    EXPECT_STREQ(how.reason.why, "TCP gave the peer up: it took nothing, or did not answer");
  }
  const auto took = std::chrono::steady_clock::now() - pulled;
  EXPECT_GE(took, 500ms) << "something else ended it";
  EXPECT_LT(took, 20s);
  for (Node* node : {&client, &server}) {
    verbs::Completion c = node->next();
    if (c.wr_id == 8) c = node->next();  // a Write is complete when TCP has it
    EXPECT_EQ(c.wr_id, 7u);
    EXPECT_EQ(c.status, Errc::kFlushed);
  }
  EXPECT_EQ(test::open_descriptors(), connected - 2);
}

void with_cable(const cm::SocketOptions& options, bool outstanding, bool& possible) {
  const std::size_t descriptors = test::open_descriptors();
  std::thread([&] {
    const Cable cable;
    possible = cable.plugged;
    if (possible) lose_each_other(cable, options, outstanding);
  }).join();
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

constexpr const char* kNeeds = "needs two network namespaces: run it as root or under `unshare -rn`, with iproute2";

TEST(VanishedHost, IsFoundByKeepaliveWhenIdle) {
  bool possible = false;
  with_cable({.keepalive_idle = 1s, .user_timeout = 2s}, false, possible);
  if (!possible) GTEST_SKIP() << kNeeds;
}

TEST(VanishedHost, IsFoundByTheUserTimeoutWhenDataIsOutstanding) {
  bool possible = false;
  with_cable({.keepalive_idle = 300s, .user_timeout = 1s}, true, possible);
  if (!possible) GTEST_SKIP() << kNeeds;
}

}  // namespace
}  // namespace iwarp::faults
