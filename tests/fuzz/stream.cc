// A whole connection: what a peer's octets can do to stream::Connection from each starting state, between the calls of
// its application and the passing of time.
//
// Input: starting state and options (Setup) | operations (World::operation).
#include "tests/fuzz/stream_world.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  [[maybe_unused]] static const bool strict = testing::GTEST_FLAG(throw_on_failure) = true;  // test supports use EXPECT
  Script script(as_input(data, size));
  const Setup setup(script);
  World whole(setup, Chunking::whole()), pieces(setup, Chunking::pieces());
  whole.run(script);
  pieces.run(script);
  FUZZ_CHECK(whole.torn() == pieces.torn());
  if (whole.torn()) return 0;
  if (pieces.log() != whole.log()) {
    std::fprintf(stderr, "whole:\n%sin pieces:\n%s", whole.log().c_str(), pieces.log().c_str());
    FUZZ_CHECK(pieces.log() == whole.log());
  }
  FUZZ_CHECK(pieces.sent() == whole.sent());
  FUZZ_CHECK(pieces.same_memory(whole));
  return 0;
}
