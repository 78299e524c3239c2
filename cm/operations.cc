#include "iwarp/cm/operations.h"

namespace iwarp::cm {

bool Operations::add(Operation& operation) {
  const std::lock_guard lock(mu_);
  if (closed()) return false;
  under_way_.push_back(operation);
  operation.listed_ = true;
  return true;
}

void Operations::remove(Operation& operation) {
  const std::lock_guard lock(mu_);
  if (std::exchange(operation.listed_, false)) under_way_.erase(under_way_.iterator_to(operation));
}

void Operations::close() {
  std::vector<std::shared_ptr<Operation>> abandoned;
  {
    const std::lock_guard lock(mu_);
    closed_.store(true, std::memory_order_release);
    for (Operation& operation : under_way_) {
      // Null: another thread is destroying it, and waits in remove().
      if (auto held = operation.weak_from_this().lock()) abandoned.push_back(std::move(held));
    }
  }
  for (const auto& operation : abandoned) operation->abandon();
}

void Canceller::set(std::function<void()> act) {
  {
    const std::lock_guard lock(mu_);
    if (over_) return;
    if (!asked_) {
      act_ = std::move(act);
      return;
    }
  }
  act();
}

void Canceller::cancel() {
  std::function<void()> act;
  {
    const std::lock_guard lock(mu_);
    asked_ = true;
    act = std::exchange(act_, {});
  }
  if (act) act();
}

void Canceller::drop() {
  std::function<void()> act;  // goes without the lock
  const std::lock_guard lock(mu_);
  over_ = true;
  act = std::exchange(act_, {});
}

std::shared_ptr<Canceller> Cancellers::make() {
  auto made = std::make_shared<Canceller>();
  const std::lock_guard lock(mu_);
  std::erase_if(all_, [](const auto& one) { return one.expired(); });
  all_.push_back(made);
  return made;
}

void Cancellers::cancel() {
  std::vector<std::weak_ptr<Canceller>> all;
  {
    const std::lock_guard lock(mu_);
    all.swap(all_);
  }
  for (const auto& one : all) {
    if (const auto canceller = one.lock()) canceller->cancel();
  }
}

}  // namespace iwarp::cm
