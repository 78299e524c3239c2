// An ONC RPC program over RPC-over-RDMA version 1: `rpc_server [PORT]`. Program 0x20000042, version 1: procedure 0 does
// nothing, procedure 1 adds two unsigned numbers. rpc_client calls it.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <string>

#include "iwarp/iwarp.h"

namespace rpc = iwarp::rpcrdma;
using boost::asio::awaitable;
using boost::asio::use_awaitable;

// The Reply to a Call, a whole RPC message.
std::vector<std::byte> answer(std::uint32_t xid, iwarp::ConstBytes message) {
  const auto error = [&](rpc::AcceptStat stat) {
    const auto reply = rpc::make_error_reply(xid, stat);
    return std::vector<std::byte>(reply.begin(), reply.end());
  };
  const auto call = rpc::RpcCall::parse(message);
  if (!call) return error(rpc::AcceptStat::kGarbageArgs);
  if (call->program != 0x20000042 || call->version != 1) return error(rpc::AcceptStat::kProgUnavail);
  if (call->procedure == 0) return error(rpc::AcceptStat::kSuccess);  // a Reply without results
  if (call->procedure != 1) return error(rpc::AcceptStat::kProcUnavail);

  iwarp::ReadCursor arguments(message.subspan(call->arguments_offset));
  const auto a = arguments.be<std::uint32_t>();
  const auto b = arguments.be<std::uint32_t>();
  if (!arguments.ok()) return error(rpc::AcceptStat::kGarbageArgs);
  std::vector<std::byte> reply = error(rpc::AcceptStat::kSuccess);
  reply.resize(reply.size() + 4);
  iwarp::store_be(std::span(reply).last(4), a + b);
  return reply;
}

awaitable<void> serve(iwarp::Engine& engine, std::unique_ptr<iwarp::ConnectRequest> request) {
  const rpc::ResponderOptions options{.credits = 8, .enforce_binding = false};
  iwarp::StreamOptions depths;
  depths.sq_depth = 128;
  depths.rq_depth = 256;
  const iwarp::ProtectionDomain pd(engine.context());
  iwarp::CompletionQueue cq(engine, depths.sq_depth + depths.rq_depth);
  const auto qp = std::make_shared<iwarp::QueuePair>(pd, iwarp::QueuePair::Options{&cq, &cq, depths});
  rpc::VerbsEndpoint endpoint(qp, {.send_queue_depth = depths.sq_depth, .receive_queue_depth = depths.rq_depth});
  rpc::BufferPool pool(endpoint, rpc::pool_options(options));
  const auto announced = rpc::private_data(options);
  rpc::Responder responder(endpoint, pool, rpc::negotiate(rpc::PrivateData::parse(request->private_data()), announced),
                           options);
  iwarp::Link link(qp);  // ends first: then nobody uses the memory of the pool
  responder.start().value();
  const auto octets = announced.encode();
  const iwarp::ConnectRequest::AcceptOptions mpa{.private_data = {octets.begin(), octets.end()}};
  co_await link.async_accept(*request, mpa, use_awaitable);

  std::array<iwarp::Completion, 32> done;
  for (;;) {
    const std::size_t n = co_await cq.async_poll(done, use_awaitable);
    for (const iwarp::Completion& c : std::span(done).first(n)) {
      if (c.status != iwarp::Errc::kOk) co_return;  // the client has gone
      responder.on_completion(rpc::VerbsEndpoint::translate(c));
    }
    while (auto event = responder.poll_event()) {
      if (std::holds_alternative<rpc::Responder::MustClose>(*event)) co_return;
      auto* const call = std::get_if<rpc::Responder::CallReceived>(&*event);
      if (call == nullptr) continue;
      const auto reply = answer(call->xid, call->message.bytes());
      auto buffer = pool.acquire(reply.size(), rpc::BufferPool::Purpose::kReply);
      if (!buffer) co_return;  // cannot be: one Reply at a time is small
      std::copy(reply.begin(), reply.end(), buffer->bytes().begin());
      responder.reply(call->token, std::move(*buffer)).value();
    }
    responder.progress();
    endpoint.flush().value();
  }
}

void report(const std::exception_ptr& failure) try {
  if (failure) std::rethrow_exception(failure);
} catch (const std::exception& e) {
  std::fprintf(stderr, "rpc_server: %s\n", e.what());
}

awaitable<void> listen(iwarp::Engine& engine, std::uint16_t port) {
  const auto listener = iwarp::Listener::listen(engine, {.endpoint = {boost::asio::ip::tcp::v4(), port}}).value();
  std::printf("listening on port %u\n", listener->local().port());
  std::fflush(stdout);
  for (;;) co_spawn(engine.get_executor(), serve(engine, co_await listener->async_accept(use_awaitable)), report);
}

int main(int argc, char** argv) {
  boost::asio::io_context io;
  iwarp::Engine engine(io);
  co_spawn(io, listen(engine, static_cast<std::uint16_t>(argc > 1 ? std::stoi(argv[1]) : 0)), report);
  io.run();
}
