// One association of a Service, with the connections that are on its sessions and those that wait for it. In the thread
// of the engine. Internal to the layer.
#pragma once

#include <boost/asio/ip/udp.hpp>
#include <map>
#include <memory>
#include <vector>

#include "iwarp/sctp_cm/association.h"
#include "iwarp/sctp_cm/connect_request.h"
#include "iwarp/sctp_cm/connection.h"
#include "iwarp/sctp_cm/deadline.h"
#include "iwarp/sctp_cm/listener.h"
#include "iwarp/sctp_cm/sessions.h"

namespace iwarp::sctp_cm {

struct Attempt;

class Host final : public SessionsUser, public std::enable_shared_from_this<Host> {
 public:
  using Side = sctp::Association::Side;
  // What an end of an association waits for once no session is left, and then for its shutdown.
  static constexpr std::chrono::milliseconds kFarewell{5000};

  // `network` outlives it. Active: `from` is null.
  Host(Network& network, const sctp::AssociationOptions& options, std::weak_ptr<Listener::Impl> from, Side side,
       std::chrono::milliseconds idle_timeout);

  // The association, which is to have sessions() for its user.
  void attach(std::shared_ptr<Association> association);
  [[nodiscard]] Sessions& sessions() { return sessions_; }
  [[nodiscard]] const boost::asio::ip::udp::endpoint& local() const { return local_; }
  [[nodiscard]] const boost::asio::ip::udp::endpoint& remote() const { return remote_; }

  // Whether another connection may join().
  [[nodiscard]] bool takes() const { return !closing_ && !over_; }
  // A session for it, when the association is up. Precondition: takes().
  void join(std::shared_ptr<Attempt> attempt);
  // Whether that request waits for a decision still.
  [[nodiscard]] bool waits(sctp::StreamId stream, std::uint64_t number) const;
  // Decisions of the application.
  void accept(sctp::StreamId stream, std::uint64_t number, const std::shared_ptr<Connection>& connection,
              const ConnectRequest::AcceptOptions& options);
  void reject(sctp::StreamId stream, std::uint64_t number, ConstBytes private_data,
              std::optional<std::uint16_t> required_ord);
  // That connection is over.
  void left(const Connection* connection);
  // The service goes: the association is aborted, and its connections are let go of.
  void drop();

  // --- SessionsUser
  void on_ready() override;
  void on_event(sctp::StreamId stream, const sctp::Session::Event& event) override;
  [[nodiscard]] std::size_t on_early(sctp::StreamId stream, const sctp::Session::Early& early) override;
  void on_room() override;
  void on_end(const Error& why) override;

 private:
  struct Joined {
    std::shared_ptr<Connection> connection;
    std::shared_ptr<Attempt> attempt;  // null: accepted
  };

  void begin(std::shared_ptr<Attempt> attempt);
  void requested(sctp::StreamId stream, const sctp::Session::Requested& request);
  [[nodiscard]] bool take_request(sctp::StreamId stream, std::uint64_t number);
  // Where no session is left the association goes.
  void look();
  void close();

  Network& network_;
  const std::weak_ptr<Listener::Impl> from_;
  const Side side_;
  const std::chrono::milliseconds idle_timeout_;
  boost::asio::ip::udp::endpoint local_, remote_;
  std::weak_ptr<Association> association_;
  Sessions sessions_;
  Deadline idle_;
  std::map<std::uint16_t, Joined> on_;                // by stream
  std::map<std::uint16_t, std::uint64_t> undecided_;  // requests: the number of the session
  std::vector<std::shared_ptr<Attempt>> waiting_;     // for the association
  std::optional<TimePoint> idle_by_;                  // accepted: when it goes, no session having been on it since
  bool ready_ = false, closing_ = false, over_ = false;
};

}  // namespace iwarp::sctp_cm
