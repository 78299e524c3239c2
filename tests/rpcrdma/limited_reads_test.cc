// CONFIG_RDMA of the draft of 2005: no end has more RDMA Reads under way than the other said that it answers at a time.
#include <gtest/gtest.h>

#include <deque>

#include "iwarp/rpcrdma/config_rdma.h"
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/responder_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr std::uint32_t kXid = 0x01020304;
constexpr std::size_t kLong = 20000;
constexpr std::size_t kSegments = 5;  // more than the 4 Reads of a FakeEndpoint

// `octets` at that end, in kSegments Read segments of one position.
ReadList offered(FakeEndpoint& end, std::deque<Bytes>& memory, const Bytes& octets) {
  ReadList out;
  for (std::size_t i = 0; i < kSegments; ++i) {
    const auto from = octets.begin() + static_cast<std::ptrdiff_t>(octets.size() * i / kSegments);
    const auto to = octets.begin() + static_cast<std::ptrdiff_t>(octets.size() * (i + 1) / kSegments);
    memory.emplace_back(from, to);
    const auto exposed = end.register_memory(memory.back(), RemoteAccess::kRead, false);
    out.push_back({0, {exposed->handle, static_cast<std::uint32_t>(memory.back().size()), exposed->offset}});
  }
  return out;
}

struct Said {
  std::uint32_t reads;  // maxrdmaread of the peer
  std::size_t at_most;
};

class ServerReads : public ResponderTest, public ::testing::WithParamInterface<Said> {};
class ClientReads : public RequesterTest, public ::testing::WithParamInterface<Said> {};

INSTANTIATE_TEST_SUITE_P(Said, ServerReads, ::testing::Values(Said{1, 1}, Said{2, 2}, Said{100, 4}));
INSTANTIATE_TEST_SUITE_P(Said, ClientReads, ::testing::Values(Said{1, 1}, Said{2, 2}, Said{100, 4}));

TEST_P(ServerReads, AreAsManyAsTheClientAnswers) {
  COVERS("D2005-6.2-7");
  ResponderOptions options;
  options.draft_2005.enabled = options.draft_2005.configure = true;
  start(options);
  send(header(kXid), rpc_call(kXid, kConfigProgram, 1, 1, words({4096, 4096, GetParam().reads})));
  run();
  ASSERT_EQ(client_.inbox.size(), 1u);
  std::deque<Bytes> memory;
  const Bytes call = write_call(kXid, pattern(kLong));
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = offered(client_, memory, call);
  send(h);
  reply(expect_call(call), write_reply(kXid));
  EXPECT_EQ(server_.max_reads_seen, GetParam().at_most);
}

TEST_P(ClientReads, AreAsManyAsTheServerAnswers) {
  COVERS("D2005-6.2-7");
  RequesterOptions options;
  options.draft_2005.enabled = options.draft_2005.configure = true;
  options.draft_2005.offer_reply_memory = false;
  start(options);
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  const std::uint32_t xid = received().header.xid;
  answer(header(xid), rpc_reply(xid, words({4096, 0, GetParam().reads})));
  EXPECT_EQ(received().header.xid, kXid);
  std::deque<Bytes> memory;
  const Bytes reply = read_reply(kXid, pattern(kLong));
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = offered(server_, memory, reply);
  answer(h);
  run();
  expect_reply(reply);
  EXPECT_EQ(client_.max_reads_seen, GetParam().at_most);
}

// None at all, so that a backward Call in Read chunks would wait for ever.
TEST_F(RequesterTest, TakesNoBackwardReadChunksWhereTheServerAnswersNoReads) {
  COVERS("D2005-6.2-7");
  RequesterOptions options;
  options.draft_2005.enabled = options.draft_2005.configure = true;
  options.backward_chunks = true;
  start(options);
  ASSERT_TRUE(call(null_call(kXid)));
  const std::uint32_t xid = received().header.xid;
  answer(header(xid), rpc_reply(xid, words({4096, 0, 0})));
  EXPECT_EQ(received().header.xid, kXid);
  std::deque<Bytes> memory;
  Header h = header(9, Proc::kNomsg);
  h.read_list = offered(server_, memory, rpc_call(9, 0x40000000, 1, 1, pattern(kLong)));
  answer(h);
  const Header error = received().header;
  EXPECT_EQ(error.xid, 9u);
  EXPECT_EQ(error.proc, Proc::kError);
  EXPECT_EQ(error.error.code, HeaderError::kChunk);
  EXPECT_EQ(client_.max_reads_seen, 0u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
