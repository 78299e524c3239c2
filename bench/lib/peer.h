// One end of a connection of a benchmark of several processes, and what these tell each other about it.
#pragma once

#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/memory_region.h"

namespace iwarp::bench {

using namespace std::chrono_literals;

// Memory that a peer may reach, and the port to reach it by.
struct Target {
  std::uint64_t to = 0;
  std::uint32_t stag = 0;
  std::uint16_t port = 0;
};

[[noreturn]] inline void die(const char* what) {
  std::fprintf(stderr, "bench: %s\n", what);
  std::_Exit(1);
}

inline void need(const Error& error) {
  if (error.code != Errc::kOk) die(error.why);
}

struct Peer {
  // `shared`: the completion queue; null: one of its own.
  explicit Peer(cm::Engine& e, std::size_t bytes = std::size_t{1} << 20, verbs::CompletionQueue* shared = nullptr)
      : engine(e), pd(e.context()), cq(4096, &e), memory(bytes) {
    auto made = verbs::MemoryRegion::register_memory(
        pd, memory, {.access = ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite | ddp::Access::kRemoteRead});
    if (!made) die(made.error().why);
    mr = std::move(made).value();
    stream::Options depths;
    depths.sq_depth = depths.rq_depth = 512;
    qp = std::make_shared<verbs::QueuePair>(
        pd, verbs::QueuePair::Options{shared != nullptr ? shared : &cq, shared != nullptr ? shared : &cq, depths});
  }
  ~Peer() { qp->abort(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] Target target(std::uint16_t port = 0) const {
    return {mr.base_to(), static_cast<std::uint32_t>(mr.stag()), port};
  }
  void connect(const Target& server) {
    cm::ConnectOptions options;
    options.host = "127.0.0.1";
    options.port = server.port;
    const Target own = target();
    options.private_data.resize(sizeof own);
    std::memcpy(options.private_data.data(), &own, sizeof own);
    auto future = cm::async_connect(engine, qp, options, cm::as_error(boost::asio::use_future));
    if (!engine.wait_for(future, 20s)) die("no connection");
    auto [error, c] = future.get();
    need(error);
    connection = std::move(c);
  }
  // Accepts one connection; the peer's memory.
  Target accept(cm::Listener& listener) {
    auto asked = listener.async_accept(cm::as_error(boost::asio::use_future));
    if (!engine.wait_for(asked, 20s)) die("nobody connects");
    auto [error, request] = asked.get();
    need(error);
    Target peer;
    if (request->private_data().size() == sizeof peer) std::memcpy(&peer, request->private_data().data(), sizeof peer);
    auto future = request->async_accept(qp, {}, cm::as_error(boost::asio::use_future));
    if (!engine.wait_for(future, 20s)) die("no connection");
    auto [failed, c] = future.get();
    need(failed);
    connection = std::move(c);
    return peer;
  }
  [[nodiscard]] verbs::SendWr wr(verbs::SendOp op, std::uint32_t length, const Target& peer) const {
    verbs::SendWr w{.op = op, .sges = verbs::Sge{mr.memory().data(), length, mr.stag()}};
    w.remote_stag = Stag{peer.stag};
    w.remote_to = peer.to;
    return w;
  }
  // Keeps `depth` of these on their way for ever.
  [[noreturn]] void keep_posting(const std::vector<verbs::SendWr>& list, std::size_t depth) {
    std::size_t out = 0;
    for (;;) {
      for (; out + list.size() <= depth; out += list.size()) {
        if (!qp->post_send(list).ok()) die("cannot post");
      }
      std::array<verbs::Completion, 64> some;
      (void)cq.wait_for(1s);
      const std::size_t n = cq.poll(some);
      for (std::size_t i = 0; i < n; ++i) {
        if (some[i].status != Errc::kOk) std::_Exit(0);
      }
      out -= n;
    }
  }

  cm::Engine& engine;
  verbs::ProtectionDomain pd;
  verbs::CompletionQueue cq;
  std::vector<std::byte> memory;
  verbs::MemoryRegion mr;
  std::shared_ptr<verbs::QueuePair> qp;
  std::shared_ptr<cm::Connection> connection;
};

inline std::unique_ptr<cm::Listener> listen(cm::Engine& engine) {
  cm::ListenOptions options;
  options.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
  auto made = cm::Listener::listen(engine, options);
  if (!made) die(made.error().why);
  return std::move(made).value();
}

}  // namespace iwarp::bench
