// RdmaProvider: our own stack, over either lower layer.
#pragma once

#include "iwarp/gateway/rdma_provider.h"
#include "iwarp/llp/lower_layer.h"
#include "iwarp/rpcrdma/verbs_endpoint.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::gateway {

class OwnStack;

class OwnQueues : public RdmaQueues, public verbs::Notifier {
 public:
  // `ord`: RDMA Reads that this side may have outstanding, as they will be settled with the peer.
  OwnQueues(std::weak_ptr<OwnStack> stack, cm::Engine& engine, const endpoint::Options& stream, std::size_t ord);
  ~OwnQueues() override;
  OwnQueues(const OwnQueues&) = delete;
  OwnQueues& operator=(const OwnQueues&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }

  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return endpoint_; }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return endpoint_; }
  [[nodiscard]] Result<void> flush() override { return endpoint_.flush(); }
  [[nodiscard]] std::size_t poll(std::span<rpcrdma::Completion> to) override;
  void arm(std::function<void()> wake) override;
  void disarm() override { wake_ = {}; }
  void close() override {}  // the memory's registrations are the fence
  [[nodiscard]] bool remote_invalidation() const override { return true; }
  [[nodiscard]] bool pins_memory() const override { return false; }
  void connect(const RdmaTarget& to, const Options& options, LinkHandler handler) override;

  // verbs::Notifier
  void notify(verbs::CompletionQueue& cq) noexcept override;

 private:
  static constexpr std::size_t kSendDepth = 128;
  static constexpr std::size_t kReceiveDepth = 256;

  const std::weak_ptr<OwnStack> stack_;
  cm::Engine& engine_;
  verbs::CompletionQueue cq_;
  std::shared_ptr<verbs::QueuePair> qp_;
  rpcrdma::VerbsEndpoint endpoint_;
  std::function<void()> wake_;
};

}  // namespace iwarp::gateway
