// Immediate data and Atomics of libibverbs over RFC 7306, agreed on by rdma_cm: the process is one of
// `iwarp run --rfc7306`.
#include "tests/dropin/rdma_cm_support.h"
//
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <vector>

#include "dropin/verbs/agreement.h"
#include "dropin/verbs/interface.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

// Before anything asks for the settings.
const int kSwitchedOn = ::setenv("IWARP_RFC7306", "on", 1);

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

ibv_wc next(ibv_cq* cq) {
  ibv_wc wc{};
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (::ibv_poll_cq(cq, 1, &wc) == 0) {
    if (std::chrono::steady_clock::now() < until) continue;
    ADD_FAILURE() << "no completion";
    break;
  }
  return wc;
}

void receive(const rdma_cm_id* id, std::uint64_t wr_id) {
  ibv_recv_wr wr{.wr_id = wr_id, .next = nullptr, .sg_list = nullptr, .num_sge = 0};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(::ibv_post_recv(id->qp, &wr, &bad), 0);
}

int post(const rdma_cm_id* id, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return ::ibv_post_send(id->qp, &wr, &bad);
}

class Memory {
 public:
  Memory(const rdma_cm_id* id, int access, std::size_t octets = 4096) : octets_(octets / 8) {
    mr_ = ::ibv_reg_mr(id->pd, octets_.data(), octets, access);
    EXPECT_NE(mr_, nullptr);
  }
  ~Memory() { ::ibv_dereg_mr(mr_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] ibv_sge sge(std::uint32_t length) { return {.addr = address(), .length = length, .lkey = mr_->lkey}; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(octets_.data()); }
  [[nodiscard]] std::uint32_t rkey() const { return mr_->rkey; }
  [[nodiscard]] std::uint64_t& word(std::size_t i = 0) { return octets_[i]; }

 private:
  std::vector<std::uint64_t> octets_;
  ibv_mr* mr_ = nullptr;
};

ibv_send_wr write_with_immediate(std::uint64_t wr_id, ibv_sge& from, const Memory& to, std::uint32_t immediate) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &from;
  wr.num_sge = from.length == 0 ? 0 : 1;
  wr.imm_data = htonl(immediate);
  wr.wr.rdma = {.remote_addr = to.address(), .rkey = to.rkey()};
  return wr;
}

ibv_send_wr atomic(ibv_wr_opcode op, ibv_sge& sink, const Memory& at, std::uint64_t compare_add,
                   std::uint64_t swap = 0) {
  ibv_send_wr wr{};
  wr.opcode = op;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &sink;
  wr.num_sge = 1;
  wr.wr.atomic = {.remote_addr = at.address(), .compare_add = compare_add, .swap = swap, .rkey = at.rkey()};
  return wr;
}

class Rfc7306Pair : public RdmaCmPair {
 protected:
  ~Rfc7306Pair() override {
    if (server != nullptr) destroy(server);
    destroy(client);
    destroy(listener);
  }
  void establish() {
    auto hello = parameters("hello");
    ASSERT_EQ(::rdma_connect(client, &hello), 0);
    rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(private_data_of(*event), "hello") << "without the trailer";
    server = event->id;
    ::rdma_ack_cm_event(event);
    make_queue_pair(server);
    auto answer = parameters("and you", 5, 3);
    ASSERT_EQ(::rdma_accept(server, &answer), 0);
    passive.expect(RDMA_CM_EVENT_ESTABLISHED);
    event = active.take(RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(private_data_of(*event), "and you");
    ::rdma_ack_cm_event(event);
  }
  rdma_cm_id* server = nullptr;
};

TEST_F(Rfc7306Pair, AWriteWithImmediateTellsItsLengthAndItsOctets) {
  establish();
  Memory from(client, kAll), to(server, kAll);
  from.word(1) = 77;
  receive(server, 5);
  auto sge = from.sge(16);
  ASSERT_EQ(post(client, write_with_immediate(6, sge, to, 0xC0FFEE01)), 0);
  const ibv_wc got = next(server->recv_cq);
  EXPECT_EQ(got.wr_id, 5U);
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(got.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ntohl(got.imm_data), 0xC0FFEE01U);
  EXPECT_EQ(got.byte_len, 16U);
  EXPECT_EQ(to.word(1), 77U);
  const ibv_wc sent = next(client->send_cq);
  EXPECT_EQ(sent.wr_id, 6U);
  EXPECT_EQ(sent.opcode, IBV_WC_RDMA_WRITE);
}

TEST_F(Rfc7306Pair, AWriteOfNothingWithImmediateHasNoLength) {
  establish();
  Memory from(client, kAll), to(server, kAll);
  receive(server, 1);
  receive(server, 2);
  auto some = from.sge(64), none = from.sge(0);
  ASSERT_EQ(post(client, write_with_immediate(1, some, to, 1)), 0);
  ASSERT_EQ(post(client, write_with_immediate(2, none, to, 2)), 0);
  EXPECT_EQ(next(server->recv_cq).byte_len, 64U);
  const ibv_wc got = next(server->recv_cq);
  EXPECT_EQ(got.byte_len, 0U);
  EXPECT_EQ(ntohl(got.imm_data), 2U);
}

TEST_F(Rfc7306Pair, SolicitedImmediateDataIsAnEvent) {
  establish();
  Memory from(client, kAll), to(server, kAll);
  receive(server, 1);
  receive(server, 2);
  ASSERT_EQ(::ibv_req_notify_cq(server->recv_cq, 1), 0);
  auto sge = from.sge(8);
  ASSERT_EQ(post(client, write_with_immediate(1, sge, to, 1)), 0);
  EXPECT_EQ(next(server->recv_cq).wr_id, 1U);
  EXPECT_FALSE(readable(server->recv_cq_channel->fd));
  auto loud = write_with_immediate(2, sge, to, 2);
  loud.send_flags |= IBV_SEND_SOLICITED | IBV_SEND_INLINE;
  ASSERT_EQ(post(client, loud), 0);
  EXPECT_TRUE(readable(server->recv_cq_channel->fd, 10000));
  ibv_cq* cq = nullptr;
  void* of = nullptr;
  ASSERT_EQ(::ibv_get_cq_event(server->recv_cq_channel, &cq, &of), 0);
  ::ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(next(server->recv_cq).byte_len, 8U);
}

TEST_F(Rfc7306Pair, AtomicsBringBackWhatWasThere) {
  establish();
  Memory result(client, IBV_ACCESS_LOCAL_WRITE);
  Memory word(server, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);  // no other right
  word.word() = 40;
  auto sink = result.sge(8);
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, sink, word, 2)), 0);
  ibv_wc wc = next(client->send_cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(wc.byte_len, 8U);
  EXPECT_EQ(result.word(), 40U);
  EXPECT_EQ(word.word(), 42U);
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, sink, word, 41, 7)), 0);
  wc = next(client->send_cq);
  EXPECT_EQ(wc.opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(result.word(), 42U);
  EXPECT_EQ(word.word(), 42U) << "not as expected: left alone";
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, sink, word, 42, 7)), 0);
  EXPECT_EQ(next(client->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(word.word(), 7U);
}

TEST_F(Rfc7306Pair, TheRightOfAtomicsIsNoOther) {
  establish();
  Memory mine(client, kAll), word(server, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  word.word() = 1;
  auto from = mine.sge(8);
  mine.word() = 2;
  auto write = write_with_immediate(1, from, word, 0);
  write.opcode = IBV_WR_RDMA_WRITE;
  ASSERT_EQ(post(client, write), 0);
  receive(client, 9);
  EXPECT_EQ(next(client->recv_cq).status, IBV_WC_WR_FLUSH_ERR) << "the connection is over";
  EXPECT_EQ(word.word(), 1U);
}

TEST_F(Rfc7306Pair, AtomicsNeedARight) {
  establish();
  Memory result(client, kAll), word(server, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  auto sink = result.sge(8);
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, sink, word, 2)), 0);
  EXPECT_NE(next(client->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(word.word(), 0U);
}

TEST_F(Rfc7306Pair, NoSendWithImmediateOnAnRnic) {
  establish();
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  EXPECT_EQ(post(client, wr), EOPNOTSUPP);
}

TEST_F(Rfc7306Pair, NothingOfItBeforeTheConnectionAgreesOnIt) {
  Memory from(client, kAll);
  auto sge = from.sge(8);
  EXPECT_EQ(post(client, write_with_immediate(1, sge, from, 1)), EOPNOTSUPP);
}

TEST_F(Rfc7306Pair, TheTrailerTakesRoomOfThePrivateData) {
  const std::string data(240, 'x');
  auto too_long = parameters(data);
  EXPECT_EQ(::rdma_connect(client, &too_long), -1);
  EXPECT_EQ(errno, EINVAL);
  auto longest = parameters(std::string_view(data).substr(0, 239));
  ASSERT_EQ(::rdma_connect(client, &longest), 0);
  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), std::string(239, 'x'));
  server = event->id;
  ::rdma_ack_cm_event(event);
  make_queue_pair(server);
  EXPECT_EQ(::rdma_accept(server, &too_long), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(::rdma_accept(server, &longest), 0);
  event = active.take(RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), std::string(239, 'x'));
  ::rdma_ack_cm_event(event);
}

TEST_F(Rfc7306Pair, ARejectionHasNone) {
  auto hello = parameters("hello");
  ASSERT_EQ(::rdma_connect(client, &hello), 0);
  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  server = event->id;
  ::rdma_ack_cm_event(event);
  const std::string reason(251, 'n');
  EXPECT_EQ(::rdma_reject(server, reason.data(), 251), 0);
  event = active.take(RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), reason);
  ::rdma_ack_cm_event(event);
}

// The extended queue pair and completion queue of a client, in place of the usual ones.
TEST(Rfc7306Extended, PostsAndPolls) {
  Channel passive, active;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* const client = make_id(active);
  auto peer = loopback(ntohs(::rdma_get_src_port(listener)));
  ASSERT_EQ(::rdma_resolve_addr(client, nullptr, as_sockaddr(peer), 1000), 0);
  active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(::rdma_resolve_route(client, 1000), 0);
  active.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  ibv_cq_init_attr_ex of_cq{};
  of_cq.cqe = 16;
  of_cq.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM;
  ibv_cq_ex* const cq = ::ibv_create_cq_ex(client->verbs, &of_cq);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr_ex of_qp{};
  of_qp.send_cq = of_qp.recv_cq = ibv_cq_ex_to_cq(cq);
  of_qp.qp_type = IBV_QPT_RC;
  of_qp.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  of_qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  of_qp.pd = client->pd;
  of_qp.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM;
  EXPECT_EQ(::ibv_create_qp_ex(client->verbs, &of_qp), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  of_qp.send_ops_flags =
      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  client->qp = ::ibv_create_qp_ex(client->verbs, &of_qp);
  ASSERT_NE(client->qp, nullptr);
  auto hello = parameters();
  ASSERT_EQ(::rdma_connect(client, &hello), 0);
  rdma_cm_event* const event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  rdma_cm_id* const server = event->id;
  ::rdma_ack_cm_event(event);
  make_queue_pair(server);
  auto answer = parameters();
  ASSERT_EQ(::rdma_accept(server, &answer), 0);
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  active.expect(RDMA_CM_EVENT_ESTABLISHED);
  {
    Memory here(client, kAll), there(server, kAll | IBV_ACCESS_REMOTE_ATOMIC);
    there.word() = 5;
    receive(server, 3);
    receive(client, 4);
    ibv_qp_ex* const qp = ::ibv_qp_to_qp_ex(client->qp);
    const auto sink = here.sge(8);
    ::ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    qp->wr_id = 1;
    ::ibv_wr_atomic_fetch_add(qp, there.rkey(), there.address(), 4);
    ::ibv_wr_set_sge(qp, sink.lkey, sink.addr, 8);
    qp->wr_id = 2;
    ::ibv_wr_atomic_cmp_swp(qp, there.rkey(), there.address(), 9, 100);
    ::ibv_wr_set_sge(qp, sink.lkey, sink.addr, 8);
    qp->wr_id = 3;
    ::ibv_wr_rdma_write_imm(qp, there.rkey(), there.address() + 64, htonl(0xAB));
    ::ibv_wr_set_sge(qp, sink.lkey, sink.addr, 8);
    ASSERT_EQ(::ibv_wr_complete(qp), 0);
    const ibv_wc wc = next(server->recv_cq);
    EXPECT_EQ(wc.byte_len, 8U);
    EXPECT_EQ(ntohl(wc.imm_data), 0xABU);
    for (const auto op : {IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP, IBV_WC_RDMA_WRITE})
      EXPECT_EQ(next(of_qp.send_cq).opcode, op);
    EXPECT_EQ(there.word(), 100U);
    EXPECT_EQ(here.word(), 9U);

    auto back = there.sge(8);
    ASSERT_EQ(post(server, write_with_immediate(8, back, here, 0x01020304)), 0);
    ibv_poll_cq_attr none{};
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (::ibv_start_poll(cq, &none) != 0) ASSERT_LT(std::chrono::steady_clock::now(), until);
    EXPECT_EQ(cq->wr_id, 4U);
    EXPECT_EQ(::ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(::ibv_wc_read_wc_flags(cq), unsigned{IBV_WC_WITH_IMM});
    EXPECT_EQ(ntohl(::ibv_wc_read_imm_data(cq)), 0x01020304U);
    EXPECT_EQ(::ibv_wc_read_byte_len(cq), 8U);
    ::ibv_end_poll(cq);
  }
  destroy(server);
  destroy(client);
  destroy(listener);
  EXPECT_EQ(::ibv_destroy_cq(of_qp.send_cq), 0);
}

TEST(Rfc7306Device, HasAtomicsOfThisProcess) {
  ASSERT_EQ(kSwitchedOn, 0);
  ibv_device_attr attributes{};
  ASSERT_EQ(::ibv_query_device(dropin::context(), &attributes), 0);
  EXPECT_EQ(attributes.atomic_cap, IBV_ATOMIC_GLOB);
}

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
  EXPECT_EQ(next(server->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Rfc7306FromForeign, ASendWithImmediateThatWasNotAgreedOnEndsTheConnection) {
  ASSERT_TRUE(peer.qp->set_extensions(rdmap::Extensions::kSendWithImmediate));
  connect(with_trailer({}, {.rfc7306 = true, .send_immediate = true}));
  receive(server, 7);
  ASSERT_TRUE(peer.qp->post_send({.op = rdmap::SendOp::kSendImmediate, .immediate = 1}));
  EXPECT_EQ(next(server->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace iwarp::dropin::test
