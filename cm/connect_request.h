// ConnectRequest: an MPA Request that has come, for the application to accept or to reject (RFC 5044 s7.1.2 rule 2).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/cm/connection.h"
#include "iwarp/cm/tcp_connection.h"
#include "iwarp/mpa/policy.h"

namespace iwarp::cm {

// A peer's MPA Request that waits for a decision. Destroyed without one: rejected. Decide within seconds: the peer's
// patience is 10 s (siw). Thread-safe for one decision.
class ConnectRequest {
 public:
  using tcp = boost::asio::ip::tcp;  // for its socket and endpoint types
  // What the Reply says.
  struct AcceptOptions {
    std::uint16_t ird = 32, ord = 32;       // what this side can do; adapted to the Request (RFC 6581 s9.1)
    std::vector<std::byte> private_data{};  // at most 251 octets
    // The peer's IRD and ORD as its application has them in its private data (enhanced::parse_private_depths() reads
    // those of SMB Direct). They count where the Request leaves these open: revision 1, or 0x3FFF.
    std::optional<enhanced::Depths> told{};
    stream::MpaOptions mpa{};  // how it is driven: FPDU policy, the time for the first FPDU
  };
  // `slot`: given back when accepted, or when a rejected peer has gone, so that the listener accepts another connection
  // in its place. `receive_window`: as in SocketOptions. `tap`: null, or what has seen the Request.
  ConnectRequest(Engine& engine, tcp::socket socket, mpa::Responder responder, const mpa::RequestReceived& request,
                 std::shared_ptr<void> slot, std::size_t receive_window, std::shared_ptr<ByteTap> tap = {});
  ~ConnectRequest();

  // TCP address of the peer.
  [[nodiscard]] const tcp::endpoint& remote() const { return remote_; }
  // TCP address of this end.
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  // The private data of the Request, without the enhanced data of RFC 6581. Valid as long as this object.
  [[nodiscard]] const std::vector<std::byte>& private_data() const { return private_data_; }
  // Whether the Request negotiates IRD and ORD at all (RFC 6581).
  [[nodiscard]] bool enhanced() const { return enhanced_; }
  // The peer's IRD and ORD as received (0x3FFF included); 0 when its Request is not enhanced.
  [[nodiscard]] std::uint16_t peer_ird() const { return peer_ird_; }
  // Outbound Reads that the peer wants to have outstanding, likewise.
  [[nodiscard]] std::uint16_t peer_ord() const { return peer_ord_; }

  // The engine that will serve the connection, and runs the handlers of this object's operations: the listener's, or
  // the one that it was moved to. Completion queues of the queue pair are best of the same.
  [[nodiscard]] Engine& engine() const { return *engine_; }
  // Has another engine serve the connection, which must outlive this object. kInvalidArgument: it is of another
  // Context, the request is decided, or the process has forked; then nothing happens. kResource: the system lacks the
  // memory; the connection is closed, and the request used up.
  [[nodiscard]] Result<void> move_to(Engine& engine);
  // Joins `qp` to the connection and sends the Reply. `qp` should have its receives posted. The handler is called once:
  // with no error when established. The request is used up. An argument that is out of range, or a queue pair that was
  // used before or is of another Context than the engine, gives kInvalidArgument and leaves the request undecided.
  // kMalformedStartupFrame: the peer has sent octets behind its Request (RFC 5044 s7.1.1), which is refused however TCP
  // cut them. `cancel` ends the connection while it is not established: kAborted.
  void accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options,
              Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel = {});
  // void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
  template <class Token>
  auto async_accept(std::shared_ptr<verbs::QueuePair> qp, AcceptOptions options, Token&& token) {
    return initiate<Error, std::shared_ptr<Connection>>(
        engine_->operations(), nullptr, kEnding, std::forward<Token>(token),
        [this, qp = std::move(qp), options = std::move(options)](auto completion) mutable {
          accept(std::move(qp), options, std::move(completion.handler), completion.cancel);
        });
  }
  // Reply with R=1. The request is used up. `required_ord`: the ORD that the Reply states, if the peer's IRD is too
  // small for the application (RFC 6581 s9.1); else it is what the peer admits. kInvalidArgument: it was decided
  // already, the process has forked since, the private data are more than 251 octets, or the ORD more than 16382; then
  // it stays as it is.
  void reject();
  Result<void> reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord = std::nullopt);
  // As reject(), but TCP stays open and is the application's when the Reply has left (RFC 5044 s7.1.2 rule 2), for a
  // protocol of its own. `handler` is called once in an engine thread, with the connection; or with no connection,
  // which is closed then: kTimeout when TCP has not taken the Reply within 5 s, kConnectionLost when it has ended. The
  // errors of reject() leave the Request as it is.
  using TcpHandler = std::function<void(Error, TcpConnection)>;
  void reject_keeping_tcp(ConstBytes private_data, std::optional<std::uint16_t> required_ord, TcpHandler handler);
  // void(error_code, TcpConnection). Not to be cancelled.
  template <class Token>
  auto async_reject_keeping_tcp(std::vector<std::byte> private_data, std::optional<std::uint16_t> required_ord,
                                Token&& token) {
    return initiate<Error, TcpConnection>(
        engine_->operations(), nullptr, kHarmless, std::forward<Token>(token),
        [this, private_data = std::move(private_data), required_ord](auto completion) {
          reject_keeping_tcp(private_data, required_ord, std::move(completion.handler));
        });
  }

 private:
  [[nodiscard]] bool take_early_octet();
  [[nodiscard]] Result<void> decide_against(ConstBytes private_data, std::optional<std::uint16_t> required_ord);

  Engine* engine_;
  verbs::OwnProcess<tcp::socket> socket_;
  mpa::Responder responder_;
  std::shared_ptr<void> slot_;
  std::shared_ptr<ByteTap> tap_;
  tcp::endpoint local_, remote_;
  std::vector<std::byte> private_data_;
  std::size_t receive_window_;
  std::uint16_t peer_ird_, peer_ord_;
  bool enhanced_;
  std::weak_ptr<const void> engine_life_;
  std::shared_ptr<void> place_;  // counts in the load of an engine that it was moved to
  bool decided_ = false;
};

}  // namespace iwarp::cm
