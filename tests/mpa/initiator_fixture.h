// What the tests of the Initiator share.
#pragma once

#include <gtest/gtest.h>

#include "iwarp/mpa/negotiation.h"
#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa::initiator_fixture {

using std::chrono_literals::operator""ms;
using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

inline constexpr TimePoint kStart{};

inline Bytes reply(const std::string& rest) {
  return hex("4d504120 49442052 65702046 72616d65 " + rest);
}

inline void send_all(Initiator& i) {
  while (!i.tx_bytes().empty()) i.tx_commit(i.tx_bytes().size());
}

template <class T>
T expect(Initiator& i) {
  auto event = i.poll_event();
  EXPECT_FALSE(i.poll_event()) << "one event in a life";
  if (!event || !std::holds_alternative<T>(*event)) {
    ADD_FAILURE() << "not that event";
    return {};
  }
  return std::get<T>(*event);
}

// What comes of `policy` when the responder answers with this frame.
template <class T>
T after_reply(const Policy& policy, const std::string& rest) {
  Initiator i(policy, {}, kStart);
  send_all(i);
  const Bytes bytes = reply(rest);
  EXPECT_EQ(i.rx(bytes, kStart), bytes.size());
  EXPECT_TRUE(i.is_consistent());
  return expect<T>(i);
}

inline std::string request_of(const Policy& policy, const Bytes& private_data = {}) {
  Initiator i(policy, private_data, kStart);
  return to_hex(i.tx_bytes()).substr(32);  // behind the Key
}

inline Policy with(void (*change)(Policy&)) {
  Policy p;
  change(p);
  return p;
}

}  // namespace iwarp::mpa::initiator_fixture
