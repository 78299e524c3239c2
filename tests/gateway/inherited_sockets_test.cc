// Sockets of the gateway are not inherited by a program that its process executes: held open there a connection would
// outlive the gateway's end of it, and a port would stay taken.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "iwarp/gateway/metrics_server.h"
#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

class InheritedSockets : public Chained {
 protected:
  struct Found {
    unsigned all = 0, inherited = 0;
  };
  using Name = int (*)(int, sockaddr*, socklen_t*);

  // The descriptors of this process whose `name`, getsockname() or getpeername(), has the port.
  static Found with_port(Name name, std::uint16_t port) {
    Found found;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
      sockaddr_in at{};
      socklen_t size = sizeof at;
      if (name(descriptor, reinterpret_cast<sockaddr*>(&at), &size) != 0 || at.sin_family != AF_INET ||
          ntohs(at.sin_port) != port)
        continue;
      ++found.all;
      if ((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) ++found.inherited;
    }
    return found;
  }
};

TEST_F(InheritedSockets, AreNone) {
  auto opened = MetricsServer::open(loop.io, {}, [] { return std::string("a page"); });
  ASSERT_TRUE(opened) << opened.error;
  const auto metrics = std::move(*opened.value);
  tcp::socket scrape(loop.io);
  scrape.connect(metrics->local());
  ASSERT_TRUE(loop.until([&] { return metrics->connections() == 1; }));
  const auto client = warm_client();

  for (const std::uint16_t port : {tcp_front->local().port(), front->local().port(), metrics->local().port()}) {
    const Found found = with_port(::getsockname, port);
    EXPECT_EQ(found.all, 2U) << "one that listens, and a connection";
    EXPECT_EQ(found.inherited, 0U);
  }
  const Found to_server = with_port(::getpeername, server.host_port().port);
  EXPECT_EQ(to_server.all, 1U);
  EXPECT_EQ(to_server.inherited, 0U);
}

}  // namespace
}  // namespace iwarp::gateway::test
