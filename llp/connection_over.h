// What a Connection over either lower layer has in common: it asks that of cm or of sctp_cm.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/llp/lower_layer.h"

namespace iwarp::llp {

// `Inner`: cm::Connection, sctp_cm::Connection.
template <class Inner>
class ConnectionOver : public Connection {
 public:
  ConnectionOver(std::shared_ptr<cm::Operations> operations, std::shared_ptr<Inner> inner)
      : Connection(std::move(operations)), inner_(std::move(inner)) {}
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const override { return inner_->qp(); }
  [[nodiscard]] bool initiator() const override { return inner_->initiator(); }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return inner_->private_data(); }
  [[nodiscard]] cm::Counters counters() const override { return inner_->counters(); }
  [[nodiscard]] std::string to_string() const override { return inner_->to_string(); }
  [[nodiscard]] std::optional<stream::Disconnected> disconnected() const override { return inner_->disconnected(); }
  void disconnect() override { inner_->disconnect(); }
  using Connection::abort;
  void abort(const Error& reason) override { inner_->abort(reason); }

 protected:
  [[nodiscard]] const Inner& inner() const { return *inner_; }
  void on_disconnected(cm::Completion<Error, stream::Disconnected> completion) override {
    inner_->on_disconnected(std::move(completion));
  }

 private:
  const std::shared_ptr<Inner> inner_;
};

// A handler of cm's or of sctp_cm's that tells `handler`, with an `Outer` around what was made.
template <class Outer, class Inner>
std::function<void(Error, std::shared_ptr<Inner>)> told_with(const cm::Engine& engine, EstablishedHandler handler) {
  return [operations = engine.operations(), handler = std::move(handler)](const Error& error,
                                                                          std::shared_ptr<Inner> inner) {
    handler(error, inner == nullptr ? nullptr : std::make_shared<Outer>(operations, std::move(inner)));
  };
}

}  // namespace iwarp::llp
