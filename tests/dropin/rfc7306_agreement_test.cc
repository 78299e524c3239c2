// Immediate data and Atomics between a drop-in end and one of the C++ library, which agrees on what it is told to.
#include "tests/dropin/rfc7306_support.h"
//
#include <future>
#include <string>

#include "dropin/verbs/agreement.h"
#include "dropin/verbs/interface.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::dropin::test {
namespace {

// A peer of the C++ library, which knows nothing of the trailer and sends what it is told to.
class Foreign {
 public:
  Foreign() = default;
  ~Foreign() { qp->abort(); }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;

 private:
  verbs::ProtectionDomain pd_{engine().context()};
  verbs::CompletionQueue cq_{64};

 public:
  const std::shared_ptr<verbs::QueuePair> qp =
      std::make_shared<verbs::QueuePair>(pd_, verbs::QueuePair::Options{.send_cq = &cq_, .recv_cq = &cq_});
};

std::vector<std::byte> octets(std::string_view text) {
  const auto all = std::as_bytes(std::span{text});
  return {all.begin(), all.end()};
}
std::string text(ConstBytes from) {
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}

// What a drop-in client is answered by a foreign server, and what it then does with immediate data.
class Rfc7306ToForeign : public ::testing::Test {
 protected:
  void connect(const std::vector<std::byte>& reply) {
    auto listening = cm::Listener::listen(engine(), {.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0}});
    ASSERT_TRUE(listening);
    std::promise<std::vector<std::byte>> request;
    (*listening)->accept([&](const Error&, const std::unique_ptr<cm::ConnectRequest>& r) {
      const auto data = r->private_data();
      r->accept(peer.qp, {.private_data = reply}, [](const Error&, const std::shared_ptr<cm::Connection>&) {});
      request.set_value(data);
    });
    client = make_client(channel, (*listening)->local().port());
    auto hello = parameters("hello");
    ASSERT_EQ(::rdma_connect(client, &hello), 0);
    const auto got = request.get_future().get();
    const auto parsed = parse_private_data(got);
    EXPECT_EQ(text(parsed.own), "hello");
    EXPECT_EQ(parsed.trailer, Agreement{.rfc7306 = true});
    rdma_cm_event* const event = channel.take(RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(event, nullptr);
    answer = private_data_of(*event);
    ::rdma_ack_cm_event(event);
  }
  int post_immediate() {
    Memory from(client, kAll);
    auto sge = from.sge(0);
    return post(client, write_with_immediate(1, sge, from, 1));
  }
  ~Rfc7306ToForeign() override { destroy(client); }

  Channel channel;
  Foreign peer;
  rdma_cm_id* client = nullptr;
  std::string answer;
};

TEST_F(Rfc7306ToForeign, WithoutATrailerNothingIsAgreedOn) {
  connect(octets("plain"));
  EXPECT_EQ(answer, "plain");
  EXPECT_EQ(post_immediate(), EOPNOTSUPP);
}

TEST_F(Rfc7306ToForeign, NorByOneThatSaysNothing) {
  connect(with_trailer(octets("own"), {.roce = true, .send_immediate = true}));
  EXPECT_EQ(answer, "own");
  EXPECT_EQ(post_immediate(), EOPNOTSUPP);
}

TEST_F(Rfc7306ToForeign, OnlyWhatWasOfferedIsTaken) {
  connect(with_trailer(octets("own"), {.rfc7306 = true, .roce = true, .send_immediate = true}));
  EXPECT_EQ(post_immediate(), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  EXPECT_EQ(post(client, wr), EOPNOTSUPP);
}

TEST_F(Rfc7306ToForeign, ABrokenTrailerIsTheProgramsData) {
  auto broken = with_trailer(octets("own"), {.rfc7306 = true});
  broken[3 + 3] = std::byte{9};  // its count
  connect(broken);
  EXPECT_EQ(answer, text(broken));
  EXPECT_EQ(post_immediate(), EOPNOTSUPP);
}

// What a foreign client is answered by a drop-in server.
class Rfc7306FromForeign : public ::testing::Test {
 protected:
  void connect(std::vector<std::byte> request) {
    std::promise<std::vector<std::byte>> replied;
    cm::connect(engine(), peer.qp,
                {.host = "127.0.0.1", .port = ntohs(::rdma_get_src_port(listener)), .private_data = std::move(request)},
                [&](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                  EXPECT_FALSE(error);
                  replied.set_value(connection == nullptr ? std::vector<std::byte>{} : connection->private_data());
                });
    rdma_cm_event* const event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(event, nullptr);
    asked = private_data_of(*event);
    server = event->id;
    ::rdma_ack_cm_event(event);
    make_queue_pair(server);
    auto answer = parameters("answer");
    ASSERT_EQ(::rdma_accept(server, &answer), 0);
    reply = replied.get_future().get();
    passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  int post_immediate() {
    Memory from(server, kAll);
    auto sge = from.sge(0);
    return post(server, write_with_immediate(1, sge, from, 1));
  }
  ~Rfc7306FromForeign() override {
    destroy(server);
    destroy(listener);
  }

  Channel passive;
  Foreign peer;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* server = nullptr;
  std::string asked;
  std::vector<std::byte> reply;
};

TEST_F(Rfc7306FromForeign, WhoHasNoTrailerGetsNone) {
  connect(octets("request"));
  EXPECT_EQ(asked, "request");
  EXPECT_EQ(text(reply), "answer");
  EXPECT_EQ(post_immediate(), EOPNOTSUPP);
}

TEST_F(Rfc7306FromForeign, WhoHasOneIsAnsweredWhatBothCan) {
  connect(with_trailer(octets("request"), {.rfc7306 = true, .send_immediate = true}));
  EXPECT_EQ(asked, "request");
  const auto parsed = parse_private_data(reply);
  EXPECT_EQ(text(parsed.own), "answer");
  EXPECT_EQ(parsed.trailer, Agreement{.rfc7306 = true});
  EXPECT_EQ(post_immediate(), 0);
}

TEST_F(Rfc7306FromForeign, WhereNothingIsInCommonThereIsNone) {
  connect(with_trailer(octets("request"), {.send_immediate = true}));
  EXPECT_EQ(asked, "request");
  EXPECT_EQ(text(reply), "answer");
  EXPECT_EQ(post_immediate(), EOPNOTSUPP);
}

// Not agreed on: refused as any reserved opcode, before the program sees it.
TEST_F(Rfc7306FromForeign, ImmediateDataThatWasNotAgreedOnEndsTheConnection) {
  ASSERT_TRUE(peer.qp->set_extensions(rdmap::Extensions::kSendWithImmediate));
  connect(octets("request"));
  receive(server, 7);
  ASSERT_TRUE(peer.qp->post_send({.op = rdmap::SendOp::kImmediate, .immediate = 1}));
  EXPECT_EQ(next_completion(server->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Rfc7306FromForeign, ASendWithImmediateThatWasNotAgreedOnEndsTheConnection) {
  ASSERT_TRUE(peer.qp->set_extensions(rdmap::Extensions::kSendWithImmediate));
  connect(with_trailer({}, {.rfc7306 = true, .send_immediate = true}));
  receive(server, 7);
  ASSERT_TRUE(peer.qp->post_send({.op = rdmap::SendOp::kSendImmediate, .immediate = 1}));
  EXPECT_EQ(next_completion(server->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace iwarp::dropin::test
