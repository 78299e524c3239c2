#include "iwarp/gateway/port_memories.h"

namespace iwarp::gateway {

std::shared_ptr<PortMemory> PortMemories::of(const std::string& server) {
  asked_[server] = ++asks_;
  if (const auto known = by_server_.find(server); known != by_server_.end()) return known->second;
  if (by_server_.size() >= kMaxServers) forget_one();
  return by_server_.emplace(server, std::make_shared<PortMemory>(PortMemoryOptions{})).first->second;
}

void PortMemories::forget_one() {
  auto oldest = by_server_.end();
  for (auto it = by_server_.begin(); it != by_server_.end(); ++it) {
    if (it->second.use_count() > 1) continue;
    if (oldest == by_server_.end() || asked_[it->first] < asked_[oldest->first]) oldest = it;
  }
  if (oldest == by_server_.end()) return;
  asked_.erase(oldest->first);
  by_server_.erase(oldest);
}

}  // namespace iwarp::gateway
