// A Responder on one end, and on the other a client played by the test: raw headers in, raw messages out.
#pragma once

#include "tests/rpcrdma/fake_endpoint.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {

class ResponderTest : public ::testing::Test {
 protected:
  // Call once, before anything else.
  void start(ResponderOptions options = {}, std::optional<BufferPool::Options> pool_opts = std::nullopt,
             const PrivateData& client = {true, 4096, 4096}) {
    client_.raw = true;
    FakeEndpoint::join(server_, client_);
    pool_ = std::make_unique<BufferPool>(server_, pool_opts.value_or(pool_options(options)));
    responder_ = std::make_unique<Responder>(server_, *pool_, negotiate(client, private_data(options)), options);
    server_.deliver = [this](const Completion& c) { responder_->on_completion(c); };
    ASSERT_TRUE(responder_->start().ok());
  }
  void send(const Header& h, const Bytes& payload = {}) { server_.receive(encode(h, payload)); }
  void run() { test::run(server_, client_); }

  std::optional<Responder::CallReceived> next_call() { return next<Responder::CallReceived>(*responder_); }
  // The next Call, which must be `expected`.
  CallToken expect_call(const Bytes& expected) {
    run();
    auto call = next_call();
    if (!call) {
      ADD_FAILURE() << "no Call";
      return {};
    }
    EXPECT_EQ(to_bytes(call->message.bytes()), expected);
    EXPECT_GE(call->message.headroom(), kHeadroomBytes);
    return call->token;
  }
  void reply(CallToken token, const Bytes& message) {
    ASSERT_TRUE(responder_->reply(token, to_buffer(*pool_, message)).ok());
    run();
  }
  // The oldest message that reached the client.
  Decoded received() {
    run();
    if (client_.inbox.empty()) throw std::runtime_error("client received nothing");
    const Bytes m = client_.inbox.front();
    client_.inbox.erase(client_.inbox.begin());
    last_invalidated_ = client_.inbox_invalidated.front();
    client_.inbox_invalidated.erase(client_.inbox_invalidated.begin());
    return decode(m);
  }
  void expect_err_chunk(std::uint32_t xid) {
    const Decoded d = received();
    EXPECT_EQ(d.header.proc, Proc::kError);
    EXPECT_EQ(d.header.error.code, HeaderError::kChunk);
    EXPECT_EQ(d.header.xid, xid);
    EXPECT_FALSE(last_invalidated_.has_value());
    EXPECT_FALSE(server_.broken);
  }
  std::size_t count(OpKind op) const {
    std::size_t n = 0;
    for (const auto& p : server_.history) n += p.op == op ? 1 : 0;
    return n;
  }

  void TearDown() override {
    if (!responder_) return;
    server_.disconnect();
    while (responder_->poll_event()) {
    }
    responder_.reset();
    for (std::size_t i = 0; i < BufferPool::kPurposes; ++i) {
      EXPECT_EQ(pool_->in_use_bytes(static_cast<BufferPool::Purpose>(i)), 0u) << "leaked purpose " << i;
    }
    pool_.reset();
    EXPECT_TRUE(server_.regions.empty());
  }

  FakeEndpoint server_{0x100};
  FakeEndpoint client_{0x900};
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Responder> responder_;
  std::optional<Stag> last_invalidated_;
  TimePoint now_{std::chrono::seconds(1000)};
};

}  // namespace iwarp::rpcrdma::test
