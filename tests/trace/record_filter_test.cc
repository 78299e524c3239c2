#include "iwarp/trace/record_filter.h"

#include <gtest/gtest.h>

namespace iwarp::trace {
namespace {

Record record(const char* layer, std::optional<std::uint32_t> xid, bool error) {
  Record r;
  r.layer = layer;
  r.xid = xid;
  r.error = error;
  return r;
}

TEST(RecordFilter, WantsAllByDefault) {
  EXPECT_TRUE(RecordFilter{}.wants(record("tcp", {}, false)));
}

TEST(RecordFilter, AllConditionsMustHold) {
  RecordFilter f;
  f.layers = {"rpc", "mpa"};
  EXPECT_TRUE(f.wants(record("rpc", 7, false)));
  EXPECT_TRUE(f.wants(record("mpa", {}, false)));
  EXPECT_FALSE(f.wants(record("rpcrdma", 7, false)));
  f.xid = 7;
  EXPECT_TRUE(f.wants(record("rpc", 7, false)));
  EXPECT_FALSE(f.wants(record("rpc", 8, false)));
  EXPECT_FALSE(f.wants(record("mpa", {}, false)));
  f.errors = true;
  EXPECT_FALSE(f.wants(record("rpc", 7, false)));
  EXPECT_TRUE(f.wants(record("rpc", 7, true)));
}

}  // namespace
}  // namespace iwarp::trace
