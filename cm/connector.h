// Active side: resolve, connect TCP, exchange MPA Request and Reply, send the RTR (RFC 5044 s7, RFC 6581). When the
// peer ends TCP before its Reply began, and policy allows it, it is asked for something else on a new TCP connection:
// from A=0 to A=1 (peer-to-peer), from there to MPA revision 1, each once. The engine remembers what worked with that
// address and port (FallbackMemory), and the next connection begins with it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/connection.h"
#include "iwarp/mpa/policy.h"

namespace iwarp::cm {

// A connection that the application has made and used already is taken over by connect_over().
//
// Where to connect to, and how.
struct ConnectOptions {
  std::string host;                                       // name or address, IPv4 or IPv6
  std::uint16_t port = 0;                                 // TCP port, 1 to 65535
  mpa::Policy policy{};                                   // what is asked for in the MPA Request
  stream::MpaOptions mpa{};                               // how it is driven: FPDU policy, wakes
  std::vector<std::byte> private_data{};                  // at most 251 octets
  std::optional<boost::asio::ip::tcp::endpoint> local{};  // bind the socket to this address (port 0: any)
  // Name resolution and TCP connect together. Default 10 s, 1 ms or more, max() for ever. The MPA exchange has its own
  // limit, policy.startup_timeout.
  std::chrono::milliseconds connect_timeout{10000};
  // Where nobody listens, it is tried again for so long, every few ms, within connect_timeout. Default 0: not at all.
  // For programs whose servers open a port when their clients are on the way already.
  std::chrono::milliseconds refusal_patience{0};
  SocketOptions socket{};  // of TCP
  // Whether a peer's Reply with R=1, or one that judge_reply refuses, leaves TCP to the application (RFC 5044 s7.1.2
  // rule 3): Connection::take_tcp(). Default off: it is closed.
  bool keep_tcp_if_rejected = false;
  // Asked when a Reply that accepts has come, with the queue pair's lock held: what its private data agree on, or an
  // error, with which the attempt ends. Empty (default): nothing but what the queue pair was made with.
  stream::ReplyJudge judge_reply{};
  // Asked when an attempt has failed that may succeed later: the peer has rejected it (kPeerRejected, with its private
  // data), its Reply is of no use or never came, or no endpoint has taken the TCP connection (behind refusal_patience;
  // connect_timeout apart). The private data of another, which begins with a new TCP connection after 2 ms, twice as
  // long each time up to 100 ms, and with all that was posted; nullopt: it has failed. Asked in an engine thread,
  // perhaps with the queue pair's lock held: it must not block, nor call the library, nor throw but std::bad_alloc.
  // Empty (default): the first failure counts. Not for connect_over().
  stream::RetryJudge try_again{};
};

// kInvalidArgument, which names the option and its range. connect() asks it first.
[[nodiscard]] Result<void> validate(const ConnectOptions& options);

// Connects `qp`. `handler` is called once in an engine thread, with the Connection when one was made (also on failure:
// its disconnected() then holds the peer's private data, IRD and ORD of a rejection). QueuePair::abort() and `cancel`
// end the attempt at any time before: the handler hears of kAborted at once, and the queue pair is used
// up.
void connect(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options,
             Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel = {});

// The same for Asio: void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
template <class Token>
auto async_connect(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Token&& token,
                   Cancellers* cancellers = nullptr) {
  return initiate<Error, std::shared_ptr<Connection>>(
      engine.operations(), cancellers, kEnding, std::forward<Token>(token),
      [&engine, qp = std::move(qp), options = std::move(options)](auto completion) mutable {
        connect(engine, std::move(qp), std::move(options), std::move(completion.handler), completion.cancel);
      });
}

// Starts MPA on a TCP connection that the application has used before, as the Initiator (RFC 5044 s7.1.3): its own
// protocol has come to its end, and the peer waits for an MPA Request. Of `options`, host, port, local and
// connect_timeout are not looked at. There is no other TCP connection to fall back to, so what the policy says of
// fallbacks does not apply, but what is remembered of that peer does.
//
// `tcp` belongs to the library from the call on, and every error closes it, these too: kInvalidArgument, it is no
// connected TCP socket. Its early() octets are taken for the beginning of the Reply. Else as connect().
void connect_over(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, TcpConnection tcp, ConnectOptions options,
                  Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel = {});

// The same for Asio: void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
template <class Token>
auto async_connect_over(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, TcpConnection tcp, ConnectOptions options,
                        Token&& token) {
  return initiate<Error, std::shared_ptr<Connection>>(
      engine.operations(), nullptr, kEnding, std::forward<Token>(token),
      [&engine, qp = std::move(qp), tcp = std::move(tcp), options = std::move(options)](auto completion) mutable {
        connect_over(engine, std::move(qp), std::move(tcp), std::move(options), std::move(completion.handler),
                     completion.cancel);
      });
}

// Makes any number of connections, and gives all attempts up together. Thread-safe; to be destroyed before the engine.
class Connector {
 public:
  using executor_type = Engine::executor_type;  // of get_executor(), as Asio looks for it

  // `engine` must outlive this object.
  explicit Connector(Engine& engine) : engine_(engine) {}
  // Leaves the attempts alone.
  ~Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  // As cm::async_connect().
  template <class Token>
  auto async_connect(std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Token&& token) {
    return cm::async_connect(engine_, std::move(qp), std::move(options), std::forward<Token>(token), &cancellers_);
  }
  // Ends the attempts under way: kAborted. Their queue pairs are used up.
  void cancel() {
    if (engine_.context()->alive()) cancellers_.cancel();
  }
  // The engine's: where handlers run that name no executor.
  [[nodiscard]] executor_type get_executor() const { return engine_.get_executor(); }

 private:
  Engine& engine_;
  Cancellers cancellers_;
};

}  // namespace iwarp::cm
