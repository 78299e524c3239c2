// faults_store PORT FILE: a TCP RPC server that a test can kill. Each WRITE (written.h) is a line "ID SIZE intact|torn"
// in FILE before it is answered; kill -9 loses no line. READDIR it says on standard output, and never answers: a Call
// that is outstanding for as long as wanted. Of the answer to READLINK only half comes. Everything else is answered as
// in rpc_server.h.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "tests/faults/written.h"
#include "tests/gateway/rpc_server.h"

namespace {

using namespace iwarp;
using test::operator+;

void append(int file, const faults::Written& w) {
  const std::string line = std::to_string(w.id) + ' ' + std::to_string(w.size) + (w.intact ? " intact\n" : " torn\n");
  if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: faults_store PORT FILE\n";
    return 2;
  }
  const int file = ::open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    std::perror(argv[2]);
    return 1;
  }
  gateway::test::Loop loop;
  gateway::test::RpcServer server(loop, "127.0.0.1", static_cast<std::uint16_t>(std::strtoul(argv[1], nullptr, 10)));
  server.keep_calls = false;
  server.on_call = [&](gateway::test::TcpPeer& from, const test::Bytes& call) {
    const auto head = rpcrdma::RpcCall::parse(call);
    if (head && head->procedure == 16) {
      std::cout << "holding " << head->xid << std::endl;
      return;
    }
    if (head && head->procedure == 5)
      return from.send_raw(gateway::test::record_mark(2 * faults::kHalfReply) + test::Bytes(faults::kHalfReply));
    if (const auto written = faults::parse_write(call)) append(file, *written);
    from.send(gateway::test::serve(call));
  };
  std::cout << "listening on 127.0.0.1:" << server.local().port() << std::endl;
  while (loop.io.run_one() > 0) std::erase_if(server.peers, [](const auto& peer) { return peer->ended(); });
}
