// Calls the program of rpc_server: `rpc_client HOST PORT A B` prints their sum.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "iwarp/iwarp.h"

namespace rpc = iwarp::rpcrdma;
using boost::asio::awaitable;
using boost::asio::use_awaitable;

// The sum out of a Reply, a whole RPC message.
std::uint32_t sum_of(iwarp::ConstBytes message) {
  const auto reply = rpc::RpcReply::parse(message).value();
  iwarp::ReadCursor results(message.subspan(reply.results_offset));
  const auto sum = results.be<std::uint32_t>();
  if (!reply.success() || !results.ok()) throw std::runtime_error("the server cannot add");
  return sum;
}

awaitable<std::uint32_t> add(iwarp::Engine& engine, iwarp::ConnectOptions server, std::uint32_t a, std::uint32_t b) {
  const rpc::RequesterOptions options{.credits = 8};
  iwarp::StreamOptions depths;
  depths.sq_depth = 128;
  depths.rq_depth = 256;
  const iwarp::ProtectionDomain pd(engine.context());
  iwarp::CompletionQueue cq(engine, depths.sq_depth + depths.rq_depth);
  const auto qp = std::make_shared<iwarp::QueuePair>(pd, iwarp::QueuePair::Options{&cq, &cq, depths});
  rpc::VerbsEndpoint endpoint(qp, {.send_queue_depth = depths.sq_depth, .receive_queue_depth = depths.rq_depth});
  rpc::BufferPool pool(endpoint, rpc::pool_options(options));
  const auto announced = rpc::private_data(options).encode();
  server.private_data = {announced.begin(), announced.end()};
  const auto connection = co_await iwarp::async_connect(engine, qp, server, use_awaitable);
  const auto limits = rpc::negotiate(rpc::private_data(options), rpc::PrivateData::parse(connection->private_data()));
  rpc::Requester requester(endpoint, pool, limits, options);
  const iwarp::Link link(qp);  // ends first: then nobody uses the memory of the pool
  requester.start().value();

  auto call = pool.acquire(48, rpc::BufferPool::Purpose::kCall);
  if (!call) throw std::runtime_error("no memory for a Call");
  iwarp::WriteCursor out(call->bytes());
  // xid, Call, RPC version, program, version, procedure, two times AUTH_NONE without octets, arguments
  for (const std::uint32_t word : {1U, 0U, 2U, 0x20000042U, 1U, 1U, 0U, 0U, 0U, 0U, a, b}) out.be(word);
  requester.call(std::move(*call), std::chrono::steady_clock::now()).value();
  endpoint.flush().value();

  std::array<iwarp::Completion, 32> done;
  for (;;) {
    const std::size_t n = co_await cq.async_poll(done, use_awaitable);
    for (const iwarp::Completion& c : std::span(done).first(n)) {
      requester.on_completion(rpc::VerbsEndpoint::translate(c));
      if (c.status != iwarp::Errc::kOk) throw std::runtime_error("the server has gone");
    }
    while (auto event = requester.poll_event()) {
      if (auto* reply = std::get_if<rpc::Requester::ReplyReceived>(&*event)) co_return sum_of(reply->message.bytes());
      throw std::runtime_error("the Call failed");
    }
    requester.progress();
    endpoint.flush().value();
  }
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  boost::asio::io_context io;
  iwarp::Engine engine(io);
  iwarp::ConnectOptions server{.host = argv[1], .port = static_cast<std::uint16_t>(std::stoi(argv[2]))};
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::stoul(argv[i])); };
  int status = 1;
  co_spawn(io, add(engine, std::move(server), number(3), number(4)),
           [&](const std::exception_ptr& failure, std::uint32_t sum) {
             try {
               if (failure) std::rethrow_exception(failure);
               std::printf("%u\n", sum);
               status = 0;
             } catch (const std::exception& e) {
               std::fprintf(stderr, "rpc_client: %s\n", e.what());
             }
           });
  io.run();
  return status;
}
