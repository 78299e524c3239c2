// A Requester that asks for version 2, against a server played by the test.
#include "tests/rpcrdma/requester_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr Limits kBoth{.dialect = {.version_2 = true}};

class RequesterVersion2 : public RequesterTest {
 protected:
  void start_2(std::uint32_t lowest = kVersion1, const PrivateData& server = {false, 4096, 4096}) {
    RequesterOptions options;
    options.highest_version = kVersion2;
    options.lowest_version = lowest;
    start(options, std::nullopt, server);
  }
  Decoded received_2() {
    run();
    if (server_.inbox.empty()) throw std::runtime_error("server received nothing");
    const Bytes m = server_.inbox.front();
    server_.inbox.erase(server_.inbox.begin());
    EXPECT_LE(m.size(), largest_);
    return decode(m, kBoth);
  }
  static Header of_version(std::uint32_t version, std::uint32_t xid, std::uint32_t credits = 64) {
    Header h = header(xid, Proc::kMsg, credits);
    h.version = version;
    return h;
  }
  void settle(std::uint32_t xid = 100) {
    ASSERT_TRUE(call(getattr_call(xid)).ok());
    received_2();
    answer(of_version(kVersion2, xid), rpc_reply(xid));
    expect_reply(rpc_reply(xid));
  }

  std::size_t largest_ = 4096;
};

TEST_F(RequesterVersion2, AsksWithOneCallWhateverWaits) {
  COVERS("V2-5-1");
  COVERS("V2-5-2");
  COVERS("V2-5-3");
  start_2();
  for (const std::uint32_t xid : {1u, 2u, 3u}) ASSERT_TRUE(call(getattr_call(xid)).ok());
  const Decoded first = received_2();
  EXPECT_EQ(first.header.version, kVersion2);
  EXPECT_TRUE(nothing_received());
  EXPECT_FALSE(requester_->versions().state() == VersionNegotiation::State::kSettled);
  answer(of_version(kVersion2, 1), rpc_reply(1));
  expect_reply(rpc_reply(1));
  for (const std::uint32_t xid : {2u, 3u}) {
    const Decoded d = received_2();
    EXPECT_EQ(d.header.version, kVersion2);
    EXPECT_EQ(d.header.xid, xid);
  }
}

TEST_F(RequesterVersion2, TheFirstCallIsSmall) {
  COVERS("V2-5-4");
  COVERS("V2-2.1-2");
  start_2();
  const Bytes message = rpc_call(1, kNfs, 3, 1, pattern(2000));
  ASSERT_TRUE(call(message).ok());
  largest_ = kDefaultInlineBytes;
  const Decoded d = received_2();
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_EQ(read_chunk_length(d.header.read_list, 0), message.size());
}

TEST_F(RequesterVersion2, SizesGrowWithTheVersion) {
  COVERS("V2-2.1-1");
  COVERS("V2-5.1-2");
  COVERS("V2-2.3-2");
  COVERS("V2-2.3-1");
  COVERS("V2-5.2-6");
  start_2(kVersion1, PrivateData{});
  for (const auto& [id, slice] : client_.receives) EXPECT_GE(slice.bytes.size(), kDefaultInlineBytes2);
  EXPECT_EQ(requester_->max_backward_bytes(), kDefaultInlineBytes - kMinHeaderBytes);
  settle();
  EXPECT_EQ(requester_->max_backward_bytes(), kDefaultInlineBytes2 - kMinHeaderBytes);
  const Bytes message = rpc_call(1, kNfs, 3, 1, pattern(3000));
  ASSERT_TRUE(call(message).ok());
  const Decoded d = received_2();
  EXPECT_EQ(d.header.proc, Proc::kMsg);
  EXPECT_EQ(d.payload, message);
  answer(of_version(kVersion2, 1), rpc_reply(1, pattern(3000)));
  expect_reply(rpc_reply(1, pattern(3000)));
}

TEST_F(RequesterVersion2, TheSameCallGoesOnInTheVersionOfTheServer) {
  COVERS("V2-5.2-2");
  COVERS("V2-5.2-5");
  for (const bool is_long : {false, true}) {
    SCOPED_TRACE(is_long);
    start_2();
    const Bytes message = rpc_call(1, kNfs, 3, 1, pattern(is_long ? 2000 : 40));
    ASSERT_TRUE(call(message).ok());
    ASSERT_TRUE(call(getattr_call(2)).ok());
    const Decoded asked = received_2();
    answer(make_err_vers(1, 1, 32));
    EXPECT_FALSE(requester_->poll_event());
    const Decoded again = received_2();
    EXPECT_EQ(again.header.version, kVersion1);
    EXPECT_EQ(again.header.xid, 1u);
    EXPECT_EQ(again.header.proc, asked.header.proc);
    EXPECT_EQ(again.payload, asked.payload);
    if (is_long) {
      EXPECT_NE(again.header.read_list[0].target.handle, asked.header.read_list[0].target.handle);
    }
    EXPECT_TRUE(nothing_received());  // an error lifts no limit
    answer(of_version(kVersion1, 1), rpc_reply(1));
    expect_reply(rpc_reply(1));
    EXPECT_EQ(received_2().header.version, kVersion1);
    EXPECT_EQ(requester_->versions().for_next_connection(), kVersion1);
    answer(of_version(kVersion1, 2), rpc_reply(2));
    expect_reply(rpc_reply(2));
    EXPECT_EQ(client_.exposed(), 0u);
    TearDown();
    client_.broken = false;
  }
}

TEST_F(RequesterVersion2, ACancelledCallIsNotSentAgain) {
  start_2();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received_2();
  EXPECT_TRUE(requester_->cancel(1));
  answer(make_err_vers(1, 1, 32));
  EXPECT_TRUE(nothing_received());
  EXPECT_TRUE(requester_->idle());
  ASSERT_TRUE(call(getattr_call(2)).ok());
  EXPECT_EQ(received_2().header.version, kVersion1);
}

TEST_F(RequesterVersion2, FailsWhereNoVersionIsGoodEnough) {
  start_2(kVersion2);
  for (const std::uint32_t xid : {1u, 2u}) {
    ASSERT_TRUE(call(getattr_call(xid)).ok());
    EXPECT_EQ(received_2().header.version, kVersion2);
    answer(make_err_vers(xid, 1, 32));
    const auto failed = next<Requester::CallFailed>(*requester_);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->why, Requester::Failure::kErrVers);
    EXPECT_EQ(failed->version_low, 1u);
    EXPECT_EQ(failed->version_high, 1u);
  }
  EXPECT_FALSE(client_.broken);
}

TEST_F(RequesterVersion2, RepliesOfAnotherVersionAreNone) {
  COVERS("V2-5.3-1");
  start_2();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received_2();
  answer(of_version(kVersion1, 1), rpc_reply(1));
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
  // It has been executed, so it does not go again; the next one goes in the version that the server speaks.
  ASSERT_TRUE(call(getattr_call(2)).ok());
  EXPECT_EQ(received_2().header.version, kVersion1);
  answer(of_version(kVersion1, 2), rpc_reply(2));
  expect_reply(rpc_reply(2));
  EXPECT_EQ(requester_->versions().for_next_connection(), kVersion1);
}

TEST_F(RequesterVersion2, AServerThatAnswersTheQuestionWithAnotherErrorIsAskedInVersion1) {
  start_2();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received_2();
  answer(make_err_chunk(1, kVersion1, 32));
  EXPECT_FALSE(requester_->poll_event());
  const Decoded again = received_2();
  EXPECT_EQ(again.header.version, kVersion1);
  EXPECT_EQ(again.payload, getattr_call(1));
  answer(make_err_chunk(1, kVersion1, 32));  // it is the Call after all
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kErrChunk);
  EXPECT_TRUE(requester_->idle());
}

TEST_F(RequesterVersion2, AnErrorOfVersion2InAnswerToTheQuestionLiftsNoLimit) {
  COVERS("V2-5-2");
  start_2();
  for (const std::uint32_t xid : {1u, 2u, 3u}) ASSERT_TRUE(call(getattr_call(xid)).ok());
  received_2();
  answer(make_err_chunk(1, kVersion2, 32));
  EXPECT_TRUE(next<Requester::CallFailed>(*requester_));
  EXPECT_EQ(received_2().header.xid, 2u);
  EXPECT_TRUE(nothing_received());
  answer(of_version(kVersion2, 2), rpc_reply(2));
  expect_reply(rpc_reply(2));
  EXPECT_EQ(received_2().header.xid, 3u);
}

TEST_F(RequesterVersion2, ErrorsOfVersion2EndTheirCalls) {
  COVERS("V2-3.1-2");
  COVERS("V2-4.2-18");
  start_2();
  settle();
  for (const HeaderError code : {HeaderError::kChunk, HeaderError::kInvalOption}) {
    ASSERT_TRUE(call(getattr_call(1)).ok());
    received_2();
    Header error = make_err_chunk(1, kVersion2, 32);
    error.error = {code};
    answer(error);
    ASSERT_TRUE(next<Requester::CallFailed>(*requester_));
  }
  EXPECT_TRUE(requester_->idle());
}

TEST_F(RequesterVersion2, OptionsThatAreNotKnownAreRefused) {
  COVERS("V2-3.1-1");
  COVERS("V2-3.1-5");
  start_2();
  settle();
  Header option = of_version(kVersion2, 77);
  option.proc = Proc::kOptional;
  option.option = {5, pattern(3)};
  answer(option, pattern(40));
  const Decoded d = received_2();
  EXPECT_EQ(d.header, make_inval_option(77, 16));
  EXPECT_FALSE(requester_->poll_event());
  EXPECT_EQ(requester_->stats().inval_option_sent, 1u);
}

TEST_F(RequesterVersion2, OptionsThatCannotBeReadAreAnswered) {
  COVERS("V2-4.2-10");
  start_2();
  settle();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received_2();
  client_.receive(words({77, kVersion2, 32, 5, 1, 0xFFFF'FFFF}));
  EXPECT_EQ(received_2().header, make_err_chunk(77, kVersion2, 16));
  EXPECT_EQ(requester_->stats().err_chunk_sent, 1u);
  answer(of_version(kVersion2, 1), rpc_reply(1));  // and the connection goes on
  expect_reply(rpc_reply(1));
}

TEST_F(RequesterVersion2, RefusalsOutOfPlaceHarmOneCallAtMost) {
  start_2();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  ASSERT_TRUE(call(getattr_call(2)).ok());
  received_2();
  answer(make_err_vers(99, 1, 32));  // of no Call
  EXPECT_EQ(requester_->stats().unknown_xids, 1u);
  EXPECT_TRUE(nothing_received());
  answer(make_err_vers(1, 1, 32));
  EXPECT_EQ(received_2().header.version, kVersion1);
  answer(make_err_vers(1, 1, 32));  // again, of the version that it has named
  EXPECT_TRUE(next<Requester::CallFailed>(*requester_));
  EXPECT_EQ(received_2().header.version, kVersion1);
  answer(of_version(kVersion1, 2), rpc_reply(2));
  expect_reply(rpc_reply(2));
  ASSERT_TRUE(call(getattr_call(3)).ok());
  received_2();
  answer(make_err_vers(3, 1, 32));  // settled long ago
  EXPECT_TRUE(next<Requester::CallFailed>(*requester_));
  EXPECT_EQ(requester_->versions().state(), VersionNegotiation::State::kSettled);
  EXPECT_TRUE(requester_->idle());
  EXPECT_FALSE(client_.broken);
}

TEST_F(RequesterVersion2, ACallThatGoesAgainIsCountedOnceAndWaitsForMemory) {
  RequesterOptions options;
  options.highest_version = kVersion2;
  BufferPool::Options pool = pool_options(options);
  pool.call_bytes = 8192;
  start(options, pool);
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received_2();
  // What is left of the memory: that for Calls is held by those behind it, that of the rest by the test.
  std::vector<Buffer> held;
  for (std::uint32_t xid = 2; requester_->can_take_call(); ++xid) {
    auto more = pool_->acquire(getattr_call(xid).size(), BufferPool::Purpose::kCall);
    if (!more) break;
    more.reset();
    ASSERT_TRUE(call(getattr_call(xid)).ok());
  }
  while (auto more = pool_->acquire(1000, BufferPool::Purpose::kControl)) held.push_back(std::move(*more));
  answer(make_err_vers(1, 1, 32));
  EXPECT_FALSE(requester_->poll_event());
  EXPECT_TRUE(nothing_received());
  held.clear();
  requester_->progress();
  const Decoded again = received_2();
  EXPECT_EQ(again.header.version, kVersion1);
  EXPECT_EQ(again.payload, getattr_call(1));
  EXPECT_EQ(requester_->stats().calls_in_line, 1u);
  EXPECT_EQ(requester_->stats().calls_again, 1u);
  answer(of_version(kVersion1, 1), rpc_reply(1));
  expect_reply(rpc_reply(1));
}

TEST_F(RequesterVersion2, VersionsThatThereAreNotAreRefused) {
  struct Row {
    std::uint32_t highest, lowest;
    bool good;
  };
  for (const Row& r : {Row{1, 1, true}, Row{2, 1, true}, Row{2, 2, true}, Row{0, 0, false}, Row{0, 1, false},
                       Row{1, 0, false}, Row{3, 1, false}, Row{3, 3, false}, Row{1, 2, false}}) {
    RequesterOptions options;
    options.highest_version = r.highest;
    options.lowest_version = r.lowest;
    FakeEndpoint end{0x100};
    BufferPool pool(end, pool_options(options));
    Requester requester(end, pool, negotiate(private_data(options), PrivateData{}), options);
    const auto started = requester.start();
    EXPECT_EQ(started.ok(), r.good) << r.highest << ' ' << r.lowest;
    if (!started.ok()) {
      EXPECT_EQ(started.error().code, Errc::kInvalidArgument);
    }
  }
}

TEST_F(RequesterVersion2, BackwardRepliesHaveTheSizeOfTheirVersion) {
  start_2(kVersion1, PrivateData{});  // 1024 octets in version 1
  settle();
  for (const std::uint32_t version : {kVersion1, kVersion2}) {
    answer(of_version(version, 9), rpc_call(9, 0x40000000, 1, 0));
    auto backward = next<Requester::BackwardCall>(*requester_);
    ASSERT_TRUE(backward);
    Buffer reply = to_buffer(*pool_, rpc_reply(9, pattern(3000)));
    const auto sent = requester_->reply_backward(backward->token, std::move(reply));
    EXPECT_EQ(sent.ok(), version == kVersion2);
    requester_->abandon_backward(backward->token);
  }
  EXPECT_EQ(received_2().header.version, kVersion2);
}

TEST_F(RequesterVersion2, BackwardRepliesHaveTheVersionOfTheirCalls) {
  COVERS("V2-4.2-17");
  start_2();
  settle();
  for (const std::uint32_t version : {kVersion1, kVersion2}) {
    answer(of_version(version, 9), rpc_call(9, 0x40000000, 1, 0));
    auto backward = next<Requester::BackwardCall>(*requester_);
    ASSERT_TRUE(backward);
    ASSERT_TRUE(requester_->reply_backward(backward->token, to_buffer(*pool_, rpc_reply(9))).ok());
    backward.reset();
    EXPECT_EQ(received_2().header.version, version);
  }
  Header chunked = of_version(kVersion2, 10);
  chunked.write_list.push_back({});
  answer(chunked, rpc_call(10, 0x40000000, 1, 0));
  EXPECT_EQ(received_2().header, make_err_chunk(10, kVersion2, 16));
}

TEST_F(RequesterVersion2, AServerThatDoesNotSurviveTheQuestion) {
  COVERS("V2-5.2-3");
  COVERS("V2-5.2-4");
  start_2();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received_2();
  client_.disconnect();
  EXPECT_EQ(requester_->versions().for_next_connection(), kVersion1);
}

// Whatever the options say.
TEST_F(RequesterTest, NothingOfTheDraftOf2005IsTaken) {
  for (const Proc proc : {Proc::kMsgp, Proc::kDone}) {
    start({.header_limits = {.dialect = {.draft_2005 = true}}});
    ASSERT_TRUE(call(readdir_call(1)).ok());
    received();
    Header h = header(1, proc);
    h.draft_2005 = true;
    answer(h, rpc_reply(1));
    EXPECT_FALSE(next<Requester::ReplyReceived>(*requester_));
    TearDown();
    client_.broken = false;
  }
}

TEST_F(RequesterTest, OfVersion1KnowsNothingOfOptions) {
  start();
  ASSERT_TRUE(call(getattr_call(1)).ok());
  received();
  Header option = header(1);
  option.version = kVersion2;
  option.proc = Proc::kOptional;
  answer(option);
  EXPECT_TRUE(next<Requester::MustClose>(*requester_));
}

// The one that asks may have to go again: its Reply tells.
TEST_F(RequesterVersion2, TheQuestionHasNotLeftWithItsSend) {
  start_2();
  Buffer message = to_buffer(*pool_, getattr_call(1), BufferPool::Purpose::kCall);
  ASSERT_TRUE(requester_->call(std::move(message), now_, 0, SIZE_MAX, true).ok());
  EXPECT_EQ(received_2().header.xid, 1u);
  EXPECT_FALSE(requester_->poll_event());
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
