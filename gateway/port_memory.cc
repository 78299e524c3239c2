#include "iwarp/gateway/port_memory.h"

#include <algorithm>
#include <iterator>

#include "iwarp/gateway/access.h"

namespace iwarp::gateway {

void PortMemory::drop(Client& client, std::size_t index) {
  client.ports.erase(client.ports.begin() + static_cast<std::ptrdiff_t>(index));
  if (index < client.with_outstanding) --client.with_outstanding;
}

void PortMemory::expire(Client& client, TimePoint now) {
  for (std::size_t i = client.ports.size(); i-- > 0;) {
    if (client.ports[i].until <= now) drop(client, i);
  }
}

void PortMemory::forget(std::list<Client>::iterator client) {
  by_address_.erase(client->address);
  clients_.erase(client);
}

PortMemory::Client* PortMemory::touch(const boost::asio::ip::address& client, std::uint16_t port, TimePoint now) {
  if (port == 0 || options_.max_addresses == 0 || options_.max_ports_per_address == 0) return nullptr;
  const boost::asio::ip::address address = unmapped(client);
  if (auto known = by_address_.find(address); known != by_address_.end()) {
    clients_.splice(clients_.begin(), clients_, known->second);
  } else {
    if (clients_.size() == options_.max_addresses) forget(std::prev(clients_.end()));
    clients_.push_front(Client{address, {}, 0});
    by_address_.emplace(address, clients_.begin());
  }
  Client& c = clients_.front();
  expire(c, now);
  const auto same = std::find_if(c.ports.begin(), c.ports.end(), [&](const Remembered& r) { return r.port == port; });
  if (same != c.ports.end()) drop(c, static_cast<std::size_t>(same - c.ports.begin()));
  return &c;
}

void PortMemory::remember(const boost::asio::ip::address& client, std::uint16_t port, bool calls_outstanding,
                          TimePoint now) {
  const std::lock_guard lock(mu_);
  Client* const known = touch(client, port, now);
  if (known == nullptr) return;
  Client& c = *known;
  if (c.ports.size() == options_.max_ports_per_address) drop(c, c.ports.size() - 1);
  c.ports.insert(c.ports.begin() + static_cast<std::ptrdiff_t>(c.with_outstanding), {port, now + options_.expiry});
  if (calls_outstanding) ++c.with_outstanding;
}

std::optional<std::uint16_t> PortMemory::take(const boost::asio::ip::address& client, TimePoint now) {
  const std::lock_guard lock(mu_);
  const auto known = by_address_.find(unmapped(client));
  if (known == by_address_.end()) return std::nullopt;
  const auto c = known->second;
  expire(*c, now);
  std::optional<std::uint16_t> port;
  if (!c->ports.empty()) {
    port = c->ports.front().port;
    drop(*c, 0);
  }
  if (c->ports.empty()) forget(c);
  return port;
}

PortMemory::Use PortMemory::use(const std::shared_ptr<PortMemory>& memory, const boost::asio::ip::address& client,
                                std::uint16_t port) {
  const auto at = [&] {
    const std::lock_guard lock(memory->mu_);
    return memory->used_.emplace(unmapped(client), port);
  }();
  return {static_cast<const void*>(&*at), [memory, at](const void*) {
            const std::lock_guard erasing(memory->mu_);
            memory->used_.erase(at);
          }};
}

std::vector<PortMemory::Entry> PortMemory::entries(TimePoint now) const {
  const std::lock_guard lock(mu_);
  std::vector<Entry> out;
  for (const auto& [client, port] : used_) {
    if (port != 0) out.push_back({client, port, true, now + options_.expiry});
  }
  for (auto client = clients_.rbegin(); client != clients_.rend(); ++client) {
    for (std::size_t i = 0; i < client->ports.size(); ++i) {
      const Remembered& r = client->ports[i];
      if (r.until > now && !used_.contains({client->address, r.port}))
        out.push_back({client->address, r.port, i < client->with_outstanding, r.until});
    }
  }
  return out;
}

void PortMemory::restore(const Entry& entry, TimePoint now) {
  const std::lock_guard lock(mu_);
  if (entry.until <= now) return;
  Client* const c = touch(entry.client, entry.port, now);
  if (c == nullptr || c->ports.size() == options_.max_ports_per_address) return;
  const std::size_t index = entry.calls_outstanding ? c->with_outstanding : c->ports.size();
  c->ports.insert(c->ports.begin() + static_cast<std::ptrdiff_t>(index),
                  {entry.port, std::min(entry.until, now + options_.expiry)});
  if (entry.calls_outstanding) ++c->with_outstanding;
}

ReservedPortSet PortMemory::reserved(TimePoint now) const {
  const std::lock_guard lock(mu_);
  ReservedPortSet out;
  for (const Client& client : clients_) {
    for (const Remembered& r : client.ports) {
      if (r.port >= kFirstReservedPort && r.port <= kLastReservedPort && r.until > now)
        out.set(r.port - kFirstReservedPort);
    }
  }
  return out;
}

}  // namespace iwarp::gateway
