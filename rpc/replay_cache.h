// What a Server has answered, and is about to, so that a Call sent again is not executed again. A Call is known by the
// address of its client, its xid and a keyed sum over all its octets: another credential or other arguments make
// another Call. Each client address has a part of its own; only further addresses, beyond the limit, push it out.
// Those who ask again are kept as a few octets: no connection and no message waits with them. Thread-safe. Internal to
// rpc.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "iwarp/base/time.h"
#include "iwarp/rpc/keyed_sum.h"
#include "iwarp/rpc/message.h"
#include "iwarp/rpcrdma/responder.h"

namespace iwarp::rpc {

class ReplayCache {
 public:
  // A connection that Calls come on.
  class Connection {
   public:
    virtual ~Connection() = default;
    // `reply`: a whole RPC Reply, to that Call of it. Without a lock of the cache.
    virtual void tell(rpcrdma::CallToken call, const Octets& reply) = 0;
  };
  // Who waits for the answer to a Call; a connection that goes is not told.
  struct Asker {
    std::weak_ptr<Connection> connection;
    rpcrdma::CallToken call{};
  };
  struct Key {
    std::uint32_t xid = 0;
    KeyedSum sum{};
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Of a whole RPC Call. Nothing: no sum can be made, and the Call cannot be remembered.
  [[nodiscard]] static std::optional<Key> key_of(ConstBytes call);

  enum class Verdict : std::uint8_t {
    kNew,       // to be executed; finish() follows
    kUnderWay,  // `asker` will be told what comes of it
    kAnswered,  // `asker` was told
  };
  struct Limits {
    std::size_t calls = 0;  // answered ones of a client. 0: every Call is new, and nothing is kept
    std::size_t bytes = 0;  // of their Replies
    std::size_t clients = 0;
    std::chrono::seconds age{300};  // since the answer
  };

  explicit ReplayCache(const Limits& limits) : limits_(limits) {}

  [[nodiscard]] Verdict begin(const std::string& client, const Key& key, const Asker& asker, TimePoint now);
  // It was executed: tells all who have asked again meanwhile. `head` and `body` together are the RPC Reply.
  void finish(const std::string& client, const Key& key, ConstBytes head, ConstBytes body, TimePoint now);

  // Clients that something is remembered of.
  [[nodiscard]] std::size_t clients();
  // Who waits for an answer, connections that have gone included.
  [[nodiscard]] std::size_t askers();

 private:
  struct Hash {
    // The sum is as good as random.
    std::size_t operator()(const Key& key) const {
      std::size_t part = 0;
      std::memcpy(&part, key.sum.data(), sizeof part);
      return part;
    }
  };
  struct Entry {
    bool done = false;
    std::shared_ptr<const Octets> reply{};
    TimePoint answered{};
    std::vector<Asker> again{};  // while it is under way: one for each connection that lives, at most
  };
  struct Client {
    std::unordered_map<Key, Entry, Hash> entries{};
    std::deque<Key> answered{};  // the oldest first
    std::size_t bytes = 0;       // of their Replies
    std::size_t under_way = 0;   // bounded by the connections and their credits
    TimePoint heard{};
    std::list<std::string>::iterator place{};  // in quiet_
  };
  // Null: nothing more is remembered.
  [[nodiscard]] Client* client(const std::string& name, TimePoint now);
  void forget_quiet(TimePoint now);
  // What is too old goes, and what is too much.
  void trim(Client& client, TimePoint now) const;

  const Limits limits_;
  std::mutex mu_;
  std::unordered_map<std::string, Client> clients_;
  std::list<std::string> quiet_;  // who has been quiet for longest at the front
};

}  // namespace iwarp::rpc
