// ConnectOptions::try_again: an attempt that fails for what may pass begins anew, with all that was posted.
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class TryAgain : public ::testing::Test {
 protected:
  // Tries again `times` at most; the private data of the n-th other Request are n octets.
  [[nodiscard]] ConnectOptions options(std::uint16_t port, std::size_t times) {
    ConnectOptions o = to_port(port);
    o.policy.allow_revision_1_fallback = o.policy.allow_peer_to_peer_fallback = false;
    o.private_data = pattern(40);
    o.try_again = [this, times](const Error& failed, ConstBytes private_data) -> std::optional<std::vector<std::byte>> {
      asked_.push_back({failed.code, Bytes(private_data.begin(), private_data.end())});
      if (asked_.size() > times) return std::nullopt;
      return std::vector<std::byte>(asked_.size());
    };
    return o;
  }
  // The private data of the next Request, which `from` gets.
  std::size_t next_request(RawTcp& from) {
    from = peer_.accept();
    const FrameRead request = read_frame(from, false);
    EXPECT_TRUE(request.complete);
    return request.frame.private_data.size();
  }
  static mpa::StartupFrame rejection(ConstBytes private_data) {
    mpa::StartupFrame no = good_reply(private_data);
    no.reject = true;
    return no;
  }

  struct Asked {
    Errc code;
    Bytes private_data;
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  std::vector<Asked> asked_;
  RawListener peer_;
  Engine engine_;
  Node client_{engine_};
};

TEST_F(TryAgain, BehindARejectionAResetAndAnEnd) {
  client_.recv(1);
  client_.send(3, 16);
  auto connecting = start_connect(client_, options(peer_.port(), 3));
  RawTcp tcp;
  EXPECT_EQ(next_request(tcp), 40U);
  const Bytes why = pattern(5);
  ASSERT_TRUE(tcp.send(octets(rejection(why))));
  EXPECT_EQ(tcp.end(), RawTcp::End::kFin);
  EXPECT_EQ(next_request(tcp), 1U);
  tcp.reset();
  EXPECT_EQ(next_request(tcp), 2U);
  tcp.close();
  EXPECT_EQ(next_request(tcp), 3U);
  ASSERT_TRUE(tcp.send(octets(good_reply())));
  ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_EQ(asked_,
            (std::vector<Asked>{{Errc::kPeerRejected, why}, {Errc::kConnectionLost, {}}, {Errc::kConnectionLost, {}}}));
  client_.expect(verbs::WcOp::kSend, 3);
  ASSERT_TRUE(tcp.send(fpdu(send_segment(pattern(5)), true)));
  client_.expect(verbs::WcOp::kRecv, 1);
}

TEST_F(TryAgain, UntilThatSaysNo) {
  client_.recv(1);
  auto connecting = start_connect(client_, options(peer_.port(), 1));
  RawTcp tcp;
  const Bytes first = pattern(5), second = pattern(6);
  EXPECT_EQ(next_request(tcp), 40U);
  ASSERT_TRUE(tcp.send(octets(rejection(first))));
  EXPECT_EQ(next_request(tcp), 1U);
  ASSERT_TRUE(tcp.send(octets(rejection(second))));
  const Outcome c = get_outcome(std::move(connecting));
  EXPECT_EQ(c.error.code, Errc::kPeerRejected);
  ASSERT_NE(c.connection, nullptr);
  EXPECT_EQ(c.connection->disconnected()->private_data, second);
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_EQ(asked_.size(), 2U);
  EXPECT_FALSE(peer_.anybody(150));
}

TEST_F(TryAgain, WhereNobodyListens) {
  std::uint16_t port = 0;
  {
    const RawListener gone;
    port = gone.port();
  }
  auto o = options(port, 4);
  o.refusal_patience = 10ms;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(get_outcome(start_connect(client_, o)).error.code, Errc::kConnectionRefused);
  EXPECT_EQ(asked_, std::vector<Asked>(5, Asked{Errc::kConnectionRefused, {}}));
  // 2, 4, 8 and 16 ms, and five times what refusals are borne.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 80ms);
}

TEST_F(TryAgain, IsGivenUpInAPause) {
  for (const bool by_queue_pair : {true, false}) {
    Node own(engine_);
    own.recv(1);
    auto o = options(peer_.port(), 1000);
    const auto canceller = std::make_shared<Canceller>();
    std::promise<Error> over;
    asked_.clear();
    cm::connect(
        engine_, own.qp, o, [&](const Error& e, const std::shared_ptr<Connection>&) { over.set_value(e); }, canceller);
    RawTcp tcp;
    for (int i = 0; i < 8; ++i) {  // then the pause is 100 ms
      (void)next_request(tcp);
      ASSERT_TRUE(tcp.send(octets(rejection({}))));
      EXPECT_EQ(tcp.end(), RawTcp::End::kFin);
    }
    if (by_queue_pair) {
      own.qp->abort();
    } else {
      canceller->cancel();
    }
    EXPECT_EQ(get(over.get_future()).code, Errc::kAborted);
    own.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
    EXPECT_FALSE(peer_.anybody(150));
  }
}

// There is one TCP connection only.
TEST_F(TryAgain, NotWithTheApplicationsTcpConnection) {
  boost::asio::ip::tcp::socket socket(engine_.io());
  socket.connect({boost::asio::ip::address_v4::loopback(), peer_.port()});
  std::promise<Error> over;
  cm::connect_over(engine_, client_.qp, TcpConnection(std::move(socket)), options(peer_.port(), 3),
                   [&](const Error& e, const std::shared_ptr<Connection>&) { over.set_value(e); });
  RawTcp tcp;
  EXPECT_EQ(next_request(tcp), 40U);
  ASSERT_TRUE(tcp.send(octets(rejection({}))));
  EXPECT_EQ(get(over.get_future()).code, Errc::kPeerRejected);
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace iwarp::cm
