// A TCP ONC RPC server under the test's control. By default it answers NFSv3 READ, WRITE and READDIR by pattern.
#pragma once

#include <vector>

#include "iwarp/gateway/options.h"
#include "tests/gateway/loop.h"
#include "tests/gateway/tcp_peer.h"

namespace iwarp::gateway::test {

// What a file server would answer to a Call of rpc_samples.h: READ and READDIR give pattern(count, xid).
[[nodiscard]] Bytes serve(const Bytes& call);

class RpcServer {
 public:
  // Port 0: a free one.
  explicit RpcServer(Loop& loop, const std::string& address = "127.0.0.1", std::uint16_t port = 0);
  ~RpcServer();

  [[nodiscard]] tcp::endpoint local() const { return local_; }
  [[nodiscard]] HostPort host_port() const { return {local_.address().to_string(), local_.port()}; }
  // Refuses connections from now on.
  void stop_listening();
  // Ends everything; no handler of the test is called any more.
  void shut_down();

  // Instead of serve().
  std::function<void(TcpPeer&, const Bytes& call)> on_call;
  // Connections, oldest first, those that ended included.
  std::vector<std::shared_ptr<TcpPeer>> peers;
  // All records received, in order of arrival; only while `keep_calls`.
  std::vector<Bytes> calls;
  bool keep_calls = true;
  bool start_paused = false;

 private:
  void accept();

  tcp::acceptor acceptor_;
  tcp::endpoint local_;
};

}  // namespace iwarp::gateway::test
