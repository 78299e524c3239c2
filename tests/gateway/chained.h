// Both fronts in a chain, between a TCP client and a TCP server that the test drives.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "iwarp/gateway/tcp_front.h"
#include "tests/gateway/front_fixture.h"

namespace iwarp::gateway::test {

// TCP client - TcpFront - RDMA - RdmaFront - TCP server.
class Chained : public FrontFixture {
 protected:
  ~Chained() override { tcp_front.reset(); }
  void SetUp() override {
    open();
    open_tcp(front->local());
  }
  void open_tcp(const tcp::endpoint& to) {
    options.insecure_ports = clients_are_insecure;
    auto opened = TcpFront::open(client_engine, {boost::asio::ip::make_address("127.0.0.1"), 0},
                                 {to.address().to_string(), to.port()}, options, process_for(client_engine));
    ASSERT_TRUE(opened.ok());
    tcp_front = std::move(*opened);
  }
  std::shared_ptr<TcpPeer> tcp_client(const std::string& source = "127.0.0.1") {
    tcp::socket socket(loop.io);
    socket.open(tcp::v4());
    socket.bind({boost::asio::ip::make_address(source), 0});
    socket.connect(tcp_front->local());
    auto out = std::make_shared<TcpPeer>(std::move(socket));
    out->start();
    return out;
  }
  // Connected, and one Call answered: before that a client of RPC-over-RDMA has one credit only.
  std::shared_ptr<TcpPeer> warm_client() {
    auto c = tcp_client();
    c->send(samples::null_call(0xC01D));
    EXPECT_EQ(await(*c), samples::rpc_reply(0xC01D));
    return c;
  }
  Bytes await(TcpPeer& c) {
    const bool came = loop.until([&] { return !c.inbox.empty() || c.ended(); });
    EXPECT_TRUE(came && !c.inbox.empty()) << (c.ended() ? "connection ended" : "no answer");
    if (c.inbox.empty()) return {};
    Bytes out = std::move(c.inbox.front());
    c.inbox.pop_front();
    return out;
  }
  Stats::Messages tcp_messages(MessageKind kind) const { return tcp_front->snapshot().of(kind); }
  void expect_tcp_front_adds_up() const {
    const auto s = tcp_front->snapshot();
    for (const Stats::Messages& m : s.messages) EXPECT_EQ(m.received, m.forwarded + m.dropped_total());
  }

  std::unique_ptr<TcpFront> tcp_front;
  bool clients_are_insecure = true;  // as tcp_client() makes them
};

}  // namespace iwarp::gateway::test
