// Data over real sockets: every FPDU size, CRC on and off, large messages both ways at once, many queue pairs at once.
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using verbs::WcOp;

struct Format {
  bool crc;
  mpa::FpduPolicy fpdu;
};

std::string format_name(const ::testing::TestParamInfo<Format>& p) {
  const char* size = p.param.fpdu == mpa::FpduPolicy::kEmss  ? "Emss"
                     : p.param.fpdu == mpa::FpduPolicy::k16k ? "16k"
                                                             : "Max";
  return std::string(p.param.crc ? "Crc" : "NoCrc") + size;
}

class Transfer : public ::testing::TestWithParam<Format> {
 protected:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  static stream::Options options() {
    stream::Options o;
    o.fpdu = GetParam().fpdu;
    return o;
  }
  Ends connect() {
    ListenOptions lo;
    mpa::Policy policy;
    lo.policy.crc = policy.crc = GetParam().crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
    listener_ = listen(server_engine_, lo);
    Ends ends = join(client_, server_, *listener_, to(*listener_, policy));
    EXPECT_EQ(ends.client.connection->negotiated().crc, GetParam().crc);
    return ends;
  }

  Engine server_engine_, client_engine_;
  Node server_{server_engine_, options(), kBytes}, client_{client_engine_, options(), kBytes};
  std::unique_ptr<Listener> listener_;
};

TEST_P(Transfer, SendsBothWaysAtOnce) {
  client_.recv(1);
  server_.recv(1);
  const Ends ends = connect();
  const auto side = [](Node& node, const Node& peer) {
    node.send(2, kBytes);
    bool sent = false, received = false;
    while (!sent || !received) {
      const verbs::Completion c = node.next();
      EXPECT_EQ(c.status, Errc::kOk);
      (c.op == WcOp::kRecv ? received : sent) = true;
    }
    EXPECT_EQ(node.in, peer.out);
  };
  std::thread other([&] { side(server_, client_); });
  side(client_, server_);
  other.join();
  EXPECT_EQ(ends.client.connection->counters().tx.send_bytes, kBytes);
  EXPECT_EQ(ends.client.connection->counters().rx.send_bytes, kBytes);
}

TEST_P(Transfer, WritesAndReads) {
  const Ends ends = connect();
  client_.write(1, server_, kBytes);
  client_.read(2, server_, kBytes);
  client_.expect(WcOp::kWrite, 1);
  client_.expect(WcOp::kRead, 2);
  EXPECT_EQ(server_.in, client_.out) << "the Read's completion proves that the Write has arrived";
  EXPECT_EQ(client_.in, server_.out);
  server_.write(3, client_, kBytes);
  server_.read(4, client_, kBytes);
  server_.expect(WcOp::kWrite, 3);
  server_.expect(WcOp::kRead, 4);
  EXPECT_EQ(client_.in, server_.out);
  EXPECT_EQ(server_.in, client_.out);
}

INSTANTIATE_TEST_SUITE_P(Formats, Transfer,
                         ::testing::Values(Format{true, mpa::FpduPolicy::kEmss}, Format{true, mpa::FpduPolicy::k16k},
                                           Format{true, mpa::FpduPolicy::kMax}, Format{false, mpa::FpduPolicy::kEmss},
                                           Format{false, mpa::FpduPolicy::k16k}, Format{false, mpa::FpduPolicy::kMax}),
                         format_name);

// Connections come and go in many threads while others move data.
TEST(ManyQueuePairs, FromManyThreads) {
  constexpr int kThreads = 6, kConnections = 8;
  Engine server_engine, client_engine;
  const auto listener = listen(server_engine);
  std::mutex accepting;
  std::vector<std::thread> all;
  for (int t = 0; t < kThreads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < kConnections; ++i) {
        Node server(server_engine, {}, 20'000), client(client_engine, {}, 20'000);
        Ends ends;
        {
          const std::lock_guard one_at_a_time(accepting);  // so that it is known who talks to whom
          ends = join(client, server, *listener);
        }
        ping_pong(client, server);
        client.write(1, server, 20'000);
        client.read(2, server, 20'000);
        client.expect(WcOp::kWrite, 1);
        client.expect(WcOp::kRead, 2);
        EXPECT_EQ(client.in, server.out);
        if ((i + t) % 3 == 0) {
          ends.server.connection->disconnect();
        } else {
          ends.client.connection->abort();
        }
        (void)ending(*ends.client.connection);
        (void)ending(*ends.server.connection);
      }
    });
  }
  for (auto& t : all) t.join();
}

}  // namespace
}  // namespace iwarp::cm
