// An RPC-over-RDMA client driven by hand: the test says what is exposed and what is in every header, like a Linux
// client or like a hostile one.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "iwarp/cm/connector.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/verbs/memory_region.h"
#include "tests/gateway/loop.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::gateway::test {

using iwarp::test::Bytes;
using rpcrdma::test::Decoded;

// Memory that the peer may reach. The content is what the peer sees, or has written.
struct Exposed {
  Bytes memory;
  verbs::MemoryRegion region;
  rpcrdma::Segment segment;
  std::shared_ptr<Exposed> same_memory_as{};
};

class RdmaClient {
 public:
  struct Options {
    mpa::Policy policy{};
    std::optional<boost::asio::ip::address> source{};
    bool announce = true;  // RFC 8797 private data: 4096 octets, remote invalidation, as Linux sends it
    std::size_t receives = 96;
  };

  RdmaClient(Loop& loop, cm::Engine& engine);
  RdmaClient(Loop& loop, cm::Engine& engine, Options options);
  ~RdmaClient();
  RdmaClient(const RdmaClient&) = delete;
  RdmaClient& operator=(const RdmaClient&) = delete;

  // Runs the loop until established (true) or not (false: see error()).
  [[nodiscard]] bool connect(const boost::asio::ip::tcp::endpoint& to);
  void begin_connect(const boost::asio::ip::tcp::endpoint& to);
  [[nodiscard]] bool decided() const { return error_.has_value(); }
  [[nodiscard]] const Error& error() const { return *error_; }
  [[nodiscard]] cm::Connection& connection() { return *connection_; }

  // `content` under a fresh STag; remote read (a Call) or remote write (room for a Reply).
  std::shared_ptr<Exposed> expose(Bytes content, ddp::Access access);
  std::shared_ptr<Exposed> expose_for_read(const Bytes& content) { return expose(content, ddp::Access::kRemoteRead); }
  // The same memory under one more STag: each Call needs its own, because the Reply may invalidate it.
  std::shared_ptr<Exposed> expose_again(const std::shared_ptr<Exposed>& other);
  std::shared_ptr<Exposed> expose_for_write(std::size_t bytes) {
    return expose(Bytes(bytes), ddp::Access::kRemoteWrite | ddp::Access::kLocalWrite);
  }

  // One RDMA Send of these octets.
  void send(const Bytes& message);
  void send(const rpcrdma::Header& header, const Bytes& payload = {}) { send(rpcrdma::test::encode(header, payload)); }
  // An RPC message in line.
  void call(const Bytes& rpc);
  // Messages received and not yet taken, whole.
  std::deque<Bytes> inbox;
  // Takes the message of that xid out of the inbox.
  [[nodiscard]] std::optional<Decoded> take(std::uint32_t xid);
  // Waits for it. An empty Decoded and a failure if it does not come.
  [[nodiscard]] Decoded await(std::uint32_t xid);
  std::vector<Stag> invalidated;  // by the peer

  [[nodiscard]] bool closed() const;
  void disconnect() { connection_->disconnect(); }
  void abort() { connection_->abort(); }

 private:
  void poll();
  void register_memory(Exposed& into, MutBytes memory, ddp::Access access);
  void post_receive(std::size_t slot);

  Loop& loop_;
  cm::Engine& engine_;
  Options options_;
  verbs::CompletionQueue cq_{4096};
  std::shared_ptr<verbs::QueuePair> qp_;
  Bytes receive_memory_;
  verbs::MemoryRegion receive_region_;
  std::map<std::uint64_t, std::shared_ptr<Exposed>> sending_;
  std::uint64_t next_send_ = 1u << 20;
  std::shared_ptr<cm::Connection> connection_;
  std::optional<Error> error_;
  bool connecting_ = false;
  Loop::Poller poller_;
};

}  // namespace iwarp::gateway::test
