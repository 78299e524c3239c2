// Server: serves RPC programs over RPC-over-RDMA, with any number of threads. A handler is a coroutine, which gets a
// Call and gives its results; each Call is given to one handler, once. A client that has lost its connection sends its
// Calls again: the Server remembers what it has answered each client (ServerOptions::remembered_calls), and answers
// such a Call without executing it a second time.
//
//   Server server(engine, {.threads = 4});
//   server.serve(0x20000042, 1, [](Call call) -> boost::asio::awaitable<Answer> {
//     if (call.procedure() != 1) co_return rpcrdma::AcceptStat::kProcUnavail;
//     co_return add(call.arguments());
//   });
//   server.listen(on_iwarp(engine, {.endpoint = {tcp::v4(), 20049}})).value();
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "iwarp/cm/engine.h"
#include "iwarp/rpc/channel.h"
#include "iwarp/rpc/incoming.h"
#include "iwarp/rpc/message.h"
#include "iwarp/rpcrdma/responder.h"

namespace iwarp::rpc {

// What a Server does.
struct ServerOptions {
  // Credits, sizes, versions, and `declared`: the binding for bulk data. Unlike in rpcrdma, `enforce_binding` is off by
  // default: chunks of what nobody has declared are put together all the same, as Linux does. Without `extensions`:
  // options of version 2 get RDMA_ERR_INVAL_OPTION. `backward_retransmission` is of no use: backward Calls are not sent
  // again.
  rpcrdma::ResponderOptions responder{.enforce_binding = false};
  // Threads of its own in which handlers run. 0 (default): they run on the engine, and so must not block.
  unsigned threads = 0;
  // Registered memory of a connection for Calls, and as much for Replies, octets. At least a Call and a Reply of the
  // longest kind.
  std::size_t memory_bytes = 64u << 20;
  // Connections at a time; others are refused. Each costs some 1 MiB with the default credits. One that has ended
  // counts for as long as a handler has a Call of it.
  std::size_t max_connections = 1024;
  // Answered Calls that are remembered of each client address, and octets of their Replies; older ones are forgotten
  // first. Calls of one address never push out those of another; more addresses than `remembered_clients` do, and
  // whoever has an IPv6 /64 has as many. 0: none, and what is sent again is executed again. A Call is the same when
  // all its octets are, its xid and its credential among them. Without Poly1305 in libcrypto none is remembered.
  std::size_t remembered_calls = 256;
  std::size_t remembered_bytes = 1u << 20;  // a Reply of more than a quarter of it is not remembered
  // For how long after the answer. A client that sends a Call again later has it executed again; with much more than
  // the time-outs of clients, one that starts anew with the same xids may get answers of before.
  std::chrono::seconds remembered_for{300};
  // Client addresses that are remembered. Beyond it that one is forgotten which has been quiet for longest and has no
  // Call under way. With `remembered_bytes` for each, 1 GiB at most with the defaults.
  std::size_t remembered_clients = 1024;
};

class ServerCore;

// Thread-safe.
class Server {
 public:
  // Counts since construction.
  struct Stats {
    std::uint64_t calls = 0;        // given to handlers
    std::uint64_t replies = 0;      // handlers' answers
    std::uint64_t recognized = 0;   // Calls sent again that were not executed again
    std::uint64_t connections = 0;  // taken
  };
  // A coroutine on a thread of the Server, or on the engine. What it throws becomes SYSTEM_ERR.
  using Handler = rpc::Handler;
  // Hears of whole messages, in an engine thread, without a lock; it must not block. One such call may be under way
  // when stop() returns.
  using MessageHandler = std::function<void(std::shared_ptr<IncomingCall>)>;

  // `engine` must outlive this object and every Call: end what handlers wait for before it goes.
  explicit Server(cm::Engine& engine, ServerOptions options = {});
  // As stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves a version of a program, in place of who did so before. Procedure 0 without arguments is the handler's, too.
  // Calls of versions that nobody serves get PROG_MISMATCH and the range, of programs PROG_UNAVAIL.
  void serve(std::uint32_t program, std::uint32_t version, Handler handler);
  // Serves everything that serve() was not told of.
  void serve_messages(MessageHandler handler);
  // Takes connections of that transport from now on, too.
  [[nodiscard]] Result<void> listen(std::shared_ptr<ServerTransport> transport);
  // Takes no more connections or Calls, ends the connections, and waits for what runs in threads of the Server: each
  // handler there, until it ends or is suspended. One that is suspended does not go on: it is destroyed with what it
  // holds, now, or when what it waits for (a timer of the engine, say) is over, by whoever tells it so. Inside a
  // handler in these threads it waits for nobody, and neither does the destructor: they end by themselves behind the
  // handlers, and stop() elsewhere waits for them. Handlers on the engine are left alone, and what they give is
  // dropped. Harmless when repeated, from several threads too.
  void stop();
  // Ends the connections there are; clients may come back.
  void drop_connections();
  // Counts so far.
  [[nodiscard]] Stats stats() const;

 private:
  std::shared_ptr<ServerCore> core_;
};

}  // namespace iwarp::rpc
