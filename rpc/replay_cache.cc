#include "iwarp/rpc/replay_cache.h"

#include <algorithm>

namespace iwarp::rpc {

ReplayCache::Key ReplayCache::key_of(ConstBytes call) {
  // FNV-1a over the head and the beginning of the arguments: those who choose their octets to be taken for one another
  // are one client.
  constexpr std::size_t kSummed = 1024;
  std::uint64_t sum = 0xcbf29ce484222325u ^ call.size();
  for (const std::byte b : call.first(std::min(call.size(), kSummed))) {
    sum = (sum ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3u;
  }
  return {rpcrdma::rpc_xid(call).value_or(0), sum};
}

ReplayCache::Client* ReplayCache::client(const std::string& name) {
  if (const auto found = clients_.find(name); found != clients_.end()) {
    quiet_.splice(quiet_.end(), quiet_, found->second.place);
    return &found->second;
  }
  if (clients_.size() >= most_clients_) {
    const auto idle = std::find_if(quiet_.begin(), quiet_.end(),
                                   [&](const std::string& other) { return clients_.at(other).under_way == 0; });
    if (idle == quiet_.end()) return nullptr;
    clients_.erase(*idle);
    quiet_.erase(idle);
  }
  Client& made = clients_[name];
  made.place = quiet_.insert(quiet_.end(), name);
  return &made;
}

ReplayCache::Verdict ReplayCache::begin(const std::string& name, const Key& key, const std::shared_ptr<Asker>& asker) {
  if (most_calls_ == 0) return Verdict::kNew;
  Octets reply;
  {
    const std::lock_guard lock(mu_);
    Client* const known = client(name);
    if (known == nullptr) return Verdict::kNew;
    const auto [entry, fresh] = known->entries.try_emplace(key);
    if (fresh) {
      ++known->under_way;
      return Verdict::kNew;
    }
    if (!entry->second.done) {
      entry->second.again.push_back(asker);
      return Verdict::kUnderWay;
    }
    reply = entry->second.reply;
  }
  asker->tell(reply);
  return Verdict::kAnswered;
}

void ReplayCache::finish(const std::string& name, const Key& key, ConstBytes head, ConstBytes body) {
  if (most_calls_ == 0) return;
  std::vector<std::shared_ptr<Asker>> again;
  Octets reply;
  {
    const std::lock_guard lock(mu_);
    const auto known = clients_.find(name);
    if (known == clients_.end()) return;
    Client& client = known->second;
    const auto entry = client.entries.find(key);
    if (entry == client.entries.end() || entry->second.done) return;
    again = std::move(entry->second.again);
    const bool kept = head.size() + body.size() <= most_bytes_ / 4;  // bulk data are not worth the place of many others
    if (kept || !again.empty()) {
      reply.reserve(head.size() + body.size());
      reply.insert(reply.end(), head.begin(), head.end());
      reply.insert(reply.end(), body.begin(), body.end());
    }
    --client.under_way;
    if (!kept) {
      client.entries.erase(entry);
    } else {
      entry->second.done = true;
      entry->second.reply = reply;
      client.bytes += reply.size();
      client.answered.push_back(key);
      trim(client);
    }
  }
  for (const auto& asker : again) asker->tell(reply);
}

void ReplayCache::trim(Client& client) const {
  while (client.answered.size() > most_calls_ || client.bytes > most_bytes_) {
    const auto oldest = client.entries.find(client.answered.front());
    client.bytes -= oldest->second.reply.size();
    client.entries.erase(oldest);
    client.answered.pop_front();
  }
}

}  // namespace iwarp::rpc
