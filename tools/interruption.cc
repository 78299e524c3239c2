#include "tools/interruption.h"

#include <csignal>

namespace iwarp::tools {

Interruption::Interruption(boost::asio::io_context& io) : signals_(io, SIGINT, SIGTERM) {
  signals_.async_wait([state = state_](boost::system::error_code cancelled, int) {
    if (cancelled) return;
    const std::lock_guard lock(state->mu);
    state->happened = true;
    for (const auto& hook : state->hooks) hook();
  });
}

bool Interruption::happened() const {
  const std::lock_guard lock(state_->mu);
  return state_->happened;
}

Interruption::Hook::Hook(const Interruption& interruption, std::function<void()> what) : state_(interruption.state_) {
  const std::lock_guard lock(state_->mu);
  if (state_->happened) what();
  at_ = state_->hooks.insert(state_->hooks.end(), std::move(what));
}

Interruption::Hook::~Hook() {
  const std::lock_guard lock(state_->mu);
  state_->hooks.erase(at_);
}

}  // namespace iwarp::tools
