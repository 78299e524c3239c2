// Each row of cases.tsv against our own stack: a fresh connection, one broken rule, the reaction named there. An honest
// peer has a connection open throughout and is served before each case, whenever the hostile one waits for the victim,
// and afterwards; at the end every connection, and every descriptor, is gone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <optional>

#include "tests/faults/process_facts.h"
#include "tests/hostile/case_list.h"
#include "tests/hostile/gateway_victim.h"
#include "tests/hostile/rdma_victim.h"
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/rpc_victim.h"
#include "tests/hostile/script.h"
#include "tests/support/covers.h"
#include "tests/support/eventually.h"

namespace iwarp::hostile {
namespace {

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = read_cases(IWARP_HOSTILE_CASES);
  return cases;
}

// The rows that are run against a victim; role "gateway" stands for the rows of role "rpc responder".
std::vector<Case> cases_for(std::initializer_list<std::string_view> roles) {
  std::vector<Case> out;
  for (const Case& c : all_cases()) {
    for (const std::string_view role : roles) {
      if (not_applicable(c.expected)) continue;
      const bool behind_gateway = role == "gateway";
      if (c.role != (behind_gateway ? "rpc responder" : role)) continue;
      out.push_back(behind_gateway ? as_gateway(all_cases(), c) : c);
    }
  }
  std::erase_if(out, [](const Case& c) { return not_applicable(c.expected); });
  return out;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.role + "_" + info.param.requirement + "_" + info.param.script;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

// Connects a peer without fault. Each call of the function has it served twice; copies share the connection.
std::function<Reaction()> honest_peer(RdmaVictim& victim) {
  return [peer = std::make_shared<Peer>(open(victim))] { return verdict(*peer); };
}
std::function<Reaction()> honest_client(Target& victim) {
  return [peer = std::make_shared<Peer>(open_rpc(victim))] { return rpc_verdict(*peer, 0); };
}
std::function<Reaction()> honest_peer(RpcVictim& victim) {
  return honest_client(victim);
}
std::function<Reaction()> honest_peer(RdmaFrontVictim& victim) {
  return honest_client(victim);
}
std::function<Reaction()> honest_peer(TcpFrontVictim& victim) {
  return [server = std::make_shared<HonestServer>(victim)] { return server->serve(); };
}

template <class Victim>
class HostileTest : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    descriptors_ = faults::descriptors(::getpid());
    victim_ = std::make_unique<Victim>();
  }
  static void TearDownTestSuite() {
    canary_ = nullptr;
    EXPECT_TRUE(test::eventually([] { return victim_->living() == 0; }))
        << victim_->living() << " connections are left";
    if constexpr (std::is_same_v<Victim, RdmaVictim>) {
      EXPECT_EQ(victim_->damage(), 0u) << "octets where nobody may write";
    }
    victim_.reset();
    EXPECT_EQ(faults::descriptors(::getpid()), descriptors_);
  }
  // The honest peer is served, as ever.
  static Reaction canary() {
    if (!canary_) canary_ = honest_peer(*victim_);
    return canary_();
  }

  void run() {
    const Case& c = GetParam();
    COVERS(c.requirement);
    const auto script = find_script(c.role == "gateway" ? "rpc responder" : c.role, c.script);
    ASSERT_TRUE(script.has_value());
    ASSERT_EQ(canary(), kIgnore) << "before";
    std::size_t served = 0;
    victim_->meanwhile = [&] {
      EXPECT_EQ(canary(), kIgnore) << "meanwhile";
      ++served;
    };
    EXPECT_EQ(script->run(*victim_), c.expected) << c.note;
    victim_->meanwhile = nullptr;
    EXPECT_GT(served, 0u) << "the honest peer had no chance while the case was under way";
    EXPECT_EQ(canary(), kIgnore) << "afterwards";
  }

  inline static std::unique_ptr<Victim> victim_;
  inline static std::function<Reaction()> canary_;
  inline static std::size_t descriptors_ = 0;
};

class HostileToRdma : public HostileTest<RdmaVictim> {};
class HostileToRpc : public HostileTest<RpcVictim> {};
class HostileToRdmaFront : public HostileTest<RdmaFrontVictim> {};
class HostileToTcpFront : public HostileTest<TcpFrontVictim> {};

TEST_P(HostileToRdma, ReactsAsListed) {
  run();
}
TEST_P(HostileToRpc, ReactsAsListed) {
  run();
}
TEST_P(HostileToRdmaFront, ReactsAsListed) {
  run();
}
TEST_P(HostileToTcpFront, ReactsAsListed) {
  run();
}

INSTANTIATE_TEST_SUITE_P(Each, HostileToRdma,
                         ::testing::ValuesIn(cases_for({"mpa responder", "mpa initiator", "rdma receiver"})),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Each, HostileToRpc, ::testing::ValuesIn(cases_for({"rpc responder", "rpc requester"})),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Each, HostileToRdmaFront, ::testing::ValuesIn(cases_for({"gateway"})), case_name);
INSTANTIATE_TEST_SUITE_P(Each, HostileToTcpFront, ::testing::ValuesIn(cases_for({"rpc requester"})), case_name);

}  // namespace
}  // namespace iwarp::hostile
