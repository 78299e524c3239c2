// RPC-over-RDMA end to end: Responder and Requester over an endpoint that executes every operation by memcpy, against a
// peer whose headers, chunk lists, RPC messages, RDMA operations and order of events are the fuzzer's.
//
// Input: 0 Responder, 1 Requester | options | operations (rpc_responder.cc, rpc_requester.cc).
#include "tests/fuzz/rpc_messages.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  [[maybe_unused]] static const bool strict = testing::GTEST_FLAG(throw_on_failure) = true;  // test supports use EXPECT
  Script script(as_input(data, size));
  if (script.flag()) {
    run_requester(script);
  } else {
    run_responder(script);
  }
  return 0;
}
