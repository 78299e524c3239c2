// Uses the installed package as a stranger would: two queue pairs of one process, joined by iWARP over loopback TCP,
// exchange a message. First with an engine that has a thread of its own, then with one that borrows an io_context: code
// of Asio that is part of the application then calls code of Asio that is part of the library. Where the package has
// SCTP, two more are joined by that.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/cm/link.h"
#include "iwarp/llp/lower_layer.h"
#include "iwarp/verbs/memory_region.h"

namespace {

using namespace iwarp;

template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().why);
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// One end: a registered buffer, and the link that reads and writes it as long as it lives. It ends with its End.
struct End {
  explicit End(cm::Engine& engine) : pd(engine.context()), cq(16, &engine) {
    link = need(cm::Link::make(pd, {&cq, &cq, {}}));
    mr = need(verbs::MemoryRegion::register_memory(pd, buffer, {}));
  }
  [[nodiscard]] verbs::Sge sge(std::size_t bytes) {
    return {buffer.data(), static_cast<std::uint32_t>(bytes), mr.stag()};
  }
  [[nodiscard]] verbs::Completion wait() {
    verbs::Completion c;
    while (cq.poll({&c, 1}) == 0) {
      if (!cq.wait_for(std::chrono::seconds(10))) throw std::runtime_error("no completion within 10 s");
    }
    if (c.status != Errc::kOk) throw std::runtime_error(name(c.status));
    return c;
  }

  verbs::ProtectionDomain pd;
  verbs::CompletionQueue cq;
  std::array<std::byte, 64> buffer{};
  verbs::MemoryRegion mr;
  cm::Link link;  // goes first, and nothing touches the others afterwards
};

void run(cm::Engine& engine) {
  using boost::asio::use_future;
  End server(engine), client(engine);
  need(server.link->post_recv({.wr_id = 1, .sges = server.sge(server.buffer.size())}));

  cm::ListenOptions listen;
  listen.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0};
  const auto listener = need(cm::Listener::listen(engine, listen));
  auto incoming = listener->async_accept(cm::as_error(use_future));

  cm::ConnectOptions to;
  to.host = "127.0.0.1";
  to.port = listener->local().port();
  auto connected = client.link.async_connect(engine, to, cm::as_error(use_future));
  auto [error, request] = incoming.get();
  if (error.code != Errc::kOk) throw std::runtime_error(error.why);
  auto accepted = server.link.async_accept(*request, {}, cm::as_error(use_future));

  const auto [client_error, connection] = connected.get();
  if (client_error.code != Errc::kOk) throw std::runtime_error(client_error.why);
  std::printf("%s\n", connection->to_string().c_str());

  const char text[] = "hello over iWARP";
  std::memcpy(client.buffer.data(), text, sizeof text);
  need(client.link->post_send({.wr_id = 2, .sges = client.sge(sizeof text)}));
  (void)client.wait();
  const verbs::Completion received = server.wait();
  std::printf("received %u octets: %s\n", received.byte_len, reinterpret_cast<const char*>(server.buffer.data()));
  if (received.byte_len != sizeof text || std::memcmp(server.buffer.data(), text, sizeof text) != 0)
    throw std::runtime_error("wrong data");
  if (std::get<0>(accepted.get()).code != Errc::kOk) throw std::runtime_error("accept failed");
}

void run_over_sctp(cm::Engine& engine) {
  using boost::asio::use_future;
  const auto layer = need(llp::LowerLayer::make(engine, llp::Kind::kSctp));
  cm::ListenOptions listen;
  listen.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0};
  const auto listener = need(layer->listen(listen));
  auto incoming = listener->async_accept(use_future);
  const verbs::ProtectionDomain pd(engine.context());
  cm::CompletionQueue cq(engine, 16);
  std::array<char, 32> text{"hello over SCTP"}, got{};
  const auto text_mr = need(verbs::MemoryRegion::register_memory(pd, std::as_writable_bytes(std::span(text)), {}));
  const auto got_mr = need(verbs::MemoryRegion::register_memory(pd, std::as_writable_bytes(std::span(got)), {}));
  const auto make = [&] {
    return std::make_shared<verbs::QueuePair>(pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq});
  };
  const auto passive = make(), active = make();
  need(passive->post_recv(
      {.wr_id = 1, .sges = {{reinterpret_cast<std::byte*>(got.data()), got.size(), got_mr.stag()}}}));
  cm::ConnectOptions to;
  to.host = "127.0.0.1";
  to.port = listener->local().port();
  auto connected = layer->async_connect(active, to, use_future);
  if (incoming.wait_for(std::chrono::seconds(20)) != std::future_status::ready) throw std::runtime_error("nobody came");
  auto accepted = incoming.get()->async_accept(passive, {}, use_future);
  const auto connection = connected.get();
  std::printf("%s\n", connection->to_string().c_str());
  const verbs::Sge all{reinterpret_cast<std::byte*>(text.data()), text.size(), text_mr.stag()};
  need(active->post_send({.wr_id = 2, .sges = {all}}));
  connection->disconnect();
  (void)accepted.get()->async_wait_disconnected(use_future).get();
  if (got != text) throw std::runtime_error("wrong data over SCTP");
  if (!layer->wait_closed(std::chrono::seconds(10))) throw std::runtime_error("an association is left");
}

}  // namespace

int main() {
  try {
    {
      cm::Engine engine;
      run(engine);
      if (llp::has(llp::Kind::kSctp)) run_over_sctp(engine);
    }
    boost::asio::io_context io;
    auto work = boost::asio::make_work_guard(io);
    const std::jthread runs([&io] { io.run(); });
    {
      cm::Engine engine(io);
      run(engine);
    }
    work.reset();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
