// --llp: what carries the connections of a command, MPA over TCP or SCTP over UDP, with one face for both: those of cm
// and of sctp_cm.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/description.h"
#include "iwarp/cm/listener.h"

namespace iwarp::tools {

enum class Llp : std::uint8_t { kTcp, kSctp };

// "tcp", "sctp"
[[nodiscard]] const char* llp_name(Llp llp);
[[nodiscard]] std::optional<Llp> llp_named(const std::string& name);

// What SCTP has beside what the options of cm say.
struct SctpOptions {
  std::uint16_t packet_bytes = 1452;  // of an SCTP packet, at most, 576 to 65507
  bool share_associations = false;    // sctp_cm::ConnectOptions::share_association
};

// A connection over either. Thread-safe.
class AnyConnection {
 public:
  virtual ~AnyConnection() = default;
  virtual void disconnect() = 0;  // orderly, behind what was posted
  virtual void abort() = 0;       // at once
  // `ended` is called once, in an engine thread.
  virtual void on_disconnected(std::function<void(const stream::Disconnected&)> ended) = 0;
  // Sleeps until its end.
  [[nodiscard]] virtual stream::Disconnected wait_disconnected() = 0;
  // Of the peer.
  [[nodiscard]] virtual std::vector<std::byte> private_data() const = 0;
  // Over SCTP what is MPA's is as by default.
  [[nodiscard]] virtual mpa::Negotiated negotiated() const = 0;
  // "local=... peer=... role=... ..."
  [[nodiscard]] virtual std::string to_string() const = 0;
  // For a log line.
  [[nodiscard]] virtual cm::EndFacts facts() const = 0;
};

// A peer's request. Destroyed without a decision: rejected.
class AnyRequest {
 public:
  using Handler = std::function<void(Error, std::shared_ptr<AnyConnection>)>;
  virtual ~AnyRequest() = default;
  // Of TCP or UDP.
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint remote() const = 0;
  [[nodiscard]] virtual const std::vector<std::byte>& private_data() const = 0;
  // As cm::ConnectRequest::accept().
  virtual void accept(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectRequest::AcceptOptions& options,
                      Handler handler) = 0;
  virtual void reject() = 0;
};

class AnyListener {
 public:
  using Handler = std::function<void(Error, std::unique_ptr<AnyRequest>)>;
  virtual ~AnyListener() = default;
  // Of TCP or UDP.
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
  // As cm::Listener::accept().
  virtual void accept(Handler handler) = 0;
};

// Thread-safe. Outlives what it makes but for connections; goes before its engine.
class LowerLayer {
 public:
  virtual ~LowerLayer() = default;
  // Over SCTP what options say of the socket, and of `engines`, counts for nothing; the port is of UDP and of SCTP.
  [[nodiscard]] virtual Result<std::unique_ptr<AnyListener>> listen(const cm::ListenOptions& options) = 0;
  // As cm::connect(). Over SCTP policy.startup_timeout is for the answer to the Initiate.
  virtual void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options,
                       AnyRequest::Handler handler) = 0;
  // Sleeps until nothing of connections that are over is left, `time` at most; whether nothing is.
  virtual bool wait_closed(std::chrono::milliseconds time) = 0;
};

// Over SCTP a process has one at a time: kResource; kInvalidArgument: this build has none.
[[nodiscard]] Result<std::unique_ptr<LowerLayer>> make_lower_layer(Llp llp, cm::Engine& engine,
                                                                   const SctpOptions& sctp = {});
// Whether this build has SCTP, and what make_lower_layer() makes of it.
[[nodiscard]] bool has_sctp();
[[nodiscard]] Result<std::unique_ptr<LowerLayer>> make_sctp_layer(cm::Engine& engine, const SctpOptions& sctp);

}  // namespace iwarp::tools
