// Echo over Sends, with coroutines: `echo server PORT` returns what clients send, `echo HOST PORT TEXT` is a client.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iostream>

#include "iwarp/iwarp.h"
using namespace iwarp;
using boost::asio::awaitable, boost::asio::detached, boost::asio::use_awaitable;
struct End {  // of one connection; the link goes first, and then nobody uses the others
  explicit End(Engine& e) : pd(e.context()), cq(e, 8) { link->post_recv({.sges = region.sge(0, 2048)}).value(); }
  ProtectionDomain pd;
  CompletionQueue cq;
  std::array<std::byte, 4096> buffer{};
  MemoryRegion region = MemoryRegion::register_memory(pd, buffer, {}).value();
  Link link = Link::make(pd, {&cq, &cq, {}}).value();
};

awaitable<void> serve(Engine& engine, std::unique_ptr<ConnectRequest> request) {
  End end(engine);
  co_await end.link.async_accept(*request, {}, use_awaitable);
  for (;;) {  // in: the front of the buffer; out: its second half, free again as clients wait for each answer
    const Completion done = co_await end.cq.async_poll_one(use_awaitable);
    if (done.status != Errc::kOk) co_return;  // the client has gone
    std::copy_n(end.buffer.begin(), done.byte_len, end.buffer.begin() + 2048);
    end.link->post_recv({.sges = end.region.sge(0, 2048)}).value();  // before the client may send again
    end.link->post_send({.sges = end.region.sge(2048, done.byte_len), .signaled = false}).value();
  }
}

awaitable<void> listen(Engine& engine, std::uint16_t port) {
  const auto listener = Listener::listen(engine, {.endpoint = {boost::asio::ip::tcp::v4(), port}}).value();
  std::cout << "listening on port " << listener->local().port() << std::endl;
  for (;;) co_spawn(engine.get_executor(), serve(engine, co_await listener->async_accept(use_awaitable)), detached);
}

awaitable<void> ask(Engine& engine, ConnectOptions server, std::string text) {
  End end(engine);
  const auto question = MemoryRegion::register_read_only(end.pd, std::as_bytes(std::span(text))).value();
  const auto connection = co_await end.link.async_connect(engine, server, use_awaitable);
  end.link->post_send({.sges = question.sge(), .signaled = false}).value();
  const Completion answer = co_await end.cq.async_poll_one(use_awaitable);
  if (answer.status != Errc::kOk) throw_error(make_error(answer.status));
  std::cout << std::string_view(reinterpret_cast<const char*>(end.buffer.data()), answer.byte_len) << std::endl;
  connection->disconnect();
  co_await connection->async_wait_disconnected(use_awaitable);
}

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4) return std::cerr << "usage: echo server PORT | echo HOST PORT TEXT\n", 2;
  boost::asio::io_context io;
  Engine engine(io);
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
  co_spawn(io, argc == 4 ? ask(engine, {.host = argv[1], .port = port}, argv[3]) : listen(engine, port),
           [](const std::exception_ptr& failed) { failed ? std::rethrow_exception(failed) : void(); });
  io.run();
} catch (const std::exception& e) {
  std::cerr << "echo: " << e.what() << std::endl;
  return 1;
}
