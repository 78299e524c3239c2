#include "iwarp/cm/socket_io.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/cm/raw_tcp.h"
#include "tests/support/eventually.h"
#include "tests/support/hex.h"

namespace iwarp::cm {
namespace {

using test::Bytes;
using test::pattern;

class SocketIo : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0); }
  void TearDown() override {
    for (const int fd : ends_) ::close(fd);
  }
  int left() const { return ends_[0]; }
  int right() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(EndOf, TellsThePeersWordFromTcpsOwn) {
  const auto of = [](int error) { return end_of({.error = error}); };
  EXPECT_EQ(of(0), stream::TcpEnd::kFin);
  for (const int error : {ECONNRESET, EPIPE}) EXPECT_EQ(of(error), stream::TcpEnd::kReset) << error;
  for (const int error : {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH})
    EXPECT_EQ(of(error), stream::TcpEnd::kSilence) << error;
  for (const int error : {ECONNREFUSED, EACCES, EFAULT, ENOMEM}) EXPECT_FALSE(of(error)) << error;
  EXPECT_STREQ(cause_of({.error = ECONNREFUSED}), "Connection refused");
  EXPECT_STREQ(cause_of({.error = 123456}), "TCP failed");
}

TEST_F(SocketIo, MovesPiecesInOrder) {
  const Bytes out = pattern(100);
  const ConstBytes all = out;
  for (const std::size_t cut : {std::size_t{100}, std::size_t{1}, std::size_t{60}}) {
    const std::array<ConstBytes, 2> pieces{all.first(cut), all.subspan(cut)};
    const Transfer sent = send_pieces(left(), std::span(pieces).first(cut == 100 ? 1 : 2));
    EXPECT_EQ(sent.n, 100U);
    EXPECT_TRUE(sent.whole);
    Bytes in(120);
    const std::array<MutBytes, 3> room{MutBytes(in).first(10), MutBytes(in).subspan(10, 50), MutBytes(in).subspan(60)};
    const Transfer got = receive_pieces(right(), room);
    EXPECT_EQ(got.n, 100U);
    EXPECT_FALSE(got.whole);
    EXPECT_EQ(got.error, 0);
    in.resize(100);
    EXPECT_EQ(in, out);
  }
}

TEST_F(SocketIo, SaysWhenThereIsNothingYet) {
  Bytes in(8);
  const std::array<MutBytes, 1> one{in};
  const Transfer got = receive_pieces(right(), one);
  EXPECT_TRUE(got.would_block());
  EXPECT_EQ(got.n, 0U);
}

TEST_F(SocketIo, SaysWhatWasTakenBeforeTheSocketWasFull) {
  const Bytes out(4 << 20);
  const std::array<ConstBytes, 2> pieces{out, out};
  const Transfer first = send_pieces(left(), pieces);
  EXPECT_GT(first.n, 0U);
  EXPECT_LT(first.n, 2 * out.size());
  EXPECT_FALSE(first.whole);
  EXPECT_TRUE(send_pieces(left(), pieces).would_block());
}

TEST_F(SocketIo, EndOfStreamIsNoError) {
  ASSERT_EQ(::shutdown(left(), SHUT_WR), 0);
  Bytes in(8);
  const std::array<MutBytes, 1> one{in};
  const Transfer got = receive_pieces(right(), one);
  EXPECT_EQ(got.n, 0U);
  EXPECT_EQ(got.error, 0);
}

// Without SIGPIPE, which would end this process.
TEST_F(SocketIo, NobodyReadsAnyMore) {
  ASSERT_EQ(::shutdown(right(), SHUT_RD), 0);
  const Bytes out(8);
  const std::array<ConstBytes, 1> one{out};
  const Transfer sent = send_pieces(left(), one);
  EXPECT_EQ(sent.error, EPIPE);
  EXPECT_FALSE(sent.would_block());
}

TEST(EndBehind, SaysWhatLiesBehindWhatIsNotRead) {
  for (const bool reset : {false, true}) {
    test::RawListener listener;
    test::RawTcp peer = test::RawTcp::connect(listener.port());
    const test::RawTcp end = listener.accept();
    ASSERT_TRUE(peer.send(pattern(100)));
    EXPECT_FALSE(end_behind(end.fd()).fin);
    EXPECT_FALSE(end_behind(end.fd()).hung_up);
    reset ? peer.reset() : peer.shutdown_write();
    ASSERT_TRUE(test::eventually([&] { return end_behind(end.fd()).fin; }));
    EXPECT_EQ(end_behind(end.fd()).hung_up, reset);
  }
}

TEST(EndBehind, SaysWhyItIsOver) {
  test::RawListener listener;
  test::RawTcp peer = test::RawTcp::connect(listener.port());
  const test::RawTcp end = listener.accept();
  peer.reset();
  int error = 0;
  ASSERT_TRUE(test::eventually([&] { return (error = end_behind(end.fd()).error) != 0; }));
  EXPECT_EQ(error, ECONNRESET);
}

TEST_F(SocketIo, LeavesOutWhatOneCallCannotTake) {
  const Bytes out = pattern(kMaxPieces + 5);
  std::vector<ConstBytes> pieces;
  for (std::size_t i = 0; i < out.size(); ++i) pieces.push_back(ConstBytes(out).subspan(i, 1));
  EXPECT_EQ(send_pieces(left(), pieces).n, kMaxPieces);
}

}  // namespace
}  // namespace iwarp::cm
