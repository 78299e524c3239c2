// Optional-data of a declared binding: whether there are any is said in line, and the data go by chunk (RFC 8166
// s3.4.4.2).
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

}  // namespace
}  // namespace iwarp::rpcrdma::test
