#include "iwarp/trace/line_writer.h"

#include <gtest/gtest.h>

namespace iwarp::trace {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

Record record(Duration at, Pdu pdu, const char* layer = "rpc") {
  Record r;
  r.when.at = at;
  r.connection = "7";
  r.layer = layer;
  r.pdu = std::move(pdu);
  return r;
}

TEST(TraceLineWriter, HasTimeConnectionDirectionAndLayer) {
  LineWriter writer{{}};
  EXPECT_EQ(writer.line(record(microseconds(0), Pdu("A"), "mpa")), "0.000 7 tx mpa A()");
  Record r = record(microseconds(1234567), Pdu("B"), "rdmap");
  r.direction = Direction::kRx;
  EXPECT_EQ(writer.line(r), "1234.567 7 rx rdmap B()");
}

TEST(TraceLineWriter, AbsoluteTimeIsUtc) {
  LineWriter writer({.time = TimeStyle::kAbsolute, .start = seconds(951782399), .columns = 0, .color = false});
  EXPECT_EQ(writer.line(record(microseconds(5), Pdu("A"))), "2000-02-28T23:59:59.000005Z 7 tx rpc A()");
  EXPECT_EQ(writer.line(record(microseconds(1000000), Pdu("A"))), "2000-02-29T00:00:00.000000Z 7 tx rpc A()");
}

TEST(TraceLineWriter, DeltaIsSinceTheLineBefore) {
  LineWriter writer({.time = TimeStyle::kDelta, .start = {}, .columns = 0, .color = false});
  EXPECT_EQ(writer.line(record(microseconds(1500), Pdu("A"))), "1.500 7 tx rpc A()");
  EXPECT_EQ(writer.line(record(microseconds(3750), Pdu("A"))), "2.250 7 tx rpc A()");
}

// At every width: never longer than asked for (but for the first field), cut between fields or words, and closed.
TEST(TraceLineWriter, CutsBetweenFields) {
  Pdu pdu("Call");
  pdu.number("frame", 12)
      .word("proc", "COMPOUND")
      .list("ops", "[SEQUENCE PUTFH READ]")
      .text("tag", "a tag")
      .number("n", 1);
  const Record r = record(microseconds(0), pdu);
  const auto line = [&](std::size_t columns) {
    return LineWriter({.time = {}, .start = {}, .columns = columns, .color = false}).line(r);
  };
  const std::string whole = line(0);
  EXPECT_EQ(line(whole.size()), whole);
  EXPECT_EQ(line(84), "0.000 7 tx rpc Call(frame=12, proc=COMPOUND, ops=[SEQUENCE PUTFH READ], ...)");
  EXPECT_EQ(line(70), "0.000 7 tx rpc Call(frame=12, proc=COMPOUND, ops=[SEQUENCE ...], ...)");
  EXPECT_EQ(line(60), "0.000 7 tx rpc Call(frame=12, proc=COMPOUND, ...)");
  EXPECT_EQ(line(1), "0.000 7 tx rpc Call(frame=12, ...)");
  for (std::size_t columns = 40; columns < whole.size(); ++columns) {
    EXPECT_LE(line(columns).size(), columns);
    EXPECT_TRUE(line(columns).ends_with(", ...)")) << line(columns);
  }
}

TEST(TraceLineWriter, AnOnlyFieldIsNotCut) {
  Pdu pdu("Malformed");
  pdu.text("why", std::string(100, 'x'));
  const std::string line =
      LineWriter({.time = {}, .start = {}, .columns = 60, .color = false}).line(record(microseconds(0), pdu));
  EXPECT_TRUE(line.ends_with("x\")"));
}

TEST(TraceLineWriter, ListsOfListsAreNotCutWithin) {
  Pdu pdu("RDMA_MSG");
  pdu.number("xid", 1).list("writes", "[[0x1:10@0x0 0x2:10@0x0] [0x3:10@0x0]]");
  EXPECT_EQ(LineWriter({.time = {}, .start = {}, .columns = 60, .color = false}).line(record(microseconds(0), pdu)),
            "0.000 7 tx rpc RDMA_MSG(xid=1, ...)");
}

TEST(TraceLineWriter, ColorIsAroundWhatIsCounted) {
  Record r = record(microseconds(0), Pdu("A"));
  LineWriter writer({.time = {}, .start = {}, .columns = 20, .color = true});
  EXPECT_EQ(writer.line(r), "0.000 7 tx \x1b[32mrpc A()\x1b[0m");
  r.error = true;
  EXPECT_EQ(writer.line(r), "0.000 7 tx \x1b[1;31mrpc A()\x1b[0m");
}

}  // namespace
}  // namespace iwarp::trace
