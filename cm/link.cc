#include "iwarp/cm/link.h"

namespace iwarp::cm {

Result<Link> Link::make(const verbs::ProtectionDomain& pd, const verbs::QueuePair::Options& options) {
  auto qp = std::make_shared<verbs::QueuePair>(pd, options);
  if (auto ok = qp->usable(); !ok) return ok.error();
  return Link(std::move(qp));
}

Link& Link::operator=(Link&& other) noexcept {
  if (this != &other) {
    reset();
    qp_ = std::move(other.qp_);
  }
  return *this;
}

void Link::reset() {
  if (qp_ != nullptr) {
    qp_->abort();
    qp_->drop_events();
  }
  qp_.reset();
}

void Link::leave() {
  if (qp_ != nullptr) {
    qp_->leave();
    qp_->drop_events();
  }
  qp_.reset();
}

}  // namespace iwarp::cm
