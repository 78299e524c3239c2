#include "iwarp/trace/decoder.h"

#include <gmock/gmock.h>

#include <random>

#include "iwarp/rdmap/terminate_message.h"
#include "tests/support/segments.h"
#include "tests/trace/lines.h"
#include "tests/trace/startup.h"

namespace iwarp::trace {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::fpdu;
using test::send_segment;
using test::operator|;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kTx = Direction::kTx;
constexpr auto kRx = Direction::kRx;

class TraceDecoder : public ::testing::Test {
 protected:
  explicit TraceDecoder(bool verbose = false)
      : decoder_({.connection = "c", .verbose = verbose, .rpcrdma = RpcGuess::kUnknown}) {}

  void start(bool crc) {
    decoder_.receive(kTx, request(crc), milliseconds(1));
    decoder_.receive(kRx, reply(crc), milliseconds(2));
    (void)decoder_.take();
  }
  std::vector<std::string> tx(const Bytes& bytes) {
    decoder_.receive(kTx, bytes, milliseconds(3));
    return lines_of(decoder_.take());
  }
  std::vector<std::string> finish() {
    decoder_.finish(milliseconds(9));
    return lines_of(decoder_.take());
  }

  Decoder decoder_;
};

class VerboseTraceDecoder : public TraceDecoder {
 protected:
  VerboseTraceDecoder() : TraceDecoder(true) {}
};

TEST_F(TraceDecoder, StartupFrames) {
  const Bytes data = test::hex("0102");
  mpa::StartupFrame f;
  f.crc = true;
  f.enhanced = true;
  f.enhanced_data = {true, false, true, true, 8, 4};
  f.private_data = data;
  decoder_.receive(kTx, to_bytes(f), milliseconds(1));
  decoder_.receive(kRx, reply(true, true), milliseconds(2));
  EXPECT_THAT(lines_of(decoder_.take()),
              ElementsAre("1.000 c tx mpa Request(rev=2, crc=1, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=1, "
                          "rtr_read=1, ird=8, ord=4, pd=2, private_data=0102)",
                          "2.000 c rx mpa Reply(rev=2, reject=1, crc=1, markers=0, enhanced=0, pd=0)"));
}

TEST_F(TraceDecoder, SendsOfEveryKind) {
  start(true);
  const auto send = [](rdmap::Opcode op, std::uint32_t msn, std::uint32_t tail) {
    return fpdu(send_segment(test::pattern(5), {.msn = msn, .tail = tail}, op), true);
  };
  EXPECT_THAT(
      tx(send(rdmap::Opcode::kSend, 1, 0) | send(rdmap::Opcode::kSendInvalidate, 2, 0xab00) |
         send(rdmap::Opcode::kSendSolicited, 3, 0) | send(rdmap::Opcode::kSendSolicitedInvalidate, 5, 1)),
      ElementsAre(
          "3.000 c tx rdmap Send(msn=1, length=5, segments=1)",
          "3.000 c tx rdmap SendInvalidate(msn=2, length=5, segments=1, invalidate=0xab00)",
          "3.000 c tx rdmap SendSolicited(msn=3, length=5, segments=1)",
          "3.000 c tx rdmap SendSolicitedInvalidate(msn=5, length=5, segments=1, invalidate=0x1, expected_msn=4)"));
}

TEST_F(TraceDecoder, ImmediateData) {
  start(true);
  EXPECT_THAT(
      tx(fpdu(send_segment(test::hex("00000000000000ff"), {}, rdmap::Opcode::kImmediate), true) |
         fpdu(send_segment(test::pattern(4), {.msn = 2}), true) |
         fpdu(send_segment(test::hex("1122334455667788"), {.msn = 3}, rdmap::Opcode::kImmediateSolicited), true) |
         fpdu(send_segment(test::hex("0102"), {.msn = 4}, rdmap::Opcode::kImmediate), true)),
      ElementsAre("3.000 c tx rdmap Immediate(msn=1, data=0xff)", "3.000 c tx rdmap Send(msn=2, length=4, segments=1)",
                  "3.000 c tx rdmap ImmediateSolicited(msn=3, data=0x1122334455667788)",
                  "3.000 c tx rdmap Malformed(opcode=Immediate, octets=0102, length=2, segments=1)"));
}

TEST_F(TraceDecoder, AtomicsAndTheirResponses) {
  start(true);
  const auto request = [](const char* octets, std::uint32_t msn) {
    return fpdu(send_segment(test::hex(octets), {.msn = msn}, rdmap::Opcode::kAtomicRequest, rdmap::kReadRequestQn),
                true);
  };
  const char* const kOperands =
      "00000007"
      "00000500"
      "0000000000001000"
      "000000000000000a"
      "00000000000000f0"
      "0000000000000001"
      "ffffffffffffffff";
  EXPECT_THAT(
      tx(request((std::string("00000000") + kOperands).c_str(), 1) |
         request((std::string("00000002") + kOperands).c_str(), 2) | request("0000000200", 3) |
         fpdu(send_segment(test::hex("0000000700000000000000ff"), {}, rdmap::Opcode::kAtomicResponse,
                           rdmap::kAtomicResponseQn),
              true)),
      ElementsAre(
          "3.000 c tx rdmap AtomicRequest(msn=1, op=FetchAdd, id=7, stag=0x500, to=0x1000, data=0xa, mask=0xf0)",
          "3.000 c tx rdmap AtomicRequest(msn=2, op=CmpSwap, id=7, stag=0x500, to=0x1000, data=0xa, mask=0xf0, "
          "compare=0x1, compare_mask=0xffffffffffffffff)",
          "3.000 c tx rdmap Malformed(opcode=AtomicRequest, octets=0000000200, length=5, segments=1)",
          "3.000 c tx rdmap AtomicResponse(msn=1, id=7, original=0xff)"));
}

TEST_F(TraceDecoder, WriteOfThreeSegments) {
  start(false);
  const Bytes part = test::pattern(8);
  EXPECT_THAT(tx(fpdu(test::write_segment(Stag{0x500}, 0x1000, part, false), false) |
                 fpdu(test::write_segment(Stag{0x500}, 0x1008, part, false), false)),
              IsEmpty());
  EXPECT_THAT(tx(fpdu(test::write_segment(Stag{0x500}, 0x1010, part), false)),
              ElementsAre("3.000 c tx rdmap Write(stag=0x500, to=0x1000, length=24, segments=3)"));
}

TEST_F(TraceDecoder, ReadRequestAndResponse) {
  start(true);
  EXPECT_THAT(
      tx(fpdu(test::read_request_segment({Stag{1}, 2, 3, Stag{4}, 5}), true) |
         fpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, Stag{1}, 2, test::pattern(3)), true)),
      ElementsAre(
          "3.000 c tx rdmap ReadRequest(msn=1, size=3, source_stag=0x4, source_to=0x5, sink_stag=0x1, sink_to=0x2)",
          "3.000 c tx rdmap ReadResponse(stag=0x1, to=0x2, length=3, segments=1)"));
}

TEST_F(TraceDecoder, Terminate) {
  start(true);
  const Bytes bad = test::write_segment(Stag{9}, 0, {});
  const auto message = rdmap::make_terminate(make_error(Errc::kTaggedInvalidStag), bad, bad.size(), false);
  Bytes body(message.size());
  message.write_to(body);
  EXPECT_THAT(
      tx(fpdu(test::terminate_segment(body), true)),
      ElementsAre(
          "3.000 c tx rdmap Terminate(layer=1, type=1, code=0, text=\"tagged: invalid STag\", segment_length=14, "
          "ddp_header=c140000000090000000000000000)"));
}

TEST_F(TraceDecoder, MalformedMessagesAreShownAsOctets) {
  start(true);
  EXPECT_THAT(tx(fpdu(send_segment(test::hex("0102"), {}, rdmap::Opcode::kReadRequest, rdmap::kReadRequestQn), true) |
                 fpdu(test::terminate_segment(test::hex("01")), true)),
              ElementsAre("3.000 c tx rdmap Malformed(opcode=ReadRequest, octets=0102, length=2, segments=1)",
                          "3.000 c tx rdmap Malformed(opcode=Terminate, octets=01, length=1, segments=1)"));
  EXPECT_EQ(decoder_.totals(kTx).malformed, 2U);
}

TEST_F(TraceDecoder, BadCrcIsAlwaysShown) {
  start(true);
  Bytes bad = fpdu(send_segment(test::pattern(4)), true);
  bad.back() ^= std::byte{0xff};
  const Bytes good = fpdu(send_segment(test::pattern(4), {.msn = 2}), true);
  const auto lines = tx(bad | good);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], HasSubstr("c tx mpa BadCrc(ulpdu=22, computed=0x"));
  EXPECT_EQ(lines[1], "3.000 c tx mpa Undecoded(bytes=28, why=\"wrong CRC\")");
  EXPECT_EQ(lines[2], "3.000 c tx mpa Aligned(crc=on)");
  EXPECT_EQ(lines[3], "3.000 c tx rdmap Send(msn=2, length=4, segments=1)");
  EXPECT_EQ(decoder_.totals(kTx).bad_crc, 1U);
  EXPECT_FALSE(decoder_.totals(kTx).all_decoded());
}

TEST_F(TraceDecoder, UnknownHeadersAreUndecoded) {
  start(true);
  Bytes version = send_segment({});
  version[0] = std::byte{0x42};
  EXPECT_THAT(tx(fpdu(version, true) | fpdu(test::hex("41"), true)), IsEmpty());
  const auto lines = finish();
  EXPECT_THAT(lines[0], HasSubstr("mpa Undecoded(bytes=32, why="));  // one line for the run of both
}

// The Request asks for Markers: they are in what the other side sends.
class TraceMarkers : public TraceDecoder {
 protected:
  TraceMarkers() {
    decoder_.receive(kTx, request(true, true), milliseconds(1));
    decoder_.receive(kRx, reply(true), milliseconds(2));
    for (std::uint32_t i = 0; i < 4; ++i) {
      const Bytes payload = test::pattern(i % 2 == 0 ? 464 : 1500, i);
      stream_ = stream_ | test::marked_fpdu(send_segment(payload, {.msn = i + 1}), stream_.size(), true);
    }
    (void)decoder_.take();
  }
  Bytes stream_;
};

TEST_F(TraceMarkers, AreCutOutWhereverTheStreamIsCut) {
  for (const std::size_t chunk : {1U, 7U, 509U, 100000U}) {
    Decoder d({.connection = "c"});
    d.receive(kTx, request(true, true), milliseconds(1));
    d.receive(kRx, reply(true), milliseconds(2));
    d.receive(kTx, fpdu(send_segment({}), true), milliseconds(2));
    for (ConstBytes rest = stream_; !rest.empty(); rest = rest.subspan(std::min(chunk, rest.size())))
      d.receive(kRx, rest.first(std::min(chunk, rest.size())), milliseconds(3));
    d.finish(milliseconds(4));
    EXPECT_EQ(d.totals(kRx).messages, 4U) << chunk;
    EXPECT_EQ(d.totals(kRx).fpdus, 4U);
    EXPECT_TRUE(d.totals(kRx).all_decoded()) << chunk;
    EXPECT_EQ(d.totals(kTx).messages, 1U) << "no Markers this way";
    EXPECT_TRUE(d.totals(kTx).all_decoded());
  }
}

TEST_F(TraceMarkers, FollowEachOtherBehindAGapInAnFpdu) {
  decoder_.receive(kRx, ConstBytes(stream_).first(700), milliseconds(3));
  decoder_.lose(kRx, 400, milliseconds(3));
  decoder_.receive(kRx, ConstBytes(stream_).subspan(1100), milliseconds(3));
  (void)finish();
  EXPECT_EQ(decoder_.totals(kRx).messages, 4U);
  EXPECT_EQ(decoder_.totals(kRx).undecoded, 0U);
}

TEST_F(TraceMarkers, AreLostBehindALargerGapOrAWrongCrc) {
  decoder_.receive(kRx, ConstBytes(stream_).first(700), milliseconds(3));
  decoder_.lose(kRx, 2000, milliseconds(3));
  decoder_.receive(kRx, ConstBytes(stream_).subspan(2700), milliseconds(3));
  const auto lines = finish();
  EXPECT_THAT(lines, Contains(HasSubstr("why=\"behind a gap or a wrong CRC in a stream with MPA Markers\"")));
}

TEST_F(TraceDecoder, NothingIsExpectedBehindARejection) {
  decoder_.receive(kTx, request(false), milliseconds(1));
  decoder_.receive(kRx, reply(false, true), milliseconds(2));
  decoder_.receive(kRx, test::hex("00"), milliseconds(2));
  (void)decoder_.take();
  EXPECT_THAT(finish()[1], HasSubstr("rx mpa Undecoded(bytes=1, why=\"the connection was rejected\")"));
}

TEST_F(TraceDecoder, AnAnswerThatIsNoReply) {
  decoder_.receive(kTx, request(false), milliseconds(1));
  decoder_.receive(kRx, test::hex("485454502f"), milliseconds(2));
  decoder_.receive(kRx, test::hex("31"), milliseconds(2));
  EXPECT_FALSE(decoder_.is_not_mpa());
  (void)decoder_.take();
  (void)finish();
  EXPECT_EQ(decoder_.totals(kRx).undecoded, 6U);
}

TEST_F(TraceDecoder, OtherProtocolsHaveNoTotals) {
  decoder_.receive(kTx, test::hex("5353482d"), milliseconds(1));
  EXPECT_TRUE(decoder_.is_not_mpa());
  EXPECT_THAT(finish(), ElementsAre("1.000 c tx tcp NotMpa()"));
}

TEST_F(TraceDecoder, LossWithinAMessage) {
  start(false);
  const Bytes part = test::pattern(50);
  const Bytes second = fpdu(test::write_segment(Stag{5}, 50, part, false), false);
  (void)tx(fpdu(test::write_segment(Stag{5}, 0, part, false), false) | Bytes(second.begin(), second.begin() + 20));
  decoder_.lose(kTx, second.size() - 20, milliseconds(4));
  EXPECT_THAT(lines_of(decoder_.take()), ElementsAre("4.000 c tx tcp Lost(bytes=52)"));
  EXPECT_THAT(tx(fpdu(test::write_segment(Stag{5}, 100, part), false)),
              ElementsAre("3.000 c tx rdmap Write(stag=0x5, to=0x0, length=150, segments=3)"));
}

TEST_F(TraceDecoder, LossOfWholeFpdus) {
  start(true);
  (void)tx(fpdu(test::write_segment(Stag{5}, 0, test::pattern(50), false), true));
  decoder_.lose(kTx, 72, milliseconds(4));
  EXPECT_THAT(tx(fpdu(send_segment({}, {.msn = 7}), true)),
              ElementsAre("4.000 c tx tcp Lost(bytes=72)",
                          "3.000 c tx rdmap Write(stag=0x5, to=0x0, length=50, segments=1, complete=0)",
                          "3.000 c tx mpa Aligned(crc=on)", "3.000 c tx rdmap Send(msn=7, length=0, segments=1)"));
}

TEST_F(TraceDecoder, WithoutHandshake) {
  decoder_.start(kTx, false);
  EXPECT_THAT(tx(fpdu(send_segment({}, {.msn = 7}), true)),
              ElementsAre("3.000 c tx mpa Aligned(crc=on)", "3.000 c tx rdmap Send(msn=7, length=0, segments=1)"));
}

TEST_F(TraceDecoder, EndsAndTotals) {
  start(true);
  (void)tx(fpdu(send_segment(test::pattern(6)), true));
  decoder_.end(kTx, Decoder::End::kFin, milliseconds(5));
  decoder_.end(kRx, Decoder::End::kReset, milliseconds(6));
  EXPECT_THAT(
      finish(),
      ElementsAre("5.000 c tx tcp Fin()", "6.000 c rx tcp Reset()",
                  "9.000 c tx tcp Total(bytes=52, fpdus=1, messages=1, undecoded=0, lost=0, bad_crc=0, malformed=0)",
                  "9.000 c rx tcp Total(bytes=20, fpdus=0, messages=0, undecoded=0, lost=0, bad_crc=0, malformed=0)"));
  EXPECT_TRUE(decoder_.totals(kTx).all_decoded());
}

TEST_F(TraceDecoder, SilenceIsNoReset) {
  start(true);
  decoder_.end(kRx, Decoder::End::kSilence, milliseconds(5));
  EXPECT_EQ(finish().front(), "5.000 c rx tcp Silence()");
}

TEST_F(VerboseTraceDecoder, FpdusAndSegments) {
  start(true);
  EXPECT_THAT(tx(fpdu(send_segment(test::pattern(4), {.last = false}), true) |
                 fpdu(test::write_segment(Stag{3}, 16, {}), true)),
              ElementsAre("3.000 c tx mpa Fpdu(ulpdu=22, crc=good)",
                          "3.000 c tx ddp Untagged(last=0, qn=0, msn=1, mo=0, length=4)",
                          "3.000 c tx mpa Fpdu(ulpdu=14, crc=good)",
                          "3.000 c tx ddp Tagged(last=1, stag=0x3, to=0x10, length=0)",
                          "3.000 c tx rdmap Write(stag=0x3, to=0x10, length=0, segments=1)"));
}

// Whatever comes in whatever order: no assertion, and every octet is accounted for.
TEST(TraceDecoderNoise, NeverFails) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Decoder d({.connection = "n",
               .verbose = round % 2 == 0,
               .rpcrdma = round % 3 == 0 ? RpcGuess::kYes : RpcGuess::kUnknown});
    if (round % 5 != 0) d.receive(kTx, request(random() % 2 == 0, random() % 8 == 0), milliseconds(0));
    if (round % 7 != 0) d.receive(kRx, reply(random() % 2 == 0, random() % 8 == 0), milliseconds(0));
    for (int step = 0; step < 60; ++step) {
      const Direction dir = random() % 2 == 0 ? kTx : kRx;
      Bytes bytes =
          fpdu(send_segment(test::pattern(random() % 200), {.msn = static_cast<std::uint32_t>(random())}), true);
      if (random() % 3 == 0) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      d.receive(dir, bytes, milliseconds(step));
      if (random() % 6 == 0) d.lose(dir, random() % 500, milliseconds(step));
    }
    d.finish(milliseconds(99));
    for (const Direction dir : {kTx, kRx}) EXPECT_LE(d.totals(dir).undecoded, d.totals(dir).bytes);
    EXPECT_FALSE(d.take().empty());
  }
}

}  // namespace
}  // namespace iwarp::trace
