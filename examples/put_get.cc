// One-sided access to memory that a server has advertised: `put_get server [PORT]` offers 4096 octets to one client and
// prints what they hold when the client says so; `put_get HOST PORT TEXT [OFFSET]` writes TEXT there, reads it back,
// and says so. OFFSET may lie beyond the memory: the server ends the connection then, and the client tells why (and
// returns 1).
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "iwarp/iwarp.h"

using boost::asio::use_future;

// What the server tells in its private data: where its memory is.
struct Advertisement {
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;

  [[nodiscard]] std::vector<std::byte> encode() const {
    std::vector<std::byte> octets(16);
    iwarp::WriteCursor out(octets);
    out.be(stag);
    out.be(offset);
    out.be(length);
    return octets;
  }
  static Advertisement decode(iwarp::ConstBytes octets) {
    iwarp::ReadCursor in(octets);
    Advertisement a;
    a.stag = in.be<std::uint32_t>();
    a.offset = in.be<std::uint64_t>();
    a.length = in.be<std::uint32_t>();
    if (!in.ok()) throw std::runtime_error("the server advertises nothing");
    return a;
  }
};

// The next completion, which must be a success.
iwarp::Completion next(iwarp::CompletionQueue& cq) {
  iwarp::Completion done;
  while (cq.poll({&done, 1}) == 0) {
    if (!cq.wait_for(std::chrono::seconds(60))) throw std::runtime_error("no completion within 60 s");
  }
  if (done.status != iwarp::Errc::kOk) iwarp::throw_error(iwarp::make_error(done.status));
  return done;
}

void serve(iwarp::Engine& engine, std::uint16_t port) {
  using iwarp::Access;
  const auto listener = iwarp::Listener::listen(engine, {.endpoint = {boost::asio::ip::tcp::v4(), port}}).value();
  std::printf("listening on port %u\n", listener->local().port());
  std::fflush(stdout);
  const auto request = listener->async_accept(use_future).get();

  const iwarp::ProtectionDomain pd(engine.context());
  iwarp::CompletionQueue cq(engine, 8);
  std::string memory(4096, '\0');
  const auto region =
      iwarp::MemoryRegion::register_memory(pd, std::as_writable_bytes(std::span(memory)),
                                           {.access = Access::kRemoteWrite | Access::kRemoteRead, .base_to = 0})
          .value();
  auto link = iwarp::Link::make(pd, {&cq, &cq, {}}).value();
  link->post_recv(iwarp::RecvWr{}).value();  // for the client's message, which has no octets
  const Advertisement here{raw(region.stag()), region.base_to(), static_cast<std::uint32_t>(memory.size())};
  const auto connection = link.async_accept(*request, {.private_data = here.encode()}, use_future).get();

  iwarp::Completion done;
  if (cq.wait_for(std::chrono::seconds(60)) && cq.poll({&done, 1}) == 1 && done.status == iwarp::Errc::kOk)
    std::printf("the memory holds: %s\n", memory.c_str());
  const iwarp::Disconnected how = connection->async_wait_disconnected(use_future).get();
  std::printf("the connection ended: %s\n", how.reason.why);
}

// Whether all went well.
bool put_and_get(iwarp::Engine& engine, const iwarp::ConnectOptions& server, const std::string& text,
                 std::uint64_t offset) {
  const iwarp::ProtectionDomain pd(engine.context());
  iwarp::CompletionQueue cq(engine, 8);
  std::string copy(text.size(), '\0');
  const auto source = iwarp::MemoryRegion::register_read_only(pd, std::as_bytes(std::span(text))).value();
  const auto sink = iwarp::MemoryRegion::register_memory(pd, std::as_writable_bytes(std::span(copy)), {}).value();
  auto link = iwarp::Link::make(pd, {&cq, &cq, {}}).value();
  const auto connection = link.async_connect(engine, server, use_future).get();
  const auto there = Advertisement::decode(connection->private_data());
  std::printf("the server offers %u octets\n", there.length);

  bool well = true;
  try {
    iwarp::SendWr work{.op = iwarp::SendOp::kWrite, .sges = source.sge()};
    work.remote_stag = iwarp::Stag{there.stag};
    work.remote_to = there.offset + offset;
    link->post_send(work).value();
    (void)next(cq);  // the Write has left; that it arrived, only an answer tells

    work.op = iwarp::SendOp::kRead;
    work.sges = sink.sge();
    link->post_send(work).value();
    (void)next(cq);
    std::printf("read back: %s\n", copy.c_str());

    link->post_send(iwarp::SendWr{}).value();  // without octets: "look at your memory"
    (void)next(cq);
    connection->disconnect();
  } catch (const std::system_error& e) {
    std::printf("failed: %s\n", e.what());
    well = false;
  }
  const iwarp::Disconnected how = connection->async_wait_disconnected(use_future).get();
  std::printf("the connection ended: %s\n", how.reason.why);
  if (how.received) std::printf("the server said: %s\n", how.received->to_string().c_str());
  return well;
}

int main(int argc, char** argv) try {
  if (argc < 2 || (argc < 4 && std::string(argv[1]) != "server")) {
    std::fprintf(stderr, "usage: put_get server [PORT] | put_get HOST PORT TEXT [OFFSET]\n");
    return 2;
  }
  iwarp::Engine engine;
  const bool server = std::string(argv[1]) == "server";
  const auto port = static_cast<std::uint16_t>(argc > 2 ? std::stoi(argv[2]) : 0);
  if (server) {
    serve(engine, port);
    return 0;
  }
  return put_and_get(engine, {.host = argv[1], .port = port}, argv[3], argc > 4 ? std::stoul(argv[4]) : 0) ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "put_get: %s\n", e.what());
  return 1;
}
