#include "iwarp/sctp/session_control.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::sctp {
namespace {

using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

SessionControl parsed(const Bytes& message) {
  const auto m = SessionControl::parse(message);
  if (m.ok()) return *m;
  ADD_FAILURE() << to_hex(message) << ": " << m.error().why;
  return {};
}

Errc code_of(const Bytes& message, std::size_t max = kMaxPrivateDataBytes) {
  const auto m = SessionControl::parse(message, max);
  return m.ok() ? Errc::kOk : m.error().code;
}

std::string written(const SessionControl& m) {
  Bytes out(m.size());
  m.write_to(out);
  return to_hex(out);
}

struct Vector {
  const char* octets;
  const char* text;
  std::size_t ulp_bytes;
};
constexpr Vector kVectors[] = {
    // DDP-SSN, Function Code, Private Data
    {"0000 0001", "Initiate(ssn=0, pd=0)", 0},
    {"0000 0001 0102030405", "Initiate(ssn=0, pd=5)", 5},
    {"0000 0002 aa", "Accept(ssn=0, pd=1)", 1},
    {"0000 0003 bbcc", "Reject(ssn=0, pd=2)", 2},
    {"0001 0004", "Terminate(ssn=1, pd=0)", 0},
    {"ffff 0004", "Terminate(ssn=65535, pd=0)", 0},
    // DDP-SSN, Function Code, A B IRD, C D ORD, the ULP's data
    {"0000 0005 8020 c010", "EnhancedInitiate(ssn=0, p2p=1, rtr_send=0, rtr_write=1, rtr_read=1, ird=32, ord=16, pd=0)",
     0},
    {"0000 0005 3fff 3fff 0102",
     "EnhancedInitiate(ssn=0, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=16383, ord=16383, pd=2)", 2},
    {"0000 0006 c001 4002 00", "EnhancedAccept(ssn=0, p2p=1, rtr_send=1, rtr_write=0, rtr_read=1, ird=1, ord=2, pd=1)",
     1},
    {"0000 0007 8000 8000", "EnhancedReject(ssn=0, p2p=1, rtr_send=0, rtr_write=1, rtr_read=0, ird=0, ord=0, pd=0)", 0},
};

TEST(SessionControl, ReadsAndWritesEachKind) {
  COVERS("RFC6581-11-1");
  COVERS("RFC5043-5.2.1-1");
  COVERS("RFC5043-5.2.3-1");
  COVERS("RFC5043-5.2.3-2");
  COVERS("RFC5043-5.2.3-3");
  COVERS("RFC5043-5.2.3-4");
  COVERS("RFC6580-3.5-1");
  COVERS("RFC6581-7-1");
  COVERS("RFC6581-7-2");
  COVERS("RFC6581-7-5");
  COVERS("RFC6581-7-6");
  COVERS("RFC6581-7-10");
  COVERS("RFC6581-7-17");
  COVERS("RFC6581-7-19");
  COVERS("RFC6581-9-6");
  for (const Vector& v : kVectors) {
    SCOPED_TRACE(v.text);
    const Bytes octets = hex(v.octets);
    const SessionControl m = parsed(octets);
    EXPECT_EQ(m.to_string(), v.text);
    EXPECT_EQ(m.size(), octets.size());
    EXPECT_EQ(to_hex(m.private_data), to_hex(ConstBytes(octets).last(v.ulp_bytes)));
    EXPECT_EQ(written(m), to_hex(octets));
  }
}

TEST(SessionControl, AllPrivateDataOfPlainMessagesBelongToTheUlp) {
  COVERS("RFC6581-7-18");
  for (const char* code : {"0001", "0002", "0003"}) {
    const Bytes octets = hex(std::string("0000") + code + "8020c010ff");
    const SessionControl m = parsed(octets);
    EXPECT_FALSE(m.data);
    EXPECT_EQ(to_hex(m.private_data), "8020c010ff");
  }
}

TEST(SessionControl, NeedsItsHeader) {
  COVERS("RFC5043-5.2.3-1");
  for (const char* prefix : {"", "00", "0000", "000000"}) EXPECT_EQ(code_of(hex(prefix)), Errc::kSessionControl);
}

TEST(SessionControl, KnowsNoOtherFunctionCode) {
  COVERS("RFC5043-5.2.3-2");
  COVERS("RFC6580-3.5-1");
  COVERS("RFC6580-3.5-2");
  for (unsigned code = 0; code <= 0xFFFF; ++code) {
    Bytes message = hex("0000 0000 00000000");
    message[2] = static_cast<std::byte>(code >> 8);
    message[3] = static_cast<std::byte>(code & 0xFF);
    ASSERT_EQ(code_of(message), code >= 1 && code <= 7 ? Errc::kOk : Errc::kSessionControl) << code;
  }
  static_assert(kExperimentalFunctionCode > static_cast<std::uint16_t>(Function::kEnhancedReject));
}

TEST(SessionControl, TakesUpTo512OctetsOfPrivateData) {
  COVERS("RFC5043-5.2.3-5");
  COVERS("RFC5043-9-3");
  COVERS("RFC6581-7-7");
  COVERS("RFC6581-7-20");
  for (const char* code : {"0001", "0002", "0003", "0005", "0006", "0007"}) {
    const Bytes head = hex(std::string("0000") + code);
    const Bytes octets = head + test::pattern(512);
    const SessionControl longest = parsed(octets);
    EXPECT_EQ(longest.size(), kMinMessageLimit);
    EXPECT_EQ(longest.private_data.size(), max_ulp_bytes(longest.function));
    EXPECT_EQ(code_of(head + test::pattern(513)), Errc::kPrivateDataTooLong);
    EXPECT_EQ(code_of(head + test::pattern(65000)), Errc::kPrivateDataTooLong);
    EXPECT_EQ(code_of(head + test::pattern(16), 16), Errc::kOk) << "our own limit";
    EXPECT_EQ(code_of(head + test::pattern(17), 16), Errc::kPrivateDataTooLong);
    EXPECT_EQ(code_of(head + test::pattern(513), 9999), Errc::kPrivateDataTooLong) << "no limit goes beyond the RFC";
  }
  static_assert(max_ulp_bytes(Function::kEnhancedInitiate) == 508 && max_ulp_bytes(Function::kInitiate) == 512);
}

TEST(SessionControl, ATerminateHasNoPrivateData) {
  COVERS("RFC5043-5.2.3-6");
  COVERS("RFC6581-7-8");
  COVERS("RFC6581-7-12");
  static_assert(max_ulp_bytes(Function::kTerminate) == 0);
  const SessionControl m = parsed(hex("0007 0004") + test::pattern(600));
  EXPECT_EQ(m.function, Function::kTerminate);
  EXPECT_TRUE(m.private_data.empty()) << "passed over";
  EXPECT_EQ(written(m), "00070004");
}

TEST(SessionControl, EnhancedMessagesHaveTheirData) {
  COVERS("RFC6581-7-21");
  for (const char* data : {"", "80", "8020", "8020c0"}) {
    EXPECT_EQ(code_of(hex(std::string("0000 0005") + data)), Errc::kSessionControl);
    EXPECT_EQ(code_of(hex(std::string("0000 0006") + data)), Errc::kSessionControl);
  }
}

TEST(SessionControl, AShortEnhancedRejectIsOneWithoutData) {
  COVERS("RFC6581-7-19");
  const Bytes octets = hex("0000 0007 aabbcc");
  const SessionControl m = parsed(octets);
  EXPECT_FALSE(m.data);
  EXPECT_EQ(to_hex(m.private_data), "aabbcc");
}

TEST(SessionControl, EnhancedFunctionsStandForPlainOnes) {
  COVERS("RFC6581-7-4");
  EXPECT_EQ(plain(Function::kEnhancedInitiate), Function::kInitiate);
  EXPECT_EQ(plain(Function::kEnhancedAccept), Function::kAccept);
  EXPECT_EQ(plain(Function::kEnhancedReject), Function::kReject);
  for (const Function f : {Function::kInitiate, Function::kAccept, Function::kReject, Function::kTerminate}) {
    EXPECT_EQ(plain(f), f);
    EXPECT_FALSE(is_enhanced(f));
    EXPECT_TRUE(f == Function::kTerminate || is_enhanced(static_cast<Function>(static_cast<int>(f) + 4)));
  }
}

}  // namespace
}  // namespace iwarp::sctp
