#include "iwarp/sctp_cm/service.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "iwarp/sctp_cm/listener_impl.h"
#include "iwarp/sctp_cm/network.h"

namespace iwarp::sctp_cm {

Result<void> validate(const ConnectOptions& options) {
  if (auto ok = sctp::validate(options.session); !ok) return ok;
  if (auto ok = validate(options.transport); !ok) return ok;
  if (options.port == 0) return make_error(Errc::kInvalidArgument, "ConnectOptions::port is of UDP, 1 to 65535");
  const auto kind = options.session.enhanced ? sctp::Function::kEnhancedInitiate : sctp::Function::kInitiate;
  if (options.private_data.size() > sctp::max_ulp_bytes(kind))
    return make_error(Errc::kInvalidArgument, "more private data than a session control message holds");
  return {};
}

Result<std::unique_ptr<Service>> Service::make(cm::Engine& engine, const StackOptions& options) {
  if (!engine.context()->alive()) return verbs::used_after_fork();
  engine.start();
  auto network = std::make_shared<Network>(engine);
  Result<void> opened;
  network->run([&] { opened = network->open(options); });
  if (!opened) return opened.error();
  return std::unique_ptr<Service>(new Service(std::move(network)));
}

Service::Service(std::shared_ptr<Network> network) : network_(std::in_place, std::move(network)) {}

Service::~Service() {
  if (!network_.alive()) return;
  const std::shared_ptr<Network> network = *network_;
  network->run([&] { network->close(); });
}

const std::shared_ptr<cm::Operations>& Service::operations() const {
  return (*network_)->operations();
}

Result<std::unique_ptr<Listener>> Service::listen(const ListenOptions& options) {
  if (!network_.alive()) return verbs::used_after_fork();
  if (const auto ok = validate(options); !ok) return ok.error();
  const auto impl = std::make_shared<Listener::Impl>(*network_, options);
  Result<void> opened;
  (*network_)->run([&] {
    opened = impl->open();
    if (opened) (*network_)->add(impl);
  });
  if (!opened) return opened.error();
  return std::make_unique<Listener>(impl);
}

void Service::connect(std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options,
                      Connection::EstablishedHandler handler, const std::shared_ptr<cm::Canceller>& cancel) {
  if (!network_.alive() || !qp->pd().context()->alive()) return handler(verbs::used_after_fork(), nullptr);
  const std::shared_ptr<Network>& network = *network_;
  const auto refuse = [&](const Error& error) {
    boost::asio::post(network->io(), [handler, error] { handler(error, nullptr); });
  };
  if (const auto ok = validate(options); !ok) return refuse(ok.error());
  auto made = Connection::make(network, std::move(qp), sctp::Role::kActive, handler);
  if (!made) return refuse(made.error());
  const std::shared_ptr<Connection> connection = *std::move(made);
  connection->follow(cancel);
  const auto attempt = std::make_shared<Attempt>(Attempt{connection, std::move(options)});
  network->post(
      [network, attempt] {
        network->add(attempt->connection);
        network->connect(attempt);
      },
      [connection] { connection->detach(); });
}

bool Service::wait_closed(std::chrono::milliseconds time) const {
  if (!network_.alive()) return true;
  return (*network_)->wait_closed(add_saturating(std::chrono::steady_clock::now(), time));
}

std::size_t Service::associations() const {
  if (!network_.alive()) return 0;
  std::size_t n = 0;
  (*network_)->run([&] { n = (*network_)->stack().associations(); });
  return n;
}

}  // namespace iwarp::sctp_cm
