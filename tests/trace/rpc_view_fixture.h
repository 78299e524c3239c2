// What the tests of RpcView share: messages, and a view whose records come as text.
#pragma once

#include <gmock/gmock.h>

#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/trace/rpc_view.h"
#include "tests/rpcrdma/wire_vectors.h"

namespace iwarp::trace::test_view {

using std::chrono::microseconds;
using test::Bytes;
using test::Xdr;

inline constexpr std::uint32_t kXid = test::kTestXid;
inline constexpr auto kTx = Direction::kTx;
inline constexpr auto kRx = Direction::kRx;

inline Message send(Bytes bytes) {
  Message m;
  m.op = rdmap::Opcode::kSend;
  m.length = bytes.size();
  m.head = std::move(bytes);
  return m;
}
inline Message tagged(rdmap::Opcode op, std::uint32_t stag, std::uint64_t to, Bytes bytes) {
  Message m = send(std::move(bytes));
  m.op = op;
  m.stag = Stag{stag};
  m.to = to;
  return m;
}
inline Message header(const rpcrdma::Header& h, const Bytes& payload = {}) {
  Bytes out(h.encoded_size());
  EXPECT_EQ(h.write_to(out), out.size());
  out.insert(out.end(), payload.begin(), payload.end());
  return send(std::move(out));
}
// RDMA_MSG without chunks around an RPC message.
inline Message rdma_msg(const Xdr& rpc, std::uint32_t xid = kXid) {
  return send(Xdr().words({xid, 1, 32, 0, 0, 0, 0}).raw(rpc.bytes()).bytes());
}

class RpcViewTest : public ::testing::Test {
 protected:
  explicit RpcViewTest(RpcGuess guess = RpcGuess::kYes) : view_(options(guess)) {}
  static RpcViewOptions options(RpcGuess guess) {
    RpcViewOptions o;
    o.guess = guess;
    return o;
  }
  // Each message has a frame of its own, 10, 11, ..., a millisecond after the one before.
  When next() {
    ++frame_;
    return {microseconds(1000 * frame_), frame_};
  }
  std::vector<std::string> texts(const RpcView::Events& events) {
    std::vector<std::string> out;
    malformed_ = error_ = false;
    for (const RpcView::Event& e : events) {
      out.push_back(e.record.pdu.str());
      malformed_ = malformed_ || e.malformed;
      error_ = error_ || e.record.error;
    }
    return out;
  }
  std::vector<std::string> give(Direction d, const Message& m) { return texts(view_.on_send(d, m, next())); }
  // What is said of the RPC message.
  std::string rpc(Direction d, const Message& m) {
    const auto all = give(d, m);
    return all.size() < 2 ? std::string() : all.back();
  }

  RpcView view_;
  std::uint64_t frame_ = 9;
  bool malformed_ = false, error_ = false;
};

}  // namespace iwarp::trace::test_view
