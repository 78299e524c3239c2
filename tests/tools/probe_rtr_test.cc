// The RTR of `iwarp probe`: its octets, when it is sent, and what is made of the answer.
#include <gtest/gtest.h>

#include "iwarp/rdmap/terminate_message.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"
#include "tools/probe/rtr.h"

namespace iwarp::test {
namespace {

using namespace tools::probe;
using mpa::Rtr;
using Fate = RtrResult::Fate;

RawFrame reply_with(const Bytes& octets) {
  return *RawFrame::parse(octets);
}

Bytes response(Stag stag = Stag{1}, std::uint64_t to = 1, const Bytes& payload = {}) {
  return tagged_segment(rdmap::Opcode::kReadResponse, stag, to, payload);
}

TEST(ProbeRtr, Octets) {
  // 0 length | 2 T=1 L=1 DV=1, Write | 4 STag 1 | 8 TO 1 | 16 CRC, off
  EXPECT_EQ(to_hex(rtr_fpdu(Rtr::kWrite, false)), "000ec14000000001000000000000000100000000");
  // 0 length | 2 T=0 L=1 DV=1, Read Request | 8 QN 1 | 12 MSN 1 | 16 MO | 20 sink | 32 size 0 | 36 source
  EXPECT_EQ(to_hex(ConstBytes(rtr_fpdu(Rtr::kRead, true)).first(48)),
            "002e4141000000000000000100000001000000000000000100000000000000010000000000000001"
            "0000000000000001");
  EXPECT_EQ(rtr_fpdu(Rtr::kRead, true).size(), 52U);
  EXPECT_EQ(rtr_fpdu(Rtr::kWrite, true), fpdu(write_segment(Stag{1}, 1, {}), true));
}

TEST(ProbeRtr, IsAFormThatBothName) {
  const Question& both = *question_named("enhanced");
  mpa::StartupFrame f = good_reply();
  const auto chosen = [&](const Question& q) {
    const Bytes bytes = octets(f);
    return rtr_to_send(q, reply_with(bytes));
  };
  EXPECT_EQ(chosen(both), Rtr::kRead);
  EXPECT_EQ(chosen(*question_named("rtr-write")), Rtr::kWrite);
  EXPECT_EQ(chosen(*question_named("rtr-send")), Rtr::kNone);
  EXPECT_EQ(chosen(*question_named("client-server")), Rtr::kNone);
  EXPECT_EQ(chosen(*question_named("markers")), Rtr::kNone);
  EXPECT_EQ(chosen(*question_named("depth-0")), Rtr::kWrite) << "no Read with ORD 0";
  f.enhanced_data.ird = 0;
  EXPECT_EQ(chosen(both), Rtr::kWrite) << "nor with IRD 0 of the peer";
  f.enhanced_data.rtr_write = false;
  EXPECT_EQ(chosen(both), Rtr::kNone);
  f = good_reply();
  f.markers = true;
  EXPECT_EQ(chosen(both), Rtr::kNone);
  f = good_reply();
  f.reject = true;
  EXPECT_EQ(chosen(both), Rtr::kNone);
}

TEST(ProbeRtr, Answers) {
  Bytes terminate(rdmap::TerminateMessage::kMaxSize);
  rdmap::TerminateMessage message;
  message.code = {2, 0, 7};
  message.write_to(terminate);
  terminate.resize(message.size());
  Bytes bad_crc = fpdu(response(), true);
  bad_crc.back() ^= std::byte{1};
  const Bytes send = fpdu(send_segment(pattern(8)), true);
  const struct {
    const char* name;
    Rtr form;
    Bytes octets;
    std::optional<Fate> fate;
  } cases[] = {
      {"nothing", Rtr::kRead, {}, std::nullopt},
      {"response", Rtr::kRead, fpdu(response(), true), Fate::kTaken},
      {"the ULP first", Rtr::kRead, send | fpdu(response(), true), Fate::kTaken},
      {"only the ULP", Rtr::kRead, send, std::nullopt},
      {"the ULP after a Write", Rtr::kWrite, send, std::nullopt},
      {"other STag", Rtr::kRead, fpdu(response(Stag{2}), true), Fate::kOdd},
      {"other place", Rtr::kRead, fpdu(response(Stag{1}, 2), true), Fate::kOdd},
      {"payload", Rtr::kRead, fpdu(response(Stag{1}, 1, pattern(4)), true), Fate::kOdd},
      {"wrong CRC", Rtr::kRead, bad_crc, Fate::kBadCrc},
      {"a Terminate", Rtr::kWrite, fpdu(terminate_segment(terminate), true), Fate::kTerminated},
      {"no segment", Rtr::kWrite, fpdu(hex("0102"), true), Fate::kOdd},
  };
  for (const auto& c : cases) {
    Bytes octets = c.octets;
    const auto result = rtr_answer(c.form, true, octets);
    ASSERT_EQ(result.has_value(), c.fate.has_value()) << c.name;
    if (!result) continue;
    EXPECT_EQ(result->fate, *c.fate) << c.name;
    EXPECT_EQ(result->code.has_value(), *c.fate == Fate::kTerminated) << c.name;
  }
}

TEST(ProbeRtr, AnswerInPieces) {
  const Bytes whole = fpdu(response(), true);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_FALSE(rtr_answer(Rtr::kRead, true, cut).has_value()) << n;
  }
}

}  // namespace
}  // namespace iwarp::test
