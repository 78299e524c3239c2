// What the tests of the Responder share.
#pragma once

#include <gtest/gtest.h>

#include "iwarp/mpa/negotiation.h"
#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa::responder_fixture {

using std::chrono_literals::operator""ms;
using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

inline constexpr TimePoint kStart{};
inline constexpr const char* kDefaultRequest = "50 02 0004 8020 c020";

inline Bytes request(const std::string& rest) {
  return hex("4d504120 49442052 65712046 72616d65 " + rest);
}

template <class T>
T expect(Responder& r) {
  auto event = r.poll_event();
  if (!event || !std::holds_alternative<T>(*event)) {
    ADD_FAILURE() << "not that event";
    return {};
  }
  return std::get<T>(*event);
}

// Everything the responder wants to send, behind the Reply Key.
inline std::string sent(Responder& r) {
  const std::string all = to_hex(r.tx_bytes());
  if (!all.empty()) {
    EXPECT_EQ(all.substr(0, 32), "4d504120494420526570204672616d65");
    r.tx_commit(r.tx_bytes().size());
  }
  return all.empty() ? all : all.substr(32);
}

inline Policy with(void (*change)(Policy&)) {
  Policy p;
  change(p);
  return p;
}

struct Accepted {
  std::string reply;
  Established established;
};
// The answer to a Request that the application accepts with these values.
inline Accepted accepted(const Policy& policy, const std::string& rest, std::uint16_t ird = 32, std::uint16_t ord = 32,
                         const Bytes& private_data = {}) {
  Responder r(policy, kStart);
  const Bytes bytes = request(rest);
  EXPECT_EQ(r.rx(bytes, kStart), bytes.size());
  (void)expect<RequestReceived>(r);
  EXPECT_TRUE(r.accept(ird, ord, private_data).ok());
  EXPECT_FALSE(r.poll_event()) << "not before the Reply has left";
  Accepted a;
  a.reply = sent(r);
  a.established = expect<Established>(r);
  EXPECT_FALSE(r.poll_event());
  EXPECT_TRUE(r.is_consistent());
  return a;
}

// A Request that policy or form forbids: the Reply (if any) and the error.
inline std::pair<std::string, Failed> refused(const Policy& policy, const Bytes& bytes) {
  Responder r(policy, kStart);
  (void)r.rx(bytes, kStart);
  EXPECT_EQ(r.state(), ResponderState::kFailed);
  EXPECT_TRUE(r.is_consistent());
  const std::string reply = sent(r);
  const auto f = expect<Failed>(r);
  EXPECT_FALSE(r.poll_event());
  EXPECT_FALSE(f.error.tell_peer) << "a responder may send no FPDU yet";
  return {reply, f};
}

}  // namespace iwarp::mpa::responder_fixture
