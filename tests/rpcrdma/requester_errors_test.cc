// Requester: hostile and unlucky servers, exhaustion, disconnects; what Replies may be short.
#include <functional>
#include <vector>

#include "tests/rpcrdma/requester_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

TEST_F(RequesterTest, RefusesWhatIsNoNewCall) {
  COVERS("RFC8167-2.4-2");
  start();
  EXPECT_EQ(call(rpc_reply(1)).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(call(Bytes(3)).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(call(getattr_call(1)).ok());
  EXPECT_EQ(call(getattr_call(1)).error().code, Errc::kInvalidArgument);  // in flight
  ASSERT_TRUE(call(getattr_call(2)).ok());
  EXPECT_EQ(call(getattr_call(2)).error().code, Errc::kInvalidArgument);  // queued
}

TEST_F(RequesterTest, FailsCallsThatTheServerCannotTake) {
  COVERS("RFC8166-4.5-9");
  COVERS("RFC8166-4.2.4-11");
  COVERS("RFC8166-8.1.3-3");
  COVERS("RFC8267-3.1-2");
  COVERS("RFC8267-6.4.2-7");
  COVERS("RFC8267-6.4.2-8");
  COVERS("RFC8267-6.6-2");
  COVERS("RFC8267-6.7.2-3");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  ASSERT_TRUE(call(readdir_call(2)).ok());
  (void)received();
  answer(make_err_chunk(1, 1, 64));
  auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, 1u);
  EXPECT_EQ(failed->why, Requester::Failure::kErrChunk);
  (void)received();
  Header h = make_err_vers(2, 1, 64);
  h.error.version_low = 2;
  h.error.version_high = 3;
  answer(h);
  failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kErrVers);
  EXPECT_EQ(failed->version_low, 2u);
  EXPECT_EQ(failed->version_high, 3u);
  EXPECT_EQ(client_.exposed(), 0u);
  answer(make_err_chunk(3, 1, 64));  // nobody's
  EXPECT_EQ(requester_->stats().unknown_xids, 1u);
  EXPECT_TRUE(nothing_received());
}

std::vector<Bytes> unreadable_replies() {
  Header other_version = header(1, Proc::kMsg, 9);
  other_version.version = 2;
  return {
      encode(header(1, Proc::kMsg, 9), rpc_reply(2)),   // xids differ
      encode(header(1, Proc::kMsg, 9), words({1, 5})),  // neither Call nor Reply
      encode(other_version, rpc_reply(1)),
      words({1, 1, 9, 2, 0, 0, 0, 0, 0}),  // RDMA_MSGP
      words({1, 1, 9}),                    // no whole RDMA_DONE
      words({1, 2, 9, 3, 0, 0, 0}),        // nor one of our version
      Bytes(20),
  };
}

class UnreadableReply : public RequesterTest, public ::testing::WithParamInterface<Bytes> {};

// Whose Reply it was cannot be told: its Call would wait for ever. Nothing is answered, and the connection ends.
TEST_P(UnreadableReply, EndsTheConnection) {
  COVERS("RFC8166-4.5-4");
  COVERS("RFC8166-4.3.1-3");
  COVERS("RFC8166-4.6.1-3");
  COVERS("RFC8167-4.1-6");
  COVERS("RFC8166-4.2.4-11");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  (void)received();
  client_.receive(GetParam());
  const auto end = next<Requester::MustClose>(*requester_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->error.code, Errc::kMalformedRpc);
  EXPECT_TRUE(nothing_received());
  EXPECT_EQ(requester_->credits().granted(), 1u);
  EXPECT_EQ(requester_->stats().dropped_messages, 1u);
}
INSTANTIATE_TEST_SUITE_P(All, UnreadableReply, ::testing::ValuesIn(unreadable_replies()));

TEST_F(RequesterTest, DropsRdmaDone) {
  COVERS("RFC8166-4.6.2-2");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  (void)received();
  for (const Bytes& behind : {Bytes{}, words({0, 0}), words({0, 0, 0}), words({0, 0, 0, 7})}) {
    client_.receive(words({1, 1, 9, 3}) + behind);  // it is those four words alone; more does no harm
    EXPECT_FALSE(requester_->poll_event()) << behind.size();
  }
  EXPECT_EQ(requester_->stats().dropped_messages, 4u);
  answer(header(1, Proc::kMsg, 9), rpc_reply(1));
  expect_reply(rpc_reply(1));
}

TEST_F(RequesterTest, DropsRepliesToNothing) {
  COVERS("RFC8167-2.4-4");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  (void)received();
  answer(header(7), rpc_reply(7));
  EXPECT_FALSE(requester_->poll_event());
  EXPECT_EQ(requester_->stats().unknown_xids, 1u);
  answer(header(1, Proc::kMsg, 9), rpc_reply(1));
  expect_reply(rpc_reply(1));
}

TEST_F(RequesterTest, KnowsSinceWhenCallsAreOut) {
  using namespace std::chrono_literals;
  start();
  const TimePoint begin = now_ += 1h;
  ASSERT_TRUE(call(getattr_call(1)).ok());
  EXPECT_FALSE(requester_->waits_for_credit());
  now_ += 10s;
  ASSERT_TRUE(call(getattr_call(2)).ok());  // no second credit before the first Reply
  EXPECT_TRUE(requester_->waits_for_credit());
  now_ += 10s;
  EXPECT_FALSE(call(getattr_call(1)).ok());
  EXPECT_FALSE(call(getattr_call(2)).ok());  // a repetition does not make them younger
  EXPECT_EQ(requester_->outstanding_since(1), begin);
  EXPECT_EQ(requester_->outstanding_since(2), begin + 10s);
  (void)received();
  answer(header(1, Proc::kMsg, 9), rpc_reply(1));
  expect_reply(rpc_reply(1));
  EXPECT_EQ(requester_->calls_ended(), 1u);
  EXPECT_FALSE(requester_->waits_for_credit());
  EXPECT_FALSE(requester_->outstanding_since(1));
  EXPECT_EQ(requester_->outstanding_since(2), begin + 10s);  // it waited, and counts from when it came
}

// Nobody may answer a bad Reply (RFC 8166 s4.5), but the RPC must not hang on it: it ends, its memory is fenced.
TEST_F(RequesterTest, FailsCallsWhoseReplyMisusesChunks) {
  COVERS("RFC8166-4.5-4");
  COVERS("RFC8166-6.1-10");
  COVERS("RFC8166-3.4.3-2");
  start();
  using Edit = std::function<void(Header&, const WriteChunk&)>;
  const std::vector<Edit> edits = {
      [](Header& h, const WriteChunk&) {
        h.read_list = {{4, {Stag{1}, 4, 0}}};
      },
      [](Header& h, const WriteChunk& ours) { h.write_list.push_back(ours); },  // none was offered
      [](Header& h, const WriteChunk& ours) { h.reply_chunk = ours; },          // used, though in line
      [](Header& h, const WriteChunk& ours) {
        h.proc = Proc::kNomsg;
        h.reply_chunk = ours;
        h.reply_chunk->segments[0].length = ours.segments[0].length + 1;  // more than there is
      },
      [](Header& h, const WriteChunk& ours) {
        h.proc = Proc::kNomsg;
        h.reply_chunk = ours;
        h.reply_chunk->segments[0].handle = Stag{0x777};
      },
      [](Header& h, const WriteChunk& ours) {
        h.proc = Proc::kNomsg;
        h.reply_chunk = WriteChunk{{ours.segments[0], ours.segments[0]}};
      },
  };
  std::uint32_t xid = 100;
  for (const Edit& edit : edits) {
    ASSERT_TRUE(call(readdir_call(++xid)).ok());
    const WriteChunk ours = *received().header.reply_chunk;
    Header h = header(xid, Proc::kMsg, 9);
    edit(h, ours);
    if (h.proc == Proc::kMsg) {
      answer(h, rpc_reply(xid));
    } else {
      answer(h);
    }
    const auto event = requester_->poll_event();
    ASSERT_TRUE(event) << xid;
    const auto* failed = std::get_if<Requester::CallFailed>(&*event);
    ASSERT_NE(failed, nullptr) << xid;
    EXPECT_EQ(failed->xid, xid);
    EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
    EXPECT_EQ(client_.exposed(), 0u);
    EXPECT_TRUE(nothing_received());
  }
}

TEST_F(RequesterTest, ChecksWhatTheServerWroteAfterTheFence) {
  COVERS("RFC5042-6.2.2-1");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  const Decoded d = received();
  write_remote(d.header.reply_chunk->segments[0], rpc_reply(99));
  Header h = header(1, Proc::kNomsg, 64);
  h.reply_chunk = d.header.reply_chunk;
  h.reply_chunk->segments[0].length = 24;
  answer(h);
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
  EXPECT_EQ(client_.exposed(), 0u);
}

TEST_F(RequesterTest, ClosesIfItCannotFence) {
  COVERS("RFC8166-4.5.4-2");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  (void)received();
  client_.refuse_invalidation = true;
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  EXPECT_TRUE(next<Requester::MustClose>(*requester_));
  EXPECT_FALSE(requester_->poll_event());
  client_.refuse_invalidation = false;
}

TEST_F(RequesterTest, FailsTheCallIfMemoryCannotBeExposed) {
  COVERS("RFC8166-4.5.4-1");
  start();
  Buffer message = to_buffer(*pool_, readlink_call(1), BufferPool::Purpose::kCall);
  pool_->acquire(1 << 20, BufferPool::Purpose::kReply).reset();  // the Reply's buffer is there already
  client_.refuse_registrations = true;
  ASSERT_TRUE(requester_->call(std::move(message), now_).ok());
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kLocal);
  EXPECT_EQ(requester_->outstanding_calls(), 0u);
}

// A limit of locked memory: so many registrations of memory to expose at a time, and no more.
class RequesterHeldBack : public RequesterTest {
 protected:
  void start_with_credits() {
    start();
    ASSERT_TRUE(call(null_call(1)).ok());
    (void)received();
    answer_in_line(1);
  }
  void answer_in_line(std::uint32_t xid) {
    answer(header(xid, Proc::kMsg, 64), rpc_reply(xid));
    expect_reply(rpc_reply(xid));
  }
};

TEST_F(RequesterHeldBack, UntilACallIsOverThatExposes) {
  start_with_credits();
  client_.most_exposed = 2;
  for (std::uint32_t xid = 1; xid <= 4; ++xid) ASSERT_TRUE(call(readlink_call(xid)).ok());
  ASSERT_TRUE(call(null_call(5)).ok());  // in its place in the order of Calls
  EXPECT_EQ(received().header.xid, 1u);
  EXPECT_EQ(received().header.xid, 2u);
  EXPECT_TRUE(nothing_received());
  EXPECT_TRUE(requester_->waits_for_exposed());
  EXPECT_FALSE(requester_->waits_for_credit());
  const auto releases = pool_->releases();
  requester_->progress();
  EXPECT_TRUE(nothing_received());
  EXPECT_EQ(pool_->releases(), releases) << "it tries when a Call has ended, and no sooner";
  answer_in_line(1);
  EXPECT_EQ(received().header.xid, 3u);
  EXPECT_TRUE(nothing_received());
  EXPECT_TRUE(requester_->waits_for_exposed());
  answer_in_line(2);
  EXPECT_EQ(received().header.xid, 4u);
  EXPECT_EQ(received().header.xid, 5u);
  EXPECT_FALSE(requester_->waits_for_exposed());
  for (const std::uint32_t xid : {3u, 4u, 5u}) answer_in_line(xid);
  EXPECT_TRUE(requester_->idle());
}

// Nor by what it has exposed itself before it was refused: both would wait in vain.
TEST_F(RequesterHeldBack, NotByCallsThatExposeNothing) {
  start_with_credits();
  client_.most_exposed = 1;
  ASSERT_TRUE(call(null_call(1)).ok());
  (void)received();
  ASSERT_TRUE(call(rpc_call(2, 0x20000042, 1, 1, pattern(65'536))).ok());  // a Reply chunk, and itself in a Read chunk
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kLocal);
  EXPECT_EQ(client_.exposed(), 0u);
  EXPECT_FALSE(requester_->waits_for_exposed());
  answer_in_line(1);
  EXPECT_TRUE(requester_->idle());
}

// Whatever else is out.
TEST_F(RequesterHeldBack, UntilAReplyIsLetGo) {
  start_with_credits();
  for (const bool others : {false, true}) {
    ASSERT_TRUE(call(readlink_call(1)).ok());
    const Decoded d = received();
    const Bytes data = rpc_reply(1, pattern(5000));
    write_remote(d.header.reply_chunk->segments[0], data);
    if (others) {
      ASSERT_TRUE(call(readlink_call(3)).ok());
      (void)received();
    }
    Header h = header(1, Proc::kNomsg, 64);
    h.reply_chunk = d.header.reply_chunk;
    h.reply_chunk->segments[0].length = static_cast<std::uint32_t>(data.size());
    answer(h);
    auto kept = next<Requester::ReplyReceived>(*requester_);
    ASSERT_TRUE(kept);
    client_.registrations_to_refuse = 100;
    ASSERT_TRUE(call(readlink_call(2)).ok());
    requester_->progress();
    EXPECT_TRUE(nothing_received());
    EXPECT_EQ(requester_->waits_for_exposed(), others);
    ASSERT_TRUE(call(null_call(4)).ok());  // goes right behind it
    client_.registrations_to_refuse = 0;
    requester_->progress();
    EXPECT_TRUE(nothing_received());
    kept.reset();
    requester_->progress();
    EXPECT_EQ(received().header.xid, 2u);
    EXPECT_EQ(received().header.xid, 4u);
    answer_in_line(2);
    answer_in_line(4);
    if (others) answer_in_line(3);
    EXPECT_TRUE(requester_->idle());
  }
}

// It counts, too.
TEST_F(RequesterHeldBack, BehindIdleMemoryOfThePool) {
  start_with_credits();
  (void)pool_->acquire(100'000, BufferPool::Purpose::kCall);
  EXPECT_GT(pool_->idle_bytes(), 0u);
  client_.registrations_to_refuse = 1;
  ASSERT_TRUE(call(readlink_call(1)).ok());
  EXPECT_EQ(received().header.xid, 1u);
  EXPECT_EQ(pool_->idle_bytes(), 0u);
  answer_in_line(1);
}

TEST_F(RequesterHeldBack, AndCancelledOthersGo) {
  start_with_credits();
  client_.most_exposed = 1;
  ASSERT_TRUE(call(readlink_call(1)).ok());
  (void)received();
  ASSERT_TRUE(call(readlink_call(2)).ok());
  ASSERT_TRUE(call(null_call(3)).ok());
  EXPECT_TRUE(requester_->cancel(2));
  requester_->progress();
  EXPECT_EQ(received().header.xid, 3u);
  answer_in_line(3);
  answer_in_line(1);
  EXPECT_TRUE(requester_->idle());
}

// Whole, with Read chunks and with Write chunks, as if nothing had been.
TEST_F(RequesterHeldBack, AndSentAsItIs) {
  start_with_credits();
  client_.most_exposed = 1;
  for (const Bytes& message : {write_call(2, pattern(65'536)), read_call(2, 65'536)}) {
    ASSERT_TRUE(call(readlink_call(1)).ok());
    (void)received();
    ASSERT_TRUE(call(message).ok());
    EXPECT_TRUE(nothing_received());
    answer_in_line(1);
    const Decoded d = received();
    EXPECT_EQ(d.header.xid, 2u);
    EXPECT_EQ(d.header.read_list.size() + d.header.write_list.size(), 1u);
    answer(header(2, Proc::kMsg, 64), rpc_reply(2));
    (void)requester_->poll_event();
    EXPECT_EQ(client_.exposed(), 0u);
    EXPECT_TRUE(requester_->idle());
  }
}

TEST_F(RequesterTest, WaitsForReplyMemory) {
  COVERS("RFC8166-6.2-1");
  auto memory = pool_options(RequesterOptions{});
  memory.reply_bytes = BufferPool::charged_bytes((1 << 20) + (64 << 10) + 4);
  start({}, memory);
  ASSERT_TRUE(call(null_call(1)).ok());
  (void)received();
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  expect_reply(rpc_reply(1));
  ASSERT_TRUE(call(readlink_call(2)).ok());
  ASSERT_TRUE(call(readlink_call(3)).ok());
  const Decoded d = received();
  EXPECT_TRUE(nothing_received());
  const Bytes data = rpc_reply(2, pattern(5000));
  write_remote(d.header.reply_chunk->segments[0], data);
  Header h = header(2, Proc::kNomsg, 64);
  h.reply_chunk = d.header.reply_chunk;
  h.reply_chunk->segments[0].length = static_cast<std::uint32_t>(data.size());
  answer(h);
  EXPECT_TRUE(nothing_received());  // the Reply still holds the memory
  expect_reply(data, true);
  requester_->progress();
  EXPECT_EQ(received().header.xid, 3u);
}

TEST_F(RequesterTest, CancelledCallsKeepTheirMemoryUntilTheReply) {
  COVERS("RFC8166-4.4.1-3");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  ASSERT_TRUE(call(readdir_call(2)).ok());
  (void)received();
  EXPECT_TRUE(requester_->cancel(1));
  EXPECT_TRUE(requester_->cancel(2));  // still queued
  EXPECT_FALSE(requester_->cancel(1));
  EXPECT_FALSE(requester_->cancel(3));
  EXPECT_EQ(client_.exposed(), 1u);
  EXPECT_EQ(requester_->outstanding_calls(), 1u);
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  EXPECT_FALSE(requester_->poll_event());
  EXPECT_EQ(client_.exposed(), 0u);
  run();
  EXPECT_TRUE(requester_->idle());
}

TEST_F(RequesterTest, RepliesToCancelledCallsMayBeWantedAgain) {
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  (void)received();
  EXPECT_FALSE(requester_->want_again(1));  // it is wanted
  EXPECT_TRUE(requester_->cancel(1));
  EXPECT_FALSE(requester_->want_again(2));
  EXPECT_TRUE(requester_->want_again(1));
  EXPECT_FALSE(requester_->want_again(1));
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  const auto reply = next<Requester::ReplyReceived>(*requester_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->xid, 1u);
}

TEST_F(RequesterTest, FlushLeaksNothing) {
  COVERS("RFC8267-6.7.2-4");
  start();
  for (std::uint32_t xid = 1; xid <= 3; ++xid) ASSERT_TRUE(call(write_call(xid, pattern(9000))).ok());
  client_.disconnect();
  EXPECT_TRUE(next<Requester::MustClose>(*requester_));
  EXPECT_FALSE(requester_->poll_event());
  EXPECT_EQ(call(getattr_call(9)).error().code, Errc::kNotConnected);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
