// A Requester on one end, and on the other a server played by the test: raw messages out, raw headers in.
#pragma once

#include "iwarp/rpcrdma/requester.h"
#include "tests/rpcrdma/fake_endpoint.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {

class RequesterTest : public ::testing::Test {
 protected:
  void start(RequesterOptions options = {}, std::optional<BufferPool::Options> pool_opts = std::nullopt,
             const PrivateData& server = {false, 4096, 4096}) {
    server_.raw = true;
    FakeEndpoint::join(client_, server_);
    pool_ = std::make_unique<BufferPool>(client_, pool_opts.value_or(pool_options(options)));
    requester_ = std::make_unique<Requester>(client_, *pool_, negotiate(private_data(options), server), options);
    client_.deliver = [this](const Completion& c) { requester_->on_completion(c); };
    ASSERT_TRUE(requester_->start().ok());
  }
  void run() { test::run(client_, server_); }
  Result<void> call(const Bytes& message) {
    return requester_->call(to_buffer(*pool_, message, BufferPool::Purpose::kCall), now_);
  }
  void answer(const Header& h, const Bytes& payload = {}, std::optional<Stag> invalidated = std::nullopt) {
    client_.receive(encode(h, payload), invalidated);
  }
  Decoded received() {
    run();
    if (server_.inbox.empty()) throw std::runtime_error("server received nothing");
    const Bytes m = server_.inbox.front();
    server_.inbox.erase(server_.inbox.begin());
    return decode(m);
  }
  bool nothing_received() {
    run();
    return server_.inbox.empty();
  }
  // The server writes into the Reply chunk it was offered.
  void write_remote(const Segment& to, const Bytes& data) {
    auto from = pool_of_server_.acquire(data.size(), BufferPool::Purpose::kReply);
    ASSERT_TRUE(from);
    std::copy(data.begin(), data.end(), from->bytes().begin());
    const LocalSlice slice = from->slice();
    ASSERT_TRUE(server_.post_write(1, {&slice, 1}, to.handle, to.offset).ok());
    run();
  }
  void expect_reply(const Bytes& expected, bool in_chunk = false) {
    auto reply = next<Requester::ReplyReceived>(*requester_);
    ASSERT_TRUE(reply);
    EXPECT_EQ(to_bytes(reply->message.bytes()), expected);
    EXPECT_EQ(reply->in_reply_chunk, in_chunk);
    EXPECT_GE(reply->message.headroom(), kHeadroomBytes);
  }
  void TearDown() override {
    if (!requester_) return;
    client_.disconnect();
    while (requester_->poll_event()) {
    }
    requester_.reset();
    for (std::size_t i = 0; i < BufferPool::kPurposes; ++i) {
      EXPECT_EQ(pool_->in_use_bytes(static_cast<BufferPool::Purpose>(i)), 0u) << "leaked purpose " << i;
    }
    pool_.reset();
  }

  TimePoint now_{};
  FakeEndpoint client_{0x100};
  FakeEndpoint server_{0x900};
  BufferPool pool_of_server_{server_, {}};
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Requester> requester_;
};

}  // namespace iwarp::rpcrdma::test
