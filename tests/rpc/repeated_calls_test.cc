// Calls that the application sends again with their xid, and the server's view of them.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

CallOptions with_xid(std::uint32_t xid) {
  return {.timeout = kPatience, .xid = xid};
}

// Sends a Call of that xid which the server holds, and gives it up when the server holds so many. The client is
// connected.
void give_up(World& w, Client& client, std::uint32_t xid, unsigned held) {
  boost::asio::cancellation_signal signal;
  std::promise<Error> told;
  client.async_call(proc(kHold), words({5}), with_xid(xid),
                    boost::asio::bind_cancellation_slot(
                        signal.slot(), [&](const Error& error, const Reply&) { told.set_value(error); }));
  EXPECT_TRUE(eventually([&] { return w.program.held == held; }));
  signal.emit(boost::asio::cancellation_type::terminal);
  EXPECT_EQ(told.get_future().get().code, Errc::kAborted);
}

class RepeatedCalls : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, RepeatedCalls, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

// The server has it already, on the same connection: its Reply is taken.
TEST_P(RepeatedCalls, GetTheReplyToTheFormer) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  give_up(w, client, 7, 1);
  EXPECT_EQ(client.exchange(words({0, 1, 0, 0, 0, 0}), with_xid(8)).error().code, Errc::kInvalidArgument);  // a Reply
  auto again = client.async_call(proc(kHold), words({5}), with_xid(7), use_future);
  EXPECT_EQ(client.call(proc(kHold), words({5}), with_xid(7)).error().code, Errc::kInvalidArgument);  // outstanding
  EXPECT_EQ(again.wait_for(20ms), std::future_status::timeout);
  w.release();
  ASSERT_EQ(again.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(again.get().results()), 5u);
  EXPECT_EQ(w.program.executed, 1u);
  EXPECT_EQ(client.stats().connections, 1u);
  // That xid is free.
  EXPECT_EQ(word(client.call(proc(kAdd), words({1, 2}), with_xid(7))->results()), 3u);
}

// One that is one-way has left already.
TEST_P(RepeatedCalls, OneWayTheyWaitForNothing) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  give_up(w, client, 7, 1);
  CallOptions one_way = with_xid(7);
  one_way.one_way = true;
  auto again = client.async_call(proc(kHold), words({5}), one_way, use_future);
  ASSERT_EQ(again.wait_for(kPatience), std::future_status::ready);
  EXPECT_NO_THROW((void)again.get());
  w.release();
  EXPECT_EQ(word(client.call(proc(kAdd), words({1, 2}))->results()), 3u);
  EXPECT_EQ(w.program.executed, 2u);
  EXPECT_EQ(client.stats().connections, 1u);
}

// Perhaps the server does not answer on that connection: it is made anew.
TEST_P(RepeatedCalls, TheSecondTimeGoOnAnotherConnection) {
  World w(GetParam(), {.threads = 4});
  Client client(w.engine, w.transport);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  auto beside = client.async_call(proc(kHold), words({9}), {}, use_future);
  give_up(w, client, 7, 2);
  give_up(w, client, 7, 2);  // the server has it already
  auto again = client.async_call(proc(kHold), words({5}), with_xid(7), use_future);
  ASSERT_TRUE(eventually([&] { return w.server.stats().recognized == 2; }));
  w.release();
  ASSERT_EQ(again.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(again.get().results()), 5u);
  ASSERT_EQ(beside.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(beside.get().results()), 9u);
  EXPECT_EQ(w.program.executed, 2u);
  EXPECT_EQ(client.stats().connections, 2u);
}

// Never the answer to another Call.
TEST_P(RepeatedCalls, OfOtherOctetsAreOtherCalls) {
  World w(GetParam(), {.threads = 4});
  Client client(w.engine, w.transport);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  give_up(w, client, 7, 1);
  const auto sum = client.call(proc(kAdd), words({1, 2}), with_xid(7));
  ASSERT_TRUE(sum.ok()) << sum.error().why;
  EXPECT_EQ(word(sum->results()), 3u);
  EXPECT_EQ(client.stats().connections, 2u);
}

// As a WRITE of 64 KiB that differs in its last octet only from the one of that xid before.
TEST_P(RepeatedCalls, TheServerLooksAtAllOctets) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  auto data = pattern(65536, 3);
  for (const std::byte last : {std::byte{1}, std::byte{2}, std::byte{2}}) {
    data.back() = last;
    const auto echo = client.call(proc(kEcho), data, with_xid(7));
    ASSERT_TRUE(echo.ok());
    EXPECT_TRUE(std::ranges::equal(echo->results(), data));
  }
  CallOptions of_another = with_xid(9);
  EXPECT_TRUE(client.call(proc(kAdd), words({1, 2}), of_another).ok());
  of_another.credential = Credential::sys("host", 1000, 100);
  EXPECT_TRUE(client.call(proc(kAdd), words({1, 2}), of_another).ok());
  EXPECT_TRUE(client.call(proc(kAdd), words({1, 2}), of_another).ok());
  EXPECT_EQ(w.program.executed, 4u);
  EXPECT_EQ(w.server.stats().recognized, 2u);
}

TEST_P(RepeatedCalls, AreExecutedAgainWhenTheAnswerIsTooOld) {
  World w(GetParam(), {.threads = 1, .remembered_for = 0s});
  Client client(w.engine, w.transport);
  EXPECT_TRUE(client.call(proc(kAdd), words({1, 2}), with_xid(9)).ok());
  std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(client.call(proc(kAdd), words({1, 2}), with_xid(9)).ok());
  EXPECT_EQ(w.program.executed, 2u);
}

}  // namespace
}  // namespace iwarp::rpc::test
