// ConnectRequest: an Initiate of a peer, for the application to accept or to reject (RFC 5043 s6.2 to s6.4), as
// cm::ConnectRequest is a Request of MPA.
#pragma once

#include <boost/asio/ip/udp.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/cm/connect_request.h"
#include "iwarp/sctp_cm/connection.h"

namespace iwarp::sctp_cm {

// Destroyed without a decision: rejected. The peer's patience is its own (SessionOptions::answer_timeout, 30 s, of an
// iwarp). Any thread; thread-safe for one decision.
class ConnectRequest {
 public:
  using udp = boost::asio::ip::udp;  // for its endpoint type
  // What the Accept says: IRD and ORD of this side, adapted to the Initiate (RFC 6581 s7, s9.1), and private data, 508
  // octets at most, or 512 where the Initiate is not enhanced().
  using AcceptOptions = cm::ConnectRequest::AcceptOptions;

  // Where it came from, and what it says: by the listener.
  struct Facts {
    std::weak_ptr<Host> host{};
    sctp::StreamId stream{};
    std::uint64_t number = 0;  // of the session
    udp::endpoint local{}, remote{};
    std::vector<std::byte> private_data{};
    std::optional<enhanced::EnhancedData> data{};
  };
  ConnectRequest(std::shared_ptr<Network> network, Facts facts);
  // For the listener, in the thread of the engine: false: the peer has withdrawn it.
  [[nodiscard]] bool waits() const;
  ~ConnectRequest();
  ConnectRequest(const ConnectRequest&) = delete;
  ConnectRequest& operator=(const ConnectRequest&) = delete;

  // UDP address of the peer.
  [[nodiscard]] const udp::endpoint& remote() const { return facts_.remote; }
  // UDP address of this end.
  [[nodiscard]] const udp::endpoint& local() const { return facts_.local; }
  // The private data of the Initiate, without the enhanced data of RFC 6581. Valid as long as this object.
  [[nodiscard]] const std::vector<std::byte>& private_data() const { return facts_.private_data; }
  // Whether the Initiate negotiates IRD and ORD at all (RFC 6581).
  [[nodiscard]] bool enhanced() const { return facts_.data.has_value(); }
  // The peer's IRD and ORD as received (0x3FFF included); 0 when its Initiate is not enhanced.
  [[nodiscard]] std::uint16_t peer_ird() const { return facts_.data ? facts_.data->ird : std::uint16_t{0}; }
  [[nodiscard]] std::uint16_t peer_ord() const { return facts_.data ? facts_.data->ord : std::uint16_t{0}; }

  // Joins `qp` to the session and sends the Accept. `qp` should have its receives posted. The handler is called once,
  // in an engine thread: with no error when established. The request is used up. An argument that is out of range, or a
  // queue pair that was used before, gives kInvalidArgument and leaves the request undecided. kPeerClosed: the peer has
  // withdrawn it; kConnectionLost: its association has gone. `cancel` ends the connection while it is not established:
  // kAborted.
  void accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options,
              Connection::EstablishedHandler handler, const std::shared_ptr<cm::Canceller>& cancel = {});
  // void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
  template <class Token>
  auto async_accept(std::shared_ptr<verbs::QueuePair> qp, AcceptOptions options, Token&& token) {
    return cm::initiate<Error, std::shared_ptr<Connection>>(
        operations_, nullptr, cm::kEnding, std::forward<Token>(token),
        [this, qp = std::move(qp), options = std::move(options)](auto completion) mutable {
          accept(std::move(qp), options, std::move(completion.handler), completion.cancel);
        });
  }
  // Sends a Reject. The request is used up. `required_ord`: the ORD that an enhanced Reject states, if the peer's IRD
  // is too small for the application. kInvalidArgument: it was decided already, more private data than above, or the
  // ORD is more than 16382; then it stays as it is.
  Result<void> reject(ConstBytes private_data = {}, std::optional<std::uint16_t> required_ord = std::nullopt);

 private:
  [[nodiscard]] Result<void> check(std::size_t private_data_bytes) const;

  const std::shared_ptr<Network> network_;
  const std::shared_ptr<cm::Operations> operations_;
  const Facts facts_;
  bool decided_ = false;
};

}  // namespace iwarp::sctp_cm
