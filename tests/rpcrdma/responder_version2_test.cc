// A Responder that speaks version 2 as well, against a client played by the test; and two ends of iwarp.
#include "tests/rpcrdma/responder_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr Limits kBoth{.dialect = {.version_2 = true}};

ResponderOptions version_2() {
  ResponderOptions options;
  options.highest_version = kVersion2;
  return options;
}

Header of_version(std::uint32_t version, std::uint32_t xid) {
  Header h = header(xid);
  h.version = version;
  return h;
}

class ResponderVersion2 : public ResponderTest {
 protected:
  Decoded received_2() {
    run();
    if (client_.inbox.empty()) throw std::runtime_error("client received nothing");
    const Bytes m = client_.inbox.front();
    client_.inbox.erase(client_.inbox.begin());
    return decode(m, kBoth);
  }
};

TEST_F(ResponderVersion2, EachReplyHasTheVersionOfItsCall) {
  COVERS("V2-5.1-1");
  COVERS("V2-5.3-1");
  start(version_2());
  for (const std::uint32_t version : {kVersion2, kVersion1, kVersion2}) {
    send(of_version(version, 7), getattr_call(7));
    reply(expect_call(getattr_call(7)), rpc_reply(7));
    const Decoded d = received_2();
    EXPECT_EQ(d.header.version, version);
    EXPECT_EQ(d.payload, rpc_reply(7));
  }
}

TEST_F(ResponderVersion2, OtherVersionsGetTheRange) {
  COVERS("V2-5.2-1");
  start(version_2());
  send(of_version(3, 7), getattr_call(7));
  const Decoded d = received_2();
  EXPECT_EQ(d.header.error, (ErrorBody{HeaderError::kVers, 1, 2}));
}

TEST_F(ResponderVersion2, TheFirstAnswerIsSmallAndTheOthersAreNot) {
  COVERS("V2-5.1-2");
  COVERS("V2-2.3-2");
  COVERS("V2-2.3-1");
  start(version_2(), std::nullopt, {false, 1024, 1024});
  for (const auto& [id, slice] : server_.receives) EXPECT_GE(slice.bytes.size(), kDefaultInlineBytes2);
  const Bytes long_reply = rpc_reply(7, pattern(3000));
  Exposed room(client_, Bytes(8192), RemoteAccess::kWrite);
  for (const Proc proc : {Proc::kNomsg, Proc::kMsg}) {
    Header h = of_version(kVersion2, 7);
    h.reply_chunk = WriteChunk{{room.segment()}};
    send(h, readdir_call(7));
    reply(expect_call(readdir_call(7)), long_reply);
    EXPECT_EQ(received_2().header.proc, proc);
  }
  // A client that goes back to version 1 has its sizes.
  Header h = of_version(kVersion1, 7);
  h.reply_chunk = WriteChunk{{room.segment()}};
  send(h, readdir_call(7));
  reply(expect_call(readdir_call(7)), long_reply);
  EXPECT_EQ(received_2().header.proc, Proc::kNomsg);
}

TEST_F(ResponderVersion2, ErrorsHaveTheVersionOfTheirCalls) {
  COVERS("V2-4.2-18");
  start(version_2());
  for (const std::uint32_t version : {kVersion1, kVersion2}) {
    send(of_version(version, 7), getattr_call(8));  // another xid
    EXPECT_EQ(received_2().header, make_err_chunk(7, version, 64));
    send(of_version(version, 7), readdir_call(7));
    reply(expect_call(readdir_call(7)), rpc_reply(7, pattern(5000)));  // no room for it
    EXPECT_EQ(received_2().header, make_err_chunk(7, version, 64));
  }
}

TEST_F(ResponderVersion2, OptionsThatAreNotKnownAreRefused) {
  COVERS("V2-3.1-1");
  COVERS("V2-3.1-5");
  start(version_2());
  Header option = of_version(kVersion2, 7);
  option.proc = Proc::kOptional;
  option.option = {1, pattern(5)};
  send(option, getattr_call(7));
  EXPECT_EQ(received_2().header, make_inval_option(7, 64));
  EXPECT_EQ(responder_->stats().inval_option_sent, 1u);
  EXPECT_FALSE(responder_->poll_event());
}

TEST_F(ResponderVersion2, BackwardCallsHaveTheVersionOfTheClient) {
  COVERS("V2-4.2-17");
  start(version_2(), std::nullopt, {true, 1024, 1024});
  const auto backward = [&](std::uint32_t xid, std::size_t octets) {
    return responder_->send_backward_call(to_buffer(*pool_, rpc_call(xid, 0x40000000, 1, 0, pattern(octets))), now_);
  };
  ASSERT_TRUE(backward(1, 0).ok());
  EXPECT_EQ(received_2().header.version, kVersion1);  // nothing is known of the client yet
  send(of_version(kVersion1, 1), rpc_reply(1));
  ASSERT_TRUE(next<Responder::BackwardReply>(*responder_));
  send(of_version(kVersion2, 7), getattr_call(7));
  reply(expect_call(getattr_call(7)), rpc_reply(7));
  received_2();
  EXPECT_EQ(responder_->client_version(), kVersion2);
  ASSERT_TRUE(backward(2, 3000).ok());
  EXPECT_EQ(received_2().header.version, kVersion2);
  send(of_version(kVersion2, 2), rpc_reply(2));
  ASSERT_TRUE(next<Responder::BackwardReply>(*responder_));
}

// Its size is that of the version which the client had spoken when it was queued.
TEST_F(ResponderVersion2, ABackwardCallKeepsItsVersion) {
  ResponderOptions options = version_2();
  options.backward_credits = 1;
  start(options, std::nullopt, {true, 1024, 1024});
  const auto backward = [&](std::uint32_t xid, std::size_t octets) {
    return responder_->send_backward_call(to_buffer(*pool_, rpc_call(xid, 0x40000000, 1, 0, pattern(octets))), now_);
  };
  send(of_version(kVersion2, 7), getattr_call(7));
  reply(expect_call(getattr_call(7)), rpc_reply(7));
  received_2();
  ASSERT_TRUE(backward(1, 0).ok());
  ASSERT_TRUE(backward(2, 3000).ok());  // waits for the credit
  EXPECT_EQ(received_2().header.xid, 1u);
  send(of_version(kVersion1, 8), getattr_call(8));  // a client that goes back to version 1
  reply(expect_call(getattr_call(8)), rpc_reply(8));
  received_2();
  EXPECT_FALSE(backward(3, 3000).ok());
  send(of_version(kVersion2, 1), rpc_reply(1));
  ASSERT_TRUE(next<Responder::BackwardReply>(*responder_));
  const Decoded second = received_2();
  EXPECT_EQ(second.header.xid, 2u);
  EXPECT_EQ(second.header.version, kVersion2);
  // A Reply of another version is none.
  send(of_version(kVersion1, 2), rpc_reply(2));
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_EQ(responder_->stats().dropped_messages, 1u);
  send(of_version(kVersion2, 2), rpc_reply(2));
  ASSERT_TRUE(next<Responder::BackwardReply>(*responder_));
}

TEST_F(ResponderVersion2, VersionsThatThereAreNotAreRefused) {
  for (const std::uint32_t version : {0u, 3u}) {
    ResponderOptions options;
    options.highest_version = version;
    FakeEndpoint end{0x100};
    BufferPool pool(end, pool_options(options));
    Responder responder(end, pool, negotiate(PrivateData{}, private_data(options)), options);
    const auto started = responder.start();
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().code, Errc::kInvalidArgument);
  }
}

TEST_F(ResponderVersion2, NothingOfTheDraftOf2005IsTaken) {
  start({.header_limits = {.dialect = {.draft_2005 = true}}});
  Header h = header(7, Proc::kMsgp);
  h.draft_2005 = true;
  send(h, rpc_reply(8));
  expect_err_chunk(7);
  EXPECT_FALSE(responder_->poll_event());
}

TEST(RpcPairVersion2, EveryPairOfVersionsAgrees) {
  for (const std::uint32_t of_client : {kVersion1, kVersion2}) {
    for (const std::uint32_t of_server : {kVersion1, kVersion2}) {
      SCOPED_TRACE(testing::Message() << of_client << ' ' << of_server);
      RequesterOptions c;
      c.highest_version = of_client;
      ResponderOptions s;
      s.highest_version = of_server;
      Pair pair(c, s);
      for (std::uint32_t xid = 1; xid <= 40; ++xid) {
        const std::size_t size = xid * 97 % 5000 + (xid % 8 == 3 ? 40'000 : 0);
        ASSERT_TRUE(pair.client
                        .call(to_buffer(pair.client_pool, rpc_call(xid, kNfs, 3, 16, pattern(size)),
                                        BufferPool::Purpose::kCall),
                              {})
                        .ok());
        if (xid % 4 != 0) continue;
        for (std::uint32_t of = xid - 3; of <= xid; ++of) {
          pair.run();
          auto call = next<Responder::CallReceived>(pair.server);
          ASSERT_TRUE(call) << of;
          EXPECT_EQ(call->xid, of);
          call->message = {};
          const Bytes reply = rpc_reply(of, pattern(of * 53 + (of % 8 == 5 ? 50'000 : 0)));
          ASSERT_TRUE(pair.server.reply(call->token, to_buffer(pair.server_pool, reply)).ok());
          pair.run();
          auto answer = next<Requester::ReplyReceived>(pair.client);
          ASSERT_TRUE(answer) << of;
          EXPECT_EQ(to_bytes(answer->message.bytes()), reply);
        }
      }
      // And the other way round, as long as they have agreed that such a Call may be.
      const std::uint32_t room = pair.server.max_backward_bytes();
      EXPECT_EQ(room, pair.client.max_backward_bytes());
      const Bytes callback = rpc_call(7, 0x40000000, 1, 0, pattern(room - rpc_call(7, 0x40000000, 1, 0).size()));
      ASSERT_TRUE(pair.server.send_backward_call(to_buffer(pair.server_pool, callback), {}).ok());
      pair.run();
      auto backward = next<Requester::BackwardCall>(pair.client);
      ASSERT_TRUE(backward);
      EXPECT_EQ(to_bytes(backward->message.bytes()), callback);
      backward->message.reset();
      const Bytes answer = rpc_reply(7, pattern(room - rpc_reply(7).size()));
      ASSERT_TRUE(pair.client.reply_backward(backward->token, to_buffer(pair.client_pool, answer)).ok());
      pair.run();
      auto answered = next<Responder::BackwardReply>(pair.server);
      ASSERT_TRUE(answered);
      EXPECT_EQ(to_bytes(answered->message.bytes()), answer);
      answered.reset();
      EXPECT_EQ(pair.client.versions().version(), std::min(of_client, of_server));
      EXPECT_EQ(pair.client.versions().state(), VersionNegotiation::State::kSettled);
      EXPECT_EQ(pair.client_end.exposed() + pair.server_end.exposed(), 0u);
      EXPECT_EQ(pair.server.stats().err_vers_sent, of_client > of_server ? 1u : 0u);
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
