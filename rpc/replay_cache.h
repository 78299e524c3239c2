// What a Server has answered, and is about to, so that a Call sent again is not executed again. A Call is known by the
// address of its client, its xid, its length and a sum over its octets. Each client has a part of its own, so that none
// can push out what is remembered of another. Thread-safe. Internal to rpc.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "iwarp/rpc/message.h"

namespace iwarp::rpc {

class ReplayCache {
 public:
  // Who waits for the answer to a Call.
  class Asker {
   public:
    virtual ~Asker() = default;
    // `reply`: a whole RPC Reply.
    virtual void tell(const Octets& reply) = 0;
  };
  struct Key {
    std::uint32_t xid = 0;
    std::uint64_t sum = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Of a whole RPC Call.
  [[nodiscard]] static Key key_of(ConstBytes call);

  enum class Verdict : std::uint8_t {
    kNew,       // to be executed; finish() or forget() follows
    kUnderWay,  // `asker` will be told what comes of it
    kAnswered,  // `asker` was told
  };

  // As ServerOptions has them; `calls` 0: every Call is new, and nothing is kept.
  ReplayCache(std::size_t calls, std::size_t bytes, std::size_t clients)
      : most_calls_(calls), most_bytes_(bytes), most_clients_(clients) {}

  [[nodiscard]] Verdict begin(const std::string& client, const Key& key, const std::shared_ptr<Asker>& asker);
  // It was executed: tells all who have asked again meanwhile. `head` and `body` together are the RPC Reply.
  void finish(const std::string& client, const Key& key, ConstBytes head, ConstBytes body);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.sum ^ key.xid); }
  };
  struct Entry {
    bool done = false;
    Octets reply;
    std::vector<std::shared_ptr<Asker>> again;  // while it is under way: as many as connections have credits for
  };
  struct Client {
    std::unordered_map<Key, Entry, Hash> entries;
    std::deque<Key> answered;  // the oldest first
    std::size_t bytes = 0;     // of their Replies
    std::size_t under_way = 0;
    std::list<std::string>::iterator place{};  // in quiet_
  };
  // Null: nothing more is remembered.
  [[nodiscard]] Client* client(const std::string& name);
  void trim(Client& client) const;

  const std::size_t most_calls_, most_bytes_, most_clients_;
  std::mutex mu_;
  std::unordered_map<std::string, Client> clients_;
  std::list<std::string> quiet_;  // who has been quiet for longest at the front
};

}  // namespace iwarp::rpc
