#include "iwarp/rpc/replay_cache.h"

#include <algorithm>

namespace iwarp::rpc {

std::optional<ReplayCache::Key> ReplayCache::key_of(ConstBytes call) {
  const auto sum = keyed_sum(call);
  if (!sum) return std::nullopt;
  return Key{rpcrdma::rpc_xid(call).value_or(0), *sum};
}

ReplayCache::Client* ReplayCache::client(const std::string& name, TimePoint now) {
  forget_quiet(now);
  if (const auto found = clients_.find(name); found != clients_.end()) {
    quiet_.splice(quiet_.end(), quiet_, found->second.place);
    found->second.heard = now;
    trim(found->second, now);
    return &found->second;
  }
  if (clients_.size() >= limits_.clients) {
    const auto idle = std::find_if(quiet_.begin(), quiet_.end(),
                                   [&](const std::string& other) { return clients_.at(other).under_way == 0; });
    if (idle == quiet_.end()) return nullptr;
    clients_.erase(*idle);
    quiet_.erase(idle);
  }
  Client& made = clients_[name];
  made.place = quiet_.insert(quiet_.end(), name);
  made.heard = now;
  return &made;
}

// A look at two of them for each Call: more go than come.
void ReplayCache::forget_quiet(TimePoint now) {
  for (int looked = 0; looked < 2 && !quiet_.empty(); ++looked) {
    const auto longest = clients_.find(quiet_.front());
    if (now - longest->second.heard <= limits_.age) return;
    if (longest->second.under_way > 0) {
      quiet_.splice(quiet_.end(), quiet_, longest->second.place);
    } else {
      clients_.erase(longest);
      quiet_.pop_front();
    }
  }
}

ReplayCache::Verdict ReplayCache::begin(const std::string& name, const Key& key, const Asker& asker, TimePoint now) {
  if (limits_.calls == 0) return Verdict::kNew;
  std::shared_ptr<const Octets> reply;
  {
    const std::lock_guard lock(mu_);
    Client* const known = client(name, now);
    if (known == nullptr) return Verdict::kNew;
    const auto [found, fresh] = known->entries.try_emplace(key);
    Entry& entry = found->second;
    if (fresh) {
      ++known->under_way;
      return Verdict::kNew;
    }
    if (!entry.done) {
      std::erase_if(entry.again, [](const Asker& other) { return other.connection.expired(); });
      entry.again.push_back(asker);
      return Verdict::kUnderWay;
    }
    reply = entry.reply;
  }
  if (const auto connection = asker.connection.lock()) connection->tell(asker.call, *reply);
  return Verdict::kAnswered;
}

void ReplayCache::finish(const std::string& name, const Key& key, ConstBytes head, ConstBytes body, TimePoint now) {
  if (limits_.calls == 0) return;
  std::vector<Asker> again;
  std::shared_ptr<const Octets> reply;
  {
    const std::lock_guard lock(mu_);
    const auto known = clients_.find(name);
    if (known == clients_.end()) return;
    Client& client = known->second;
    const auto entry = client.entries.find(key);
    if (entry == client.entries.end() || entry->second.done) return;
    again = std::move(entry->second.again);
    // Bulk data are not worth the place of many others.
    const bool kept = head.size() + body.size() <= limits_.bytes / 4;
    if (kept || !again.empty()) {
      auto whole = std::make_shared<Octets>();
      whole->reserve(head.size() + body.size());
      whole->insert(whole->end(), head.begin(), head.end());
      whole->insert(whole->end(), body.begin(), body.end());
      reply = std::move(whole);
    }
    --client.under_way;
    client.heard = now;
    quiet_.splice(quiet_.end(), quiet_, client.place);
    if (!kept) {
      client.entries.erase(entry);
    } else {
      entry->second = {true, reply, now, {}};
      client.bytes += reply->size();
      client.answered.push_back(key);
      trim(client, now);
    }
  }
  for (const Asker& asker : again) {
    if (const auto connection = asker.connection.lock()) connection->tell(asker.call, *reply);
  }
}

void ReplayCache::trim(Client& client, TimePoint now) const {
  while (!client.answered.empty()) {
    const auto oldest = client.entries.find(client.answered.front());
    const bool fits = client.answered.size() <= limits_.calls && client.bytes <= limits_.bytes;
    if (fits && now - oldest->second.answered <= limits_.age) return;
    client.bytes -= oldest->second.reply->size();
    client.entries.erase(oldest);
    client.answered.pop_front();
  }
}

std::size_t ReplayCache::clients() {
  const std::lock_guard lock(mu_);
  return clients_.size();
}

std::size_t ReplayCache::askers() {
  const std::lock_guard lock(mu_);
  std::size_t all = 0;
  for (const auto& [name, client] : clients_) {
    for (const auto& [key, entry] : client.entries) all += entry.again.size();
  }
  return all;
}

}  // namespace iwarp::rpc
