// kill -9 of each process around a transfer, and a client that vanishes, while the transfer stands still at a known
// place. The survivors say why, in time, free everything and go on serving.
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cm/node.h"
#include "tests/faults/chain.h"
#include "tests/faults/survivor.h"
#include "tests/faults/written.h"
#include "tests/gateway/rpc_server.h"

namespace iwarp::faults {
namespace {

using Process = Chain::Process;
using Client = std::unique_ptr<RpcClient>;
using test::eventually;
namespace samples = rpcrdma::test;

constexpr std::size_t kHold = 60'000;  // octets: behind the startup frames, inside the data
constexpr std::uint32_t kTransfer = 200'000;
// Together more than TCP buffers for an application that reads nothing.
constexpr std::uint32_t kMiB = 1 << 20, kMany = 8;

Client connect(Chain& chain) {
  return std::make_unique<RpcClient>(chain.port(Chain::kTcpFront));
}

// --- Where the transfer stands still

// The Responder has a part of what its RDMA Read asked for.
Client reading_a_call(Chain& chain) {
  chain.relay().set({.up = {.cut = Way::Cut::kHold, .cut_at = kHold}});
  Client c = connect(chain);
  EXPECT_TRUE(c->send(write_call(1, 1, kTransfer)));
  EXPECT_TRUE(eventually([&] { return chain.relay().record().up.size() > kHold; }));
  EXPECT_LT(chain.relay().record().down.size(), 2000u) << "no Reply is under way";
  return c;
}

// The Requester has a part of what was written into its Reply chunk.
Client writing_a_reply(Chain& chain) {
  chain.relay().set({.down = {.cut = Way::Cut::kHold, .cut_at = kHold}});
  Client c = connect(chain);
  EXPECT_TRUE(c->send(samples::read_call(1, kTransfer)));
  EXPECT_TRUE(eventually([&] { return chain.relay().record().down.size() > kHold; }));
  return c;
}

std::size_t tcp_bytes(Chain& chain, Process gateway, const char* way) {
  return chain.counters(gateway)["tcp_bytes"][way];
}

// Half a record has come from the client.
Client receiving_a_call(Chain& chain) {
  using test::operator+;
  const std::size_t before = tcp_bytes(chain, Chain::kTcpFront, "in");
  Client c = connect(chain);
  EXPECT_TRUE(c->send_raw(gateway::test::record_mark(kTransfer) + test::Bytes(kTransfer / 2)));
  EXPECT_TRUE(eventually([&] { return tcp_bytes(chain, Chain::kTcpFront, "in") == before + 4 + kTransfer / 2; }));
  return c;
}

// ... from the server.
Client receiving_a_reply(Chain& chain) {
  const std::size_t before = tcp_bytes(chain, Chain::kRdmaFront, "in");
  Client c = connect(chain);
  EXPECT_TRUE(c->send(samples::rpc_call(1, samples::kNfs, 3, 5, samples::file_handle())));
  EXPECT_TRUE(eventually([&] { return tcp_bytes(chain, Chain::kRdmaFront, "in") == before + 4 + kHalfReply; }));
  return c;
}

// All that the other side has of `kind` has come to the gateway; less than that has left it.
void await_half_forwarded(Chain& chain, Process gateway, const char* kind, const nlohmann::json& before) {
  const auto more = [&](const nlohmann::json::json_pointer& at) {
    return chain.counters(gateway)[at].get<std::size_t>() - before[at].get<std::size_t>();
  };
  using namespace nlohmann::literals;
  const nlohmann::json::json_pointer received(std::string("/messages/") + kind + "/received");
  EXPECT_TRUE(eventually([&] { return more(received) == kMany && more("/tcp_bytes/out"_json_pointer) > kMiB / 2; }));
  EXPECT_LT(more("/tcp_bytes/out"_json_pointer), std::size_t{kMany} * kMiB) << "TCP buffers all of it";
}

// Half a record has left for a server that reads nothing.
Client sending_a_call(Chain& chain) {
  const auto before = chain.counters(Chain::kRdmaFront);
  Client c = connect(chain);
  EXPECT_TRUE(c->answered(write_call(99, 99, 1)));
  chain[Chain::kStore].signal(SIGSTOP);
  for (std::uint32_t xid = 1; xid < kMany; ++xid) EXPECT_TRUE(c->send(write_call(xid, xid, kMiB)));
  await_half_forwarded(chain, Chain::kRdmaFront, "call", before);
  return c;
}

// ... for a client that reads nothing.
Client sending_a_reply(Chain& chain) {
  const auto before = chain.counters(Chain::kTcpFront);
  Client c = connect(chain);
  for (std::uint32_t xid = 1; xid <= kMany; ++xid) EXPECT_TRUE(c->send(samples::read_call(xid, kMiB)));
  await_half_forwarded(chain, Chain::kTcpFront, "reply", before);
  return c;
}

// The gateway has been told to end, and waits for the Reply to a Call.
Client draining(Chain& chain, Process gateway) {
  const std::size_t held = chain[Chain::kStore].count("holding");
  Client c = connect(chain);
  EXPECT_TRUE(c->send(samples::readdir_call(1)));
  EXPECT_TRUE(chain[Chain::kStore].wait_for("holding", held + 1));
  chain[gateway].signal(SIGTERM);
  EXPECT_TRUE(chain[gateway].wait_for("shutting down"));
  return c;
}
Client draining_rdma_front(Chain& chain) {
  return draining(chain, Chain::kRdmaFront);
}
Client draining_tcp_front(Chain& chain) {
  return draining(chain, Chain::kTcpFront);
}

struct Moment {
  const char* name;
  Client (*reach)(Chain&);
  std::optional<Process> drains{};  // this gateway ends by itself
};
constexpr Moment kMoments[] = {
    {"ReadingACall", reading_a_call},
    {"WritingAReply", writing_a_reply},
    {"ReceivingACall", receiving_a_call},
    {"ReceivingAReply", receiving_a_reply},
    {"SendingACall", sending_a_call},
    {"SendingAReply", sending_a_reply},
    {"DrainingTheRdmaFront", draining_rdma_front, Chain::kRdmaFront},
    {"DrainingTheTcpFront", draining_tcp_front, Chain::kTcpFront},
};

// --- Who dies, and what the others say

constexpr const char* kClosed = " closed peer=127.0.0.1:";
struct Told {
  Process survivor;
  const char* line;
  std::chrono::milliseconds within = kNoticed;
};
struct Death {
  const char* name;
  std::optional<Process> victim;  // nothing: the client
  std::vector<Told> told;
};
const Death kDeaths[] = {
    {"server",
     Chain::kStore,
     {{Chain::kRdmaFront, "server closed peer=127.0.0.1:"},
      {Chain::kRdmaFront, kClosed, kFreed},
      {Chain::kTcpFront, kClosed, kFreed}}},
    {"RDMA front", Chain::kRdmaFront, {{Chain::kTcpFront, kClosed}}},
    {"TCP front", Chain::kTcpFront, {{Chain::kRdmaFront, kClosed}}},
    {"client", {}, {{Chain::kTcpFront, kClosed}, {Chain::kRdmaFront, kClosed}}},
};

class KilledAt : public ::testing::TestWithParam<Moment> {
 protected:
  Chain chain_;
};

TEST_P(KilledAt, SurvivorsSayWhyFreeAllAndServe) {
  for (const Death& death : kDeaths) {
    SCOPED_TRACE(death.name);
    const auto alive = [&](Process p) { return death.victim != p && GetParam().drains != p; };
    Client client = GetParam().reach(chain_);
    std::vector<std::size_t> lines;
    for (const Told& told : death.told) {
      chain_[told.survivor].read_pending();
      lines.push_back(chain_[told.survivor].count(told.line) + 1);
      if (!alive(told.survivor)) continue;
      EXPECT_FALSE(chain_.at_rest(told.survivor)) << "the check sees nothing";
    }

    death.victim ? chain_.kill(*death.victim) : client->reset();
    for (std::size_t i = 0; const Told& told : death.told)
      expect_cause(chain_[told.survivor], told.line, lines[i++], told.within);
    if (death.victim) {
      EXPECT_NE(client->end(kFreed), test::RawTcp::End::kTimeout);
    }
    client.reset();
    chain_[Chain::kStore].signal(SIGCONT);
    for (const Process p : {Chain::kStore, Chain::kRdmaFront, Chain::kTcpFront}) {
      if (alive(p)) expect_at_rest(chain_, p);
    }
    if (const auto p = GetParam().drains; p && p != death.victim) {
      EXPECT_EQ(chain_[*p].wait(kFreed), 0);
    }

    chain_.relay().set({});
    for (const Process p : {Chain::kStore, Chain::kRdmaFront, Chain::kTcpFront}) {
      if (!alive(p)) chain_.start(p);
    }
    expect_serving(chain_);
    for (const Process p : {Chain::kRdmaFront, Chain::kTcpFront}) expect_at_rest(chain_, p);
  }
}

INSTANTIATE_TEST_SUITE_P(Moments, KilledAt, ::testing::ValuesIn(kMoments),
                         [](const auto& moment) { return moment.param.name; });

}  // namespace
}  // namespace iwarp::faults
