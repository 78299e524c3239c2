#include "tests/gateway/rpc_server.h"

#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::gateway::test {

Bytes serve(const Bytes& call) {
  namespace samples = rpcrdma::test;
  const auto head = rpcrdma::RpcCall::parse(call);
  if (!head) return {};
  const auto size = load_be<std::uint32_t>(ConstBytes(call).last(4));
  switch (head->program == samples::kNfs && head->version == 3 ? head->procedure : 0) {
    case 6:
      return samples::read_reply(head->xid, iwarp::test::pattern(size, head->xid));
    case 7:
      return samples::write_reply(head->xid);
    case 16:
      return samples::rpc_reply(head->xid, iwarp::test::pattern(size, head->xid));
    default:
      return samples::rpc_reply(head->xid);
  }
}

RpcServer::RpcServer(Loop& loop, const std::string& address, std::uint16_t port)
    : acceptor_(loop.io, {boost::asio::ip::make_address(address), port}), local_(acceptor_.local_endpoint()) {
  accept();
}

RpcServer::~RpcServer() {
  shut_down();
}

void RpcServer::shut_down() {
  stop_listening();
  for (const auto& peer : peers) peer->reset();
}

void RpcServer::stop_listening() {
  boost::system::error_code ec;
  acceptor_.close(ec);
}

void RpcServer::accept() {
  acceptor_.async_accept([this](boost::system::error_code ec, tcp::socket socket) {
    if (ec) return;
    auto peer = std::make_shared<TcpPeer>(std::move(socket));
    peer->on_record = [this](TcpPeer& from, Bytes record) {
      if (keep_calls) calls.push_back(record);
      if (on_call) return on_call(from, record);
      from.send(serve(record));
    };
    if (start_paused) peer->pause();
    peers.push_back(peer);
    peer->start();
    accept();
  });
}

}  // namespace iwarp::gateway::test
