// Optional-data of a declared binding: whether there are any is said in line, and the data go by chunk (RFC 8166
// s3.4.4.2). Arrays: how many elements there are is said in line (s3.4.4.1).
#include "iwarp/rpcrdma/declared_binding.h"
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr std::uint32_t kProgram = 400'000;

// struct { unsigned number; opaque_data *data; } with typedef opaque opaque_data<>, as argument and as result.
std::shared_ptr<const DeclaredBinding> binding() {
  auto out = std::make_shared<DeclaredBinding>();
  for (const auto where : {BulkItem::Where::kArguments, BulkItem::Where::kResults}) {
    EXPECT_TRUE(out->add({.program = kProgram,
                          .version = 1,
                          .procedure = 1,
                          .where = where,
                          .offset = 8,
                          .max_bytes = 20'000,
                          .arm = BulkItem::Arm{4, 1}})
                    .ok());
  }
  return out;
}
Bytes item(const std::optional<Bytes>& data) {
  return data ? words({7, 1}) + opaque(*data) : words({7, 0});
}

TEST_F(RequesterTest, TheWordOfOptionalDataStaysInLine) {
  COVERS("RFC8166-3.4.4.2-1");
  COVERS("RFC8166-3.4.4.2-2");
  start({.declared = binding()});
  const Bytes data = pattern(9001);
  const Bytes call_bytes = rpc_call(1, kProgram, 1, 1, item(data));
  ASSERT_TRUE(call(call_bytes).ok());
  const Decoded d = received();
  EXPECT_EQ(d.header.proc, Proc::kMsg);
  EXPECT_EQ(d.payload, rpc_call(1, kProgram, 1, 1, words({7, 1, 9001})));
  ASSERT_EQ(d.header.read_list.size(), 1u);
  EXPECT_EQ(d.header.read_list[0].position, d.payload.size());
  EXPECT_EQ(d.header.read_list[0].target.length, 9001u);
  answer(header(1, Proc::kMsg, 8), rpc_reply(1, item(std::nullopt)));
  expect_reply(rpc_reply(1, item(std::nullopt)));
}

TEST(DeclaredOptional, IsCarriedWhetherThereIsAnyOrNot) {
  COVERS("RFC8166-3.4.4.2-1");
  COVERS("RFC8166-3.4.4.2-2");
  Pair p({.declared = binding()}, {.declared = binding()});
  std::uint32_t xid = 0;
  const std::optional<Bytes> all[] = {std::nullopt, Bytes{}, pattern(10), pattern(9000), pattern(19'999)};
  for (const auto& argument : all) {
    for (const auto& result : all) {
      const Bytes call = rpc_call(++xid, kProgram, 1, 1, item(argument));
      const Bytes answer = rpc_reply(xid, item(result));
      ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
      p.run();
      auto arrived = next<Responder::CallReceived>(p.server);
      ASSERT_TRUE(arrived);
      EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
      EXPECT_EQ(arrived->write_chunk_bytes, 20'000u);
      arrived->message.reset();
      ASSERT_TRUE(p.server.reply(arrived->token, to_buffer(p.server_pool, answer)).ok());
      p.run();
      const auto reply = next<Requester::ReplyReceived>(p.client);
      ASSERT_TRUE(reply);
      EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
    }
  }
  EXPECT_EQ(p.server.stats().calls_with_read_chunks, 10u);
  EXPECT_EQ(p.server.stats().replies_reduced, 15u);
}

// struct { unsigned number; struct { opaque name[8]; unsigned sizes<1>; } entries<>; unsigned last; }, of one size
// each.
TEST(DeclaredArray, TheCountStaysInLineAndTheElementsGoWhole) {
  COVERS("RFC8166-3.4.4.1-1");
  COVERS("RFC8166-3.4.4.1-2");
  COVERS("RFC8166-3.4.4.1-3");
  constexpr std::uint32_t kElement = 16;
  auto declared = std::make_shared<DeclaredBinding>();
  for (const auto where : {BulkItem::Where::kArguments, BulkItem::Where::kResults}) {
    ASSERT_TRUE(declared
                    ->add({.program = kProgram,
                           .version = 1,
                           .procedure = 2,
                           .where = where,
                           .offset = 4,
                           .max_bytes = 1000 * kElement,
                           .element_bytes = kElement})
                    .ok());
  }
  Pair p({.declared = declared}, {.declared = declared});
  const auto array = [](std::uint32_t n) {
    Bytes out = words({7, n});
    for (std::uint32_t i = 0; i < n; ++i) out = out + words({i, ~i, 1, i * 3});  // 1: the inner count
    return out + words({8});
  };
  std::uint32_t xid = 0;
  for (const std::uint32_t n : {0u, 1u, 63u, 64u, 999u, 1000u}) {
    const Bytes call = rpc_call(++xid, kProgram, 1, 2, array(n));
    const Bytes answer = rpc_reply(xid, array(1000 - n));
    ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
    p.run();
    auto arrived = next<Responder::CallReceived>(p.server);
    ASSERT_TRUE(arrived) << n;
    EXPECT_EQ(to_bytes(arrived->message.bytes()), call) << n;
    EXPECT_EQ(arrived->write_chunk_bytes, 1000u * kElement);
    const std::uint64_t large = call.size() > 4096 ? n * kElement : 0;
    EXPECT_EQ(arrived->read_chunk_bytes, large) << "the elements, and no octet beside them";
    arrived->message.reset();
    ASSERT_TRUE(p.server.reply(arrived->token, to_buffer(p.server_pool, answer)).ok());
    p.run();
    const auto reply = next<Requester::ReplyReceived>(p.client);
    ASSERT_TRUE(reply) << n;
    EXPECT_EQ(to_bytes(reply->message.bytes()), answer) << n;
    EXPECT_EQ(reply->written, (1000u - n) * kElement);
  }
}

TEST(DeclaredArray, OfMoreThanThereCanBeIsNone) {
  DeclaredBinding declared;
  ASSERT_TRUE(declared.add({.program = kProgram, .version = 1, .procedure = 2, .element_bytes = 1u << 20}).ok());
  const Bytes call = rpc_call(1, kProgram, 1, 2, words({4096}));
  EXPECT_FALSE(ArgumentWalker(call, &declared).next());
  EXPECT_EQ(declared.add({.program = kProgram, .element_bytes = 6}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(declared.add({.program = kProgram, .element_bytes = 0}).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
