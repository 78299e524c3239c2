// Coroutines with time limits and error codes: `ping HOST PORT COUNT` sends COUNT messages to an echo server and waits
// for each answer, 10 s at most. A server that does not listen yet is tried again.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "iwarp/iwarp.h"

using boost::asio::as_tuple;
using boost::asio::awaitable;
using boost::asio::use_awaitable;
using namespace boost::asio::experimental::awaitable_operators;

// The next completion. Throws when there is none in time: the wait that loses is cancelled.
awaitable<iwarp::Completion> next(iwarp::CompletionQueue& cq) {
  boost::asio::steady_timer limit(cq.get_executor(), std::chrono::seconds(10));
  auto first = co_await (cq.async_poll_one(use_awaitable) || limit.async_wait(use_awaitable));
  if (first.index() != 0) throw std::runtime_error("no answer within 10 s");
  co_return std::get<0>(first);
}

awaitable<void> ping(iwarp::Engine& engine, iwarp::ConnectOptions server, int count) {
  const iwarp::ProtectionDomain pd(engine.context());
  iwarp::CompletionQueue cq(engine, 8);
  std::array<std::byte, 64> out{}, in{};
  const auto source = iwarp::MemoryRegion::register_read_only(pd, out).value();
  const auto sink = iwarp::MemoryRegion::register_memory(pd, in, {}).value();
  iwarp::Link link;
  std::shared_ptr<iwarp::Connection> connection;
  for (int attempt = 1; connection == nullptr; ++attempt) {
    link = iwarp::Link::make(pd, {&cq, &cq, {}}).value();  // a queue pair serves one attempt
    auto [ec, made] = co_await link.async_connect(engine, server, as_tuple(use_awaitable));
    connection = std::move(made);
    if (!ec) break;
    std::printf("attempt %d: %s\n", attempt, ec.message().c_str());
    if (ec != iwarp::Condition::kSystemFailure || attempt == 3) throw boost::system::system_error(ec);
    connection.reset();
    boost::asio::steady_timer pause(engine.get_executor(), std::chrono::milliseconds(200));
    co_await pause.async_wait(use_awaitable);
  }
  for (int i = 1; i <= count; ++i) {
    link->post_recv({.sges = sink.sge()}).value();
    link->post_send({.sges = source.sge(), .signaled = false}).value();
    const iwarp::Completion answer = co_await next(cq);
    if (answer.status != iwarp::Errc::kOk) iwarp::throw_error(iwarp::make_error(answer.status));
    std::printf("answer %d: %u octets\n", i, answer.byte_len);
  }
  connection->disconnect();
  const iwarp::Disconnected how = co_await connection->async_wait_disconnected(use_awaitable);
  std::printf("the connection ended: %s\n", how.reason.why);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: ping HOST PORT COUNT\n");
    return 2;
  }
  boost::asio::io_context io;
  iwarp::Engine engine(io);
  iwarp::ConnectOptions server{.host = argv[1], .port = static_cast<std::uint16_t>(std::atoi(argv[2]))};
  int status = 0;
  co_spawn(io, ping(engine, std::move(server), std::atoi(argv[3])), [&](const std::exception_ptr& failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "ping: %s\n", e.what());
      status = 1;
    }
  });
  io.run();
  return status;
}
