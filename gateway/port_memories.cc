#include "iwarp/gateway/port_memories.h"

namespace iwarp::gateway {

std::shared_ptr<PortMemory> PortMemories::of(const std::string& server) {
  if (const auto known = by_server_.find(server); known != by_server_.end()) return known->second;
  if (by_server_.size() >= kMaxServers)
    std::erase_if(by_server_, [](const auto& entry) { return entry.second.use_count() == 1; });
  return by_server_.emplace(server, std::make_shared<PortMemory>(PortMemoryOptions{})).first->second;
}

}  // namespace iwarp::gateway
