// Where a segment belongs that came before others in front of it, and that asking changes nothing.
#include "tests/rdmap/receiver_fixture.h"

namespace iwarp::rdmap {
namespace {

class ReceiverEarly : public ReceiverTest {
 protected:
  // Where its payload belongs, as "offset+octets" in memory_; "-": not known.
  std::string places(const Bytes& ulpdu) {
    std::vector<ddp::Pin> pins;
    pins.push_back(ddp::Pin::unregistered({}));  // of somebody else
    if (!rx_.early_targets(ulpdu, pins)) {
      EXPECT_EQ(pins.size(), 1u);
      return "-";
    }
    std::string out;
    for (std::size_t i = 1; i < pins.size(); ++i) {
      out += (i == 1 ? "" : " ") + std::to_string(pins[i].bytes().data() - memory_.data()) + "+" +
             std::to_string(pins[i].bytes().size());
    }
    return out;
  }
  static Bytes response(Stag stag, std::uint64_t to, std::size_t bytes) {
    return test::tagged_segment(Opcode::kReadResponse, stag, to, pattern(bytes));
  }
};

TEST_F(ReceiverEarly, AWriteNamesItsPlace) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-4.1-2");
  EXPECT_EQ(places(write_segment(stag_, kBase + 7, pattern(20))), "7+20");
  EXPECT_EQ(places(write_segment(stag_, kBase + 80, pattern(20))), "80+20");
  EXPECT_EQ(places(write_segment(stag_, kBase + 81, pattern(20))), "-");
  EXPECT_EQ(places(write_segment(stag_, kBase - 1, pattern(20))), "-");
  EXPECT_EQ(places(write_segment(Stag{raw(stag_) ^ 1}, kBase, pattern(20))), "-");
  EXPECT_EQ(places(write_segment(stag_, kBase, {})), "-") << "there is nothing to place";
  Bytes local(20), other(20);
  EXPECT_EQ(places(write_segment(add(local, ddp::Access::kLocalWrite), kBase, pattern(20))), "-");
  EXPECT_EQ(places(write_segment(add(other, kAll, kMe.pd, ddp::StreamId{12}), kBase, pattern(20))), "-");
  Bytes bad = write_segment(stag_, kBase, pattern(20));
  bad[0] ^= std::byte{3};
  EXPECT_EQ(places(bad), "-");
  EXPECT_EQ(places({}), "-");
  EXPECT_EQ(places(hex("8140")), "-");
  EXPECT_TRUE(stags_.quiescent(stag_)) << "nothing stays pinned";
  ASSERT_TRUE(stags_.invalidate(stag_));
  EXPECT_EQ(places(write_segment(stag_, kBase, pattern(20))), "-");
}

TEST_F(ReceiverEarly, AnMsnNamesItsReceive) {
  post_recv(1, sge(0, 10));
  SgeList pieces = sge(20, 10);
  EXPECT_TRUE(pieces.add(sge(40, 10)));
  post_recv(2, pieces);
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 1})), "0+5");
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2, .mo = 3})), "23+5");
  EXPECT_EQ(places(send_segment(pattern(12), {.msn = 2, .mo = 5})), "25+5 40+7");
  EXPECT_EQ(places(send_segment(pattern(16), {.msn = 2, .mo = 5})), "-") << "too long";
  EXPECT_EQ(places(send_segment(pattern(1), {.msn = 2, .mo = 0xffffffff})), "-");
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 3})), "-");
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 0})), "-");
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2}, Opcode::kSendSolicitedInvalidate)), "20+5");
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2}, Opcode::kTerminate, kTerminateQn)), "-");
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2}, Opcode::kSend, 7)), "-");
  expect_taken(send_segment(pattern(5), {.msn = 1}));
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 1})), "-") << "it was there";
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2})), "20+5");
  expect_taken(send_segment(pattern(4), {.msn = 2, .last = false}));
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2, .mo = 6})), "26+4 40+1") << "of the message under way";
}

TEST_F(ReceiverEarly, AnRtrBySendComesFirst) {
  post_recv(1, sge(0, 10));
  rx_.expect_rtr_send();
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2})), "-");
  expect_taken(send_segment({}));
  EXPECT_EQ(places(send_segment(pattern(5), {.msn = 2})), "0+5");
}

TEST_F(ReceiverEarly, AReadResponseNamesTheSinkOfAReadThatIsOutstanding) {
  EXPECT_EQ(places(response(stag_, kBase, 10)), "-");
  start_read(1, 20, 10);
  start_read(2, 30, 50);
  EXPECT_EQ(places(response(stag_, kBase + 10, 20)), "10+20");
  EXPECT_EQ(places(response(stag_, kBase + 25, 5)), "25+5");
  EXPECT_EQ(places(response(stag_, kBase + 60, 20)), "60+20");
  EXPECT_EQ(places(response(stag_, kBase + 9, 5)), "-");
  EXPECT_EQ(places(response(stag_, kBase + 26, 5)), "-");
  EXPECT_EQ(places(response(stag_, kBase + 61, 20)), "-");
  EXPECT_EQ(places(response(Stag{raw(stag_) ^ 1}, kBase + 10, 5)), "-");
  expect_taken(response(stag_, kBase + 10, 20));
  EXPECT_EQ(places(response(stag_, kBase + 10, 20)), "-") << "that Read is done";
  EXPECT_EQ(places(response(stag_, kBase + 60, 20)), "60+20");
}

TEST_F(ReceiverEarly, ASinkThatIsTheApplicationsAgainIsLeftAlone) {
  SendWr wr;
  wr.op = SendOp::kRead;
  wr.sges = sge(0, 10);
  EXPECT_TRUE(wr.sges.add(sge(20, 10)));
  ASSERT_TRUE(sends_.post(wr));
  const auto ticket = sends_.start();
  EXPECT_EQ(places(response(stag_, kBase + 20, 10)), "-") << "its Request has not left";
  (void)sends_.start();
  sends_.sent(ticket);
  EXPECT_EQ(places(response(stag_, kBase, 10)), "0+10");
  EXPECT_EQ(places(response(stag_, kBase + 20, 10)), "20+10");
  expect_taken(response(stag_, kBase, 10));
  EXPECT_EQ(places(response(stag_, kBase, 10)), "-") << "answered";
  ASSERT_TRUE(sends_.post(wr));
  const auto other = sends_.start();
  EXPECT_EQ(places(response(stag_, kBase, 10)), "0+10");
  sends_.fail(other, Errc::kLocalProtection);
  EXPECT_EQ(places(response(stag_, kBase, 10)), "-") << "failed";
  EXPECT_EQ(places(response(stag_, kBase + 20, 10)), "20+10");
}

TEST_F(ReceiverEarly, CountsWhatWasPlaced) {
  rx_.placed_early(20);
  rx_.placed_early(5);
  EXPECT_EQ(rx_.counters().early, 2u);
  EXPECT_EQ(rx_.counters().early_bytes, 25u);
}

}  // namespace
}  // namespace iwarp::rdmap
