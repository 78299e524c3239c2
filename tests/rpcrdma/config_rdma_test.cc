// The Connection Configuration Protocol of the draft of 2005.
#include "iwarp/rpcrdma/config_rdma.h"

#include <gtest/gtest.h>

#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using State = ConfigClient::State;

constexpr std::uint32_t kXid = 0x01020304;
constexpr std::uint32_t kMost = 0xFFFFFFFF;
constexpr ConfigLimits kClient{.call_bytes = 8192, .reply_bytes = 4096, .incoming_reads = 4, .outgoing_reads = 2};
constexpr ConfigLimits kServer{
    .call_bytes = 16384, .reply_bytes = 65536, .incoming_reads = 8, .outgoing_reads = 16, .align = 4096};

Bytes to_bytes(ConstBytes in) {
  return Bytes(in.begin(), in.end());
}
Bytes config_call(std::initializer_list<std::uint32_t> arguments, std::uint32_t version = 1,
                  std::uint32_t procedure = 1) {
  return rpc_call(kXid, kConfigProgram, version, procedure, words(arguments));
}
Bytes config_reply(std::initializer_list<std::uint32_t> results) {
  return rpc_reply(kXid, words(results));
}
// The whole Reply of a server to this Call; empty: it is not for CONFIG_RDMA.
Bytes answer(ConfigServer& server, const Bytes& call) {
  const auto out = server.on_call(call);
  return out ? to_bytes(out->bytes()) : Bytes();
}
Bytes refused(AcceptStat stat) {
  return to_bytes(make_error_reply(kXid, stat));
}
ConfigClient asked(const ConfigLimits& own = kClient) {
  ConfigClient out(own);
  (void)out.call(kXid);
  return out;
}

TEST(ConfigRdma, OctetsOfCallAndReply) {
  COVERS("D2005-6.2-1");
  COVERS("D2005-6.2-10");
  COVERS("D2005-6.2-11");
  COVERS("D2005-6.2-12");
  ConfigClient client(kClient);
  EXPECT_EQ(to_bytes(client.call(kXid).bytes()), words({kXid, 0, 2, kConfigProgram, 1, 1, 0, 0, 0, 0, 8192, 4096, 4}));
  ConfigServer server(kServer);
  EXPECT_EQ(answer(server, config_call({8192, 4096, 4})), words({kXid, 1, 0, 0, 0, 0, 16384, 4096, 8}));
  EXPECT_EQ(ConfigRequest::parse(words({1, 2, 3})).value(), (ConfigRequest{1, 2, 3}));
  EXPECT_EQ(ConfigReply::parse(words({1, 2, 3})).value(), (ConfigReply{1, 2, 3}));
  for (const std::size_t size : {0u, 11u, 13u, 16u}) {
    EXPECT_FALSE(ConfigRequest::parse(Bytes(size)));
    EXPECT_FALSE(ConfigReply::parse(Bytes(size)));
  }
}

TEST(ConfigRdma, BothEndsKeepToWhatWasAgreed) {
  COVERS("D2005-6.2-2");
  COVERS("D2005-6.2-3");
  COVERS("D2005-6.2-5");
  COVERS("D2005-6.2-6");
  COVERS("D2005-6.2-7");
  COVERS("D2005-6.2-9");
  ConfigClient client(kClient);
  ConfigServer server(kServer);
  ASSERT_TRUE(client.on_reply(answer(server, to_bytes(client.call(kXid).bytes()))));
  EXPECT_EQ(client.state(), State::kConfigured);
  EXPECT_TRUE(server.configured());
  EXPECT_EQ(client.answer(), (ConfigReply{16384, 4096, 8}));
  // Calls: the client's own limit; Reads: its ORD, below the server's IRD.
  EXPECT_EQ(client.terms(), (ConfigTerms{8192, 4096, 2, true, 4096, false}));
  // Replies: the client's limit; Reads: the client's IRD, below the server's ORD.
  EXPECT_EQ(server.terms(), (ConfigTerms{16384, 4096, 4, true, 0, false}));

  // A server that takes less than the client would send.
  ConfigClient other = asked({.call_bytes = 65536, .outgoing_reads = 100});
  ASSERT_TRUE(other.on_reply(config_reply({2048, 0, 3})));
  EXPECT_EQ(other.terms().call_bytes, 2048u);
  EXPECT_EQ(other.terms().reads, 3u);
}

TEST(ConfigRdma, ComesBeforeAllOtherPrograms) {
  COVERS("D2005-6.1-1");
  ConfigClient client(kClient);
  EXPECT_FALSE(client.ready());
  (void)client.call(kXid);
  EXPECT_EQ(client.state(), State::kAsking);
  EXPECT_FALSE(client.ready());
  ASSERT_TRUE(client.on_reply(config_reply({4096, 0, 1})));
  EXPECT_TRUE(client.ready());

  ConfigServer server(kServer);
  EXPECT_EQ(answer(server, null_call(kXid)), Bytes());
  EXPECT_EQ(answer(server, config_call({8192, 4096, 4})), refused(AcceptStat::kSystemErr));
  EXPECT_FALSE(server.configured());
  EXPECT_EQ(server.terms().reply_bytes, kDefaultInlineBytes);
  // What was agreed in time stays.
  ConfigServer early(kServer);
  (void)answer(early, config_call({8192, 2048, 4}));
  (void)answer(early, null_call(kXid));
  EXPECT_EQ(answer(early, config_call({8192, 4096, 4})), refused(AcceptStat::kSystemErr));
  EXPECT_EQ(early.terms().reply_bytes, 2048u);
}

TEST(ConfigRdma, UntilThenOneMessageOf1024OctetsAtATime) {
  COVERS("D2005-6.1-2");
  ConfigClient client(kClient);
  EXPECT_EQ(client.terms(), (ConfigTerms{1024, 1024, 0, false, 0, true}));
  EXPECT_LE(client.call(kXid).bytes().size() + kMinHeaderBytes, kDefaultInlineBytes);
  EXPECT_EQ(client.terms(), ConfigTerms{});
  ConfigServer server(kServer);
  EXPECT_EQ(server.terms(), ConfigTerms{});
  // A client that does without: the server is free to offer more messages at a time, of the same size.
  (void)answer(server, null_call(kXid));
  EXPECT_FALSE(server.terms().alone);
  EXPECT_EQ(server.terms().call_bytes, kDefaultInlineBytes);
  // A server without the program.
  for (const Bytes& no :
       {refused(AcceptStat::kProgUnavail), to_bytes(make_auth_error_reply(kXid, AuthStat::kRejectedCred))}) {
    ConfigClient refused_client = asked();
    ASSERT_TRUE(refused_client.on_reply(no));
    EXPECT_EQ(refused_client.state(), State::kRefused);
    EXPECT_TRUE(refused_client.ready());
    EXPECT_EQ(refused_client.terms(), (ConfigTerms{1024, 1024, 0, false, 0, false}));
  }
}

// Whose zero forbids what the draft leaves open: either does.
TEST(ConfigRdma, WithoutReadsOfOneEndNobodySendsReadChunks) {
  COVERS("D2005-6.2-8");
  for (const auto& [client_reads, server_reads] : {std::pair{0u, 1u}, std::pair{1u, 0u}, std::pair{0u, 0u}}) {
    const ConfigLimits client{.incoming_reads = client_reads}, server{.incoming_reads = server_reads};
    EXPECT_FALSE(client_terms(client, config_answer(server)).value().read_chunks);
    EXPECT_FALSE(server_terms(server, {4096, 4096, client_reads}).value().read_chunks);
  }
  EXPECT_EQ(client_terms(kClient, {4096, 0, 0}).value().reads, 0u);
  EXPECT_TRUE(client_terms(kClient, {4096, 0, 1}).value().read_chunks);
  EXPECT_TRUE(server_terms(kServer, {4096, 4096, 1}).value().read_chunks);
}

TEST(ConfigRdma, TheProgramNumberIsAnOption) {
  COVERS("D2005-12-1");
  ConfigClient client(kClient, 400123);
  const Bytes call = to_bytes(client.call(kXid).bytes());
  EXPECT_EQ(RpcCall::parse(call).value().program, 400123u);
  ConfigServer server(kServer, 400123), other(kServer);
  EXPECT_EQ(answer(other, call), Bytes());
  EXPECT_NE(answer(server, call), Bytes());
  EXPECT_TRUE(server.configured());
  EXPECT_FALSE(other.configured());
}

TEST(ConfigRdma, HostileRequests) {
  ConfigServer server(kServer);
  // Sizes below what is taken for granted, and no arguments at all, change nothing.
  for (const auto& bad : {config_call({8192, 0, 4}), config_call({8192, 1023, 4}), config_call({}),
                          config_call({8192, 4096}), config_call({8192, 4096, 4, 0})}) {
    EXPECT_EQ(answer(server, bad), refused(AcceptStat::kGarbageArgs));
    EXPECT_EQ(server.terms(), ConfigTerms{});
  }
  EXPECT_EQ(answer(server, config_call({8192, 4096, 4}, 2)),
            words({kXid, 1, 0, 0, 0, static_cast<std::uint32_t>(AcceptStat::kProgMismatch), 1, 1}));
  EXPECT_EQ(answer(server, config_call({8192, 4096, 4}, 1, 2)), refused(AcceptStat::kProcUnavail));
  EXPECT_EQ(answer(server, config_call({}, 1, 0)), refused(AcceptStat::kSuccess));
  EXPECT_FALSE(server.configured());
  // The largest there are: bounded by what the server has.
  EXPECT_EQ(answer(server, config_call({kMost, kMost, kMost})), words({kXid, 1, 0, 0, 0, 0, 16384, 4096, 8}));
  EXPECT_EQ(server.terms(), (ConfigTerms{16384, 65536, 16, true, 0, false}));
  // A client that promises to send nothing long, or nothing at all, harms only itself.
  EXPECT_EQ(answer(server, config_call({0, 1024, 0})), words({kXid, 1, 0, 0, 0, 0, 16384, 4096, 8}));
  EXPECT_EQ(server.terms(), (ConfigTerms{16384, 1024, 0, false, 0, false}));
  // A body under RPCSEC_GSS privacy cannot be read.
  Bytes gss = words({kXid, 0, 2, kConfigProgram, 1, 1, 6, 20, 1, 0, 7, 3, 0, 0, 0}) + words({8192, 4096, 4});
  EXPECT_EQ(answer(server, gss), to_bytes(make_auth_error_reply(kXid, AuthStat::kRejectedCred)));
  // Not an RPC Call: somebody else's.
  EXPECT_EQ(answer(server, Bytes()), Bytes());
}

TEST(ConfigRdma, HostileReplies) {
  for (const auto& bad : {config_reply({0, 0, 1}), config_reply({1023, 0, 1}), config_reply({4096, 0}),
                          config_reply({4096, 0, 1, 1}), words({kXid, 1}), words({kXid, 0, 2, 7, 1, 1, 0, 0, 0, 0})}) {
    ConfigClient client = asked();
    EXPECT_EQ(client.on_reply(bad).error().code, Errc::kMalformedRpc);
    EXPECT_EQ(client.state(), State::kFailed);
    EXPECT_FALSE(client.ready());
    EXPECT_EQ(client.terms(), ConfigTerms{});
  }
  ConfigClient client = asked();
  EXPECT_EQ(client.on_reply(rpc_reply(kXid + 1, words({4096, 0, 1}))).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(client.on_reply(Bytes()).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(client.state(), State::kAsking);
  ASSERT_TRUE(client.on_reply(config_reply({kMost, kMost, kMost})));
  EXPECT_EQ(client.terms(), (ConfigTerms{8192, 4096, 2, true, 0, false}));
  // Alignments that are none, or leave no room, are not followed.
  struct Row {
    std::uint32_t align, used;
  };
  for (const Row& r : {Row{0, 0}, Row{1, 0}, Row{4, 0}, Row{6, 0}, Row{8, 8}, Row{100, 0}, Row{512, 512}, Row{4095, 0},
                       Row{4096, 4096}, Row{8192, 0}, Row{65536, 0}, Row{0x80000000, 0}, Row{kMost, 0}}) {
    EXPECT_EQ(client_terms(kClient, {16384, r.align, 1}).value().align, r.used) << r.align;
  }
  EXPECT_EQ(config_answer({.align = 100}).align, 0u);
  EXPECT_EQ(config_answer({.call_bytes = 1}).max_call_bytes, kDefaultInlineBytes);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
