// ConnectOptions::judge_reply: what the private data of a Reply agree on counts from the first FPDU on.
#include <gtest/gtest.h>

#include <future>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"

namespace iwarp::cm {
namespace {

using rdmap::Extensions;

class ReplyJudge : public ::testing::Test {
 protected:
  struct End {
    explicit End(Engine& engine) : cq(engine, 16), pd(engine.context()) {}
    ~End() { qp->abort(); }
    CompletionQueue cq;
    verbs::ProtectionDomain pd;
    std::shared_ptr<verbs::QueuePair> qp =
        std::make_shared<verbs::QueuePair>(pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq});
  };

  // The server sends Immediate Data as soon as it may. The client's error.
  Error connect(stream::ReplyJudge judge) {
    auto listener = Listener::listen(engine_, {.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0}});
    EXPECT_TRUE(listener.ok());
    EXPECT_TRUE(server_.qp->set_extensions(Extensions::kRfc7306).ok());
    EXPECT_TRUE(server_.qp->post_send({.wr_id = 1, .op = rdmap::SendOp::kImmediate, .immediate = 5}).ok());
    EXPECT_TRUE(client_.qp->post_recv({.wr_id = 2}).ok());
    (*listener)->accept([this](const Error&, std::unique_ptr<ConnectRequest> r) {
      request_ = std::move(r);
      request_->accept(server_.qp, {.private_data = {std::byte{1}, std::byte{2}}},
                       [](const Error&, const std::shared_ptr<Connection>&) {});
    });
    std::promise<Error> connected;
    cm::connect(engine_, client_.qp,
                {.host = "127.0.0.1", .port = (*listener)->local().port(), .judge_reply = std::move(judge)},
                [&](const Error& e, const std::shared_ptr<Connection>&) { connected.set_value(e); });
    return connected.get_future().get();
  }
  [[nodiscard]] verbs::Completion next() {
    verbs::Completion c;
    EXPECT_TRUE(client_.cq.wait_for(std::chrono::seconds(10)));
    EXPECT_EQ(client_.cq.poll({&c, 1}), 1U);
    return c;
  }

  Engine engine_;
  End server_{engine_}, client_{engine_};
  std::unique_ptr<ConnectRequest> request_;
};

TEST_F(ReplyJudge, SeesThePrivateDataAndSaysWhatIsKnown) {
  std::vector<std::byte> seen;
  EXPECT_FALSE(connect([&](ConstBytes data) -> Result<Extensions> {
    seen.assign(data.begin(), data.end());
    return Extensions::kRfc7306;
  }));
  EXPECT_EQ(seen, (std::vector<std::byte>{std::byte{1}, std::byte{2}}));
  const auto c = next();
  EXPECT_EQ(c.status, Errc::kOk);
  EXPECT_EQ(c.immediate, 5U);
  EXPECT_TRUE(client_.qp->query()->rfc7306);
}

TEST_F(ReplyJudge, WhatItDoesNotKnowIsRefused) {
  EXPECT_FALSE(connect([](ConstBytes) -> Result<Extensions> { return Extensions::kNone; }));
  EXPECT_EQ(next().status, Errc::kFlushed);
}

TEST_F(ReplyJudge, MayEndTheAttempt) {
  const Error error = connect([](ConstBytes) -> Result<Extensions> { return make_error(Errc::kPeerRejected, "no"); });
  EXPECT_EQ(error.code, Errc::kPeerRejected);
  EXPECT_EQ(next().status, Errc::kFlushed);
  EXPECT_FALSE(client_.qp->query()->established);
}

}  // namespace
}  // namespace iwarp::cm
