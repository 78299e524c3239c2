// How queue pairs of the RoCE presentation are found: their numbers, and what fits none.
#include "dropin/verbs/rendezvous.h"

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <optional>

#include "iwarp/cm/listener.h"
#include "iwarp/verbs/memory_region.h"
#include "tests/dropin/fake_peer.h"
#include "tests/dropin/roce_end.h"

namespace iwarp::dropin {
namespace {

using namespace std::chrono_literals;

std::optional<Refusal> refusal_of(const std::vector<std::byte>& private_data, std::uint32_t number) {
  const Answer answer = ask(private_data, number).get();
  EXPECT_EQ(answer.error.code, Errc::kPeerRejected);
  return answer.why;
}

TEST(DropinRendezvous, NumbersDifferAndNameAPort) {
  std::vector<std::unique_ptr<End>> ends;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 300; ++i) {  // more than a port has
    ends.push_back(std::make_unique<End>(i));
    numbers.push_back(ends.back()->qp->qp_num);
    EXPECT_LE(numbers.back(), 0xffffffU);
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  End& one = *ends.front();
  End& other = *ends.back();
  ASSERT_EQ(one.rtr(other), 0);
  ASSERT_EQ(one.rts(), 0);
  ASSERT_EQ(other.rtr(one), 0);
  exchange(one, other);
}

TEST(DropinRendezvous, RequestsThatFitNoQueuePairAreRefused) {
  End end(0x42);
  const std::uint32_t number = end.qp->qp_num;
  EXPECT_EQ(refusal_of({}, number), Refusal::kNoMessage) << "as of a program of rdma_cm";
  constexpr std::uint32_t kLargest = 0xffffff;
  RendezvousMessage message{.from = kLargest, .to = kLargest, .from_psn = 1, .to_psn = 0x42};
  EXPECT_EQ(refusal_of(message.octets(), number), Refusal::kNoQueuePair);
  ASSERT_EQ(end.rtr(kLargest, 1), 0);  // this end connects when it is in RTS
  message.to = number;
  EXPECT_EQ(refusal_of(message.octets(), number), Refusal::kOtherPeer);
  message.kind = RendezvousMessage::Kind::kKnock;
  message.from_psn = 2;
  EXPECT_EQ(refusal_of(message.octets(), number), Refusal::kOtherPeer) << "a wrong PSN";
}

// Of a peer that answers a knock by accepting it, to come to the program's memory.
TEST(DropinRendezvous, AnAcceptedKnockReachesNoMemoryAndIsClosed) {
  const verbs::ProtectionDomain pd(engine().context());
  verbs::CompletionQueue cq(8);
  const auto qp = std::make_shared<verbs::QueuePair>(pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq});
  auto listening = cm::Listener::listen(engine(), {.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0}});
  ASSERT_TRUE(listening);
  const End first(1);  // the next one has the larger number, and so knocks
  End end(2);
  const char secret[] = "not yours to write";
  std::copy(std::begin(secret), std::end(secret), end.memory.begin());
  std::promise<void> over;
  verbs::SendWr write;
  std::array<std::byte, 1> octet{std::byte{1}};
  auto region = verbs::MemoryRegion::register_memory(pd, octet, {});
  ASSERT_TRUE(region);
  write.op = verbs::SendOp::kWrite;
  write.remote_stag = Stag{end.mr->rkey};
  write.remote_to = end.address(0);
  write.sges = verbs::Sge{.address = octet.data(), .length = 1, .lkey = region->stag()};
  ASSERT_TRUE(qp->post_send(write));  // goes as early as can be
  (*listening)->accept([&](const Error&, const std::unique_ptr<cm::ConnectRequest>& request) {
    ASSERT_NE(request, nullptr);
    request->accept(qp, {}, [&](const Error&, const std::shared_ptr<cm::Connection>& connection) {
      if (connection == nullptr) return over.set_value();
      connection->async_wait_disconnected([&](const stream::Disconnected&) { over.set_value(); });
    });
  });
  ASSERT_EQ(end.rtr((*listening)->local().port(), 7), 0);
  ASSERT_EQ(end.rts(), 0);
  EXPECT_EQ(over.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_STREQ(end.memory.data(), secret);
  qp->abort();
}

TEST(DropinRendezvousMessage, ParsesWhatItWrites) {
  const RendezvousMessage message{.kind = RendezvousMessage::Kind::kKnock,
                                  .from = 0x123456,
                                  .to = 0xfedcba,
                                  .from_psn = 0xabcdef,
                                  .to_psn = 0x000001};
  const auto octets = message.octets();
  EXPECT_EQ(RendezvousMessage::parse(octets), message);
  EXPECT_EQ(octets[12], std::byte{0});
  EXPECT_EQ(octets[13], std::byte{0x12});
  for (std::size_t n = 0; n < octets.size(); ++n)
    EXPECT_FALSE(RendezvousMessage::parse(ConstBytes{octets}.first(n))) << n;
  for (const std::size_t at : {0, 7, 8, 9, 12, 16, 20, 24}) {  // magic, version, kind, and numbers of more than 24 bits
    auto bad = octets;
    bad[at] = std::byte{0x77};
    EXPECT_FALSE(RendezvousMessage::parse(bad)) << at;
  }
  for (const Refusal why :
       {Refusal::kHeard, Refusal::kNoMessage, Refusal::kNoQueuePair, Refusal::kOtherPeer, Refusal::kTooMany})
    EXPECT_EQ(parse_refusal(octets_of(why)), why);
  EXPECT_FALSE(parse_refusal(octets));
  EXPECT_FALSE(parse_refusal({}));
}

}  // namespace
}  // namespace iwarp::dropin
