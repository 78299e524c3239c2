#include "iwarp/sctp_cm/connect_request.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "iwarp/sctp_cm/host.h"
#include "iwarp/sctp_cm/network.h"

namespace iwarp::sctp_cm {

ConnectRequest::ConnectRequest(std::shared_ptr<Network> network, Facts facts)
    : network_(std::move(network)), operations_(network_->operations()), facts_(std::move(facts)) {}

ConnectRequest::~ConnectRequest() {
  if (!decided_ && network_->alive() && !operations_->closed()) (void)reject();
}

bool ConnectRequest::waits() const {
  const auto host = facts_.host.lock();
  return host != nullptr && host->waits(facts_.stream, facts_.number);
}

Result<void> ConnectRequest::check(std::size_t private_data_bytes) const {
  if (!network_->alive()) return verbs::used_after_fork();
  if (decided_) return make_error(Errc::kInvalidArgument, "request already decided");
  const auto kind = enhanced() ? sctp::Function::kEnhancedAccept : sctp::Function::kAccept;
  if (private_data_bytes > sctp::max_ulp_bytes(kind))  // req: RFC5043-5.2.3-5, RFC6581-7-7
    return make_error(Errc::kInvalidArgument, "more private data than a session control message holds");
  return {};
}

void ConnectRequest::accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options,
                            Connection::EstablishedHandler handler, const std::shared_ptr<cm::Canceller>& cancel) {
  if (!network_->alive() || !qp->pd().context()->alive()) return handler(verbs::used_after_fork(), nullptr);
  const auto refuse = [&](const Error& error) {
    boost::asio::post(network_->io(), [handler, error] { handler(error, nullptr); });
  };
  if (const auto ok = check(options.private_data.size()); !ok) return refuse(ok.error());
  const enhanced::Depths told = options.told.value_or(enhanced::Depths{});
  if (std::max({options.ird, options.ord, told.ird, told.ord}) > enhanced::kMaxIrdOrd)
    return refuse(make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382"));
  auto made = Connection::make(network_, std::move(qp), sctp::Role::kPassive, handler);
  if (!made) return refuse(made.error());
  decided_ = true;
  const std::shared_ptr<Connection> connection = *std::move(made);
  connection->set_private_data(facts_.private_data);
  connection->follow(cancel);
  network_->post(
      [network = network_, weak = facts_.host, stream = facts_.stream, number = facts_.number, connection, options] {
        network->add(connection);
        const auto host = weak.lock();
        if (host == nullptr) return connection->fail(make_error(Errc::kConnectionLost));
        host->accept(stream, number, connection, options);
      },
      [connection] { connection->detach(); });
}

Result<void> ConnectRequest::reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) {
  if (const auto ok = check(private_data.size()); !ok) return ok;
  if (required_ord.value_or(0) > enhanced::kMaxIrdOrd)
    return make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382");
  decided_ = true;
  network_->post([weak = facts_.host, stream = facts_.stream, number = facts_.number,
                  data = std::vector<std::byte>(private_data.begin(), private_data.end()), required_ord] {
    if (const auto host = weak.lock()) host->reject(stream, number, data, required_ord);
  });
  return {};
}

}  // namespace iwarp::sctp_cm
