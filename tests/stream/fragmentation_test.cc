// TCP may cut the octets anywhere: the same events, completions and memory must come out.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/mixed_scenario.h"

namespace iwarp::stream {
namespace {

using test::Pair;
using test::PairOptions;
using test::run_mixed_scenario;

class Fragmentation : public ::testing::TestWithParam<std::tuple<bool, mpa::FpduPolicy>> {
 protected:
  Fragmentation() {
    const auto& [crc, policy] = GetParam();
    options_.initiator_policy.crc = options_.responder_policy.crc =
        crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
    options_.initiator.fpdu = options_.responder.fpdu = policy;
    options_.max_steps = 1'000'000;
    options_.request_private_data = test::hex("a1a2a3");
    Pair p(options_);
    expected_ = run_mixed_scenario(p);
    to_responder_ = p.to_responder.recorded.size();
    to_initiator_ = p.to_initiator.recorded.size();
  }

  PairOptions options_;
  std::string expected_;
  std::uint64_t to_responder_ = 0, to_initiator_ = 0;
};

TEST_P(Fragmentation, ScenarioItselfGoesWell) {
  EXPECT_EQ(expected_.find("flushed"), std::string::npos) << expected_;
  for (const char* line : {"send 1 ok", "send 2 ok", "send 3 ok 6000", "send 4 ok", "send 5 ok 0", "send 6 ok",
                           "send 7 ok", "recv 10 ok 82\n", "recv 11 ok 0\n", "recv 12 ok 4500\n",
                           "recv 13 ok 1 solicited invalidated", "send 31 ok", "send 32 ok 5555", "send 33 ok",
                           "recv 20 ok 4097", "recv 21 ok 5", "disconnected aborted", "disconnected peer_closed"}) {
    EXPECT_NE(expected_.find(line), std::string::npos) << line << "\n" << expected_;
  }
}

TEST_P(Fragmentation, CutAtEveryOctet) {
  COVERS("RFC5044-5.1-6");
  COVERS("RFC5044-A.4-1");
  COVERS("RFC5044-A.4-2");
  COVERS("RFC5041-3-5");
  COVERS("RFC5041-3-15");
  COVERS("RFC5044-A.5.2-1");
  // Every octet where headers are dense, then a stride that shares no factor with any FPDU length.
  for (const bool forward : {true, false}) {
    const std::uint64_t end = forward ? to_responder_ : to_initiator_;
    for (std::uint64_t at = 1; at < end; at += at < 200 ? 1 : 499) {
      Pair p(options_);
      (forward ? p.to_responder : p.to_initiator).cut_at = at;
      ASSERT_EQ(run_mixed_scenario(p), expected_)
          << "cut at " << at << (forward ? " towards the responder" : " towards the initiator");
    }
  }
}

TEST_P(Fragmentation, OctetByOctet) {
  COVERS("RFC5044-5.1-6");
  COVERS("RFC5044-2-2");
  for (const std::size_t chunk : {1U, 2U, 3U}) {
    Pair p(options_);
    p.to_responder.max_chunk_bytes = p.to_initiator.max_chunk_bytes = chunk;
    ASSERT_EQ(run_mixed_scenario(p), expected_);
  }
}

TEST_P(Fragmentation, RandomChunks) {
  COVERS("RFC5044-2-2");
  COVERS("RFC5044-5.1-5");
  for (std::uint32_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair p(options_);
    p.to_responder.random_seed = seed;
    p.to_initiator.random_seed = seed + 1000;
    p.to_responder.max_chunk_bytes = seed % 3 == 0 ? 30 : 3000;
    p.to_initiator.max_write_bytes = seed % 5 == 0 ? 11 : test::Wire::kUnlimited;
    p.to_responder.max_write_bytes = seed % 7 == 0 ? 1000 : test::Wire::kUnlimited;
    if (seed % 4 == 0) p.to_initiator.latency = std::chrono::milliseconds(7);
    ASSERT_EQ(run_mixed_scenario(p), expected_);
  }
}

TEST_P(Fragmentation, WritesOfOneOctet) {
  Pair p(options_);
  p.to_responder.max_write_bytes = p.to_initiator.max_write_bytes = 1;
  ASSERT_EQ(run_mixed_scenario(p), expected_);
}

TEST_P(Fragmentation, AnyScratch) {
  for (const std::size_t scratch : {64U, 65U, 100U, 1024U, 1025U, 4096U, 262144U}) {
    options_.scratch_bytes = scratch;
    Pair p(options_);
    ASSERT_EQ(run_mixed_scenario(p), expected_) << scratch;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fragmentation,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(mpa::FpduPolicy::kEmss, mpa::FpduPolicy::kMax)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) ? "Crc" : "NoCrc") +
                                  (std::get<1>(tested.param) == mpa::FpduPolicy::kEmss ? "Emss" : "Max");
                         });

}  // namespace
}  // namespace iwarp::stream
