// Calls into the layers below, for which the rendezvous holds no lock. Internal.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dropin/verbs/quietly.h"
#include "dropin/verbs/rendezvous.h"

namespace iwarp::dropin {

class Rendezvous::Work {
 public:
  void add(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void reject(const std::shared_ptr<cm::ConnectRequest>& request, Refusal why) {
    add([request, why] { (void)request->reject(octets_of(why)); });
  }
  // Without the lock, once, at the end. What a call throws ends there.
  void run() noexcept {
    for (const auto& call : calls_) quietly(call);
    calls_.clear();
  }

 private:
  std::vector<std::function<void()>> calls_;
};

// The peer is lost before there was a connection.
void lose(verbs::QueuePair& qp, Errc why);

}  // namespace iwarp::dropin
