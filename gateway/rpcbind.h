// Tells rpcbind of this host where NFS over RDMA is served, and withdraws that. Optional: clients that name the port
// need no rpcbind. Calls wait for rpcbind in a thread of their own, so that a slow one holds nobody up.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "iwarp/gateway/access.h"
#include "iwarp/gateway/rpcbind_message.h"

namespace iwarp::gateway {

struct ServedProgram {
  std::uint32_t program = 0, version = 0;

  friend bool operator==(const ServedProgram&, const ServedProgram&) = default;
};

// "100003:3,100003:4". The error says what would be right.
[[nodiscard]] Parsed<std::vector<ServedProgram>> parse_served_programs(std::string_view text);
// NFS, versions 3 and 4.
[[nodiscard]] std::vector<ServedProgram> nfs_programs();

struct RpcbindOptions {
  std::vector<ServedProgram> programs = nfs_programs();
  // Where rpcbind listens for programs of this host.
  std::string socket = "/run/rpcbind.sock";
  // For connecting, and for each answer. Default 2 s. The end of the gateway waits for twice that at most.
  std::chrono::milliseconds time_limit{2000};
};

// Thread-safe.
class Rpcbind {
 public:
  explicit Rpcbind(const RpcbindOptions& options);
  ~Rpcbind();  // withdraws what is registered
  Rpcbind(const Rpcbind&) = delete;
  Rpcbind& operator=(const Rpcbind&) = delete;

  // The addresses where RDMA clients are served from now on: what is new is registered, what is gone is withdrawn, what
  // could not be registered is tried again. Returns at once; the log tells what came of it.
  void serve(const std::vector<boost::asio::ip::tcp::endpoint>& listeners);

 private:
  void work();
  void bring_about(const std::vector<RpcbindEntry>& wanted);

  const RpcbindOptions options_;
  std::vector<RpcbindEntry> registered_;  // of the thread
  std::mutex mu_;
  std::condition_variable changed_;
  std::optional<std::vector<RpcbindEntry>> wanted_;  // not yet seen by the thread
  bool over_ = false;
  std::thread thread_;
};

// For these programs at this address. One of all IPv6 addresses serves IPv4 as well.
[[nodiscard]] std::vector<RpcbindEntry> rpcbind_entries(const std::vector<ServedProgram>& programs,
                                                        const boost::asio::ip::tcp::endpoint& listener);

}  // namespace iwarp::gateway
