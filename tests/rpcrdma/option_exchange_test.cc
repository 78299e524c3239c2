// Extensions of version 2: who knows which, and what becomes of messages of the others.
#include "iwarp/rpcrdma/option_exchange.h"

#include "tests/rpcrdma/rpc_pair.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr std::uint32_t kHint = 7, kCarrier = 8, kOther = 9;

OptionRegistry some() {
  OptionRegistry out;
  EXPECT_TRUE(out.add(kHint, OptionRegistry::Payload::kNever).ok());
  EXPECT_TRUE(out.add(kCarrier, OptionRegistry::Payload::kAlways).ok());
  return out;
}
RequesterOptions requester(OptionRegistry known = some()) {
  return {.backward_credits = 2, .highest_version = kVersion2, .extensions = std::move(known)};
}
ResponderOptions responder(OptionRegistry known = some()) {
  return {.credits = 4, .highest_version = kVersion2, .extensions = std::move(known)};
}

// Version 2 is settled.
void agree(Pair& p) {
  ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, null_call(1), BufferPool::Purpose::kCall), {}).ok());
  p.run();
  auto call = next<Responder::CallReceived>(p.server);
  ASSERT_TRUE(call);
  ASSERT_TRUE(p.server.reply(call->token, to_buffer(p.server_pool, rpc_reply(1))).ok());
  p.run();
  ASSERT_TRUE(next<Requester::ReplyReceived>(p.client));
}

template <class Event, class Core>
std::optional<Event> next_option(Core& core) {
  auto event = core.poll_option();
  if (!event || !std::holds_alternative<Event>(*event)) return std::nullopt;
  return std::get<Event>(std::move(*event));
}

TEST(OptionRegistry, HasATypeOnce) {
  COVERS("V2-3.1-3");
  COVERS("V2-3.2-1");
  OptionRegistry known = some();
  EXPECT_EQ(known.add(kHint, OptionRegistry::Payload::kAlways).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(known.find(kHint), OptionRegistry::Payload::kNever);
  EXPECT_EQ(known.find(kCarrier), OptionRegistry::Payload::kAlways);
  EXPECT_FALSE(known.find(kOther));
  EXPECT_FALSE(OptionRegistry{}.find(0));
}

TEST(OptionExchange, CarriesWhatBothEndsKnowInBothDirections) {
  COVERS("V2-3.1-1");
  COVERS("V2-3.1-4");
  COVERS("V2-4.2-15");
  Pair p(requester(), responder());
  agree(p);
  const Bytes rpc = null_call(50);
  ASSERT_TRUE(p.client.send_option(50, {kCarrier, pattern(5)}, to_buffer(p.client_pool, rpc)).ok());
  ASSERT_TRUE(p.client.send_option(51, {kHint, {}}).ok());
  ASSERT_TRUE(p.server.send_option(60, {kHint, pattern(13)}).ok());
  ASSERT_TRUE(p.server.send_option(61, {kCarrier, {}}, to_buffer(p.server_pool, rpc)).ok());
  p.run();
  auto got = next_option<OptionReceived>(p.server);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->xid, 50u);
  EXPECT_EQ(got->type, kCarrier);
  EXPECT_EQ(got->info, pattern(5));
  EXPECT_EQ(to_bytes(got->message.bytes()), rpc);
  got = next_option<OptionReceived>(p.server);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->type, kHint);
  EXPECT_FALSE(got->message);
  got = next_option<OptionReceived>(p.client);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->info, pattern(13));
  got = next_option<OptionReceived>(p.client);
  ASSERT_TRUE(got);
  EXPECT_EQ(to_bytes(got->message.bytes()), rpc);
  EXPECT_FALSE(p.client.poll_event());
  EXPECT_FALSE(p.server.poll_event());
}

TEST(OptionExchange, TellsThatThePeerDoesNotKnowOne) {
  COVERS("V2-3.1-2");
  COVERS("V2-3.1-5");
  Pair p(requester(), responder({}));
  agree(p);
  ASSERT_TRUE(p.client.send_option(50, {kHint, {}}).ok());
  p.run();
  const auto refused = next_option<OptionRefused>(p.client);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->xid, 50u);
  EXPECT_EQ(refused->type, kHint);
  EXPECT_EQ(p.server.stats().inval_option_sent, 1u);
  EXPECT_EQ(p.client.stats().unknown_xids, 0u);
  // Once.
  p.client_end.receive(encode(make_inval_option(50, 4)));
  EXPECT_FALSE(p.client.poll_option());
  EXPECT_EQ(p.client.stats().unknown_xids, 1u);

  Pair other(requester({}), responder());
  agree(other);
  ASSERT_TRUE(other.server.send_option(70, {kHint, {}}).ok());
  other.run();
  EXPECT_TRUE(next_option<OptionRefused>(other.server));
  EXPECT_EQ(other.server.stats().dropped_messages, 0u);
}

TEST(OptionExchange, APayloadAsTheTypeNeverHasIsABadHeader) {
  COVERS("V2-3.2-1");
  Pair p(requester(), responder());
  agree(p);
  const auto send = [](FakeEndpoint& to, std::uint32_t type, const Bytes& payload) {
    Header h = header(77, Proc::kOptional, 2);
    h.version = kVersion2;
    h.option = {type, {}};
    to.receive(encode(h, payload));
  };
  send(p.server_end, kHint, null_call(77));
  send(p.server_end, kCarrier, {});
  EXPECT_EQ(p.server.stats().err_chunk_sent, 2u);
  send(p.client_end, kHint, null_call(77));
  send(p.client_end, kCarrier, {});
  EXPECT_EQ(p.client.stats().err_chunk_sent, 2u);
  EXPECT_FALSE(p.server.poll_option());
  EXPECT_FALSE(p.client.poll_option());
  // Ours are looked at as well.
  EXPECT_EQ(p.client.send_option(1, {kCarrier, {}}).error().code, Errc::kInvalidArgument);
  Buffer payload = to_buffer(p.client_pool, null_call(2));
  EXPECT_EQ(p.client.send_option(2, {kHint, {}}, std::move(payload)).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(payload) << "untouched";
  EXPECT_EQ(p.client.send_option(2, {kOther, {}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(p.client.send_option(2, {kHint, Bytes(4096)}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(p.server.send_option(2, {kHint, Bytes(4096)}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(p.server.send_option(2, {kOther, {}}).error().code, Errc::kInvalidArgument);
}

TEST(OptionExchange, NeedsVersion2AndACredit) {
  Pair p(requester(), responder());
  EXPECT_EQ(p.client.send_option(5, {kHint, {}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(p.server.send_option(5, {kHint, {}}).error().code, Errc::kInvalidArgument);
  agree(p);
  for (std::uint32_t xid = 2; xid <= 5; ++xid) {
    ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, null_call(xid), BufferPool::Purpose::kCall), {}).ok());
  }
  EXPECT_EQ(p.client.send_option(2, {kHint, {}}).error().code, Errc::kInvalidArgument) << "that xid is outstanding";
  EXPECT_EQ(p.client.send_option(50, {kHint, {}}).error().code, Errc::kQueueFull);
  p.client_end.disconnect();
  p.server_end.disconnect();
  EXPECT_EQ(p.client.send_option(50, {kHint, {}}).error().code, Errc::kNotConnected);
  EXPECT_EQ(p.server.send_option(50, {kHint, {}}).error().code, Errc::kNotConnected);
}

TEST(OptionExchange, BoundsWhatNobodyTakes) {
  Pair p(requester(), responder());
  agree(p);
  Header h = header(77, Proc::kOptional, 2);
  h.version = kVersion2;
  h.option = {kHint, {}};
  for (int i = 0; i < 4; ++i) p.server_end.receive(encode(h));
  EXPECT_FALSE(p.server.poll_event());
  p.server_end.receive(encode(h));
  EXPECT_TRUE(next<Responder::MustClose>(p.server));
  for (int i = 0; i < 2; ++i) p.client_end.receive(encode(h));
  EXPECT_FALSE(p.client.poll_event());
  p.client_end.receive(encode(h));
  EXPECT_TRUE(next<Requester::MustClose>(p.client));
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
