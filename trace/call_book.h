// Calls that were not answered so far, of all connections of a capture: who sends one again, perhaps on a new
// connection, repeats it. Not thread-safe.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "iwarp/trace/packet.h"
#include "iwarp/trace/record.h"

namespace iwarp::trace {

class CallBook {
 public:
  // Beyond it all are forgotten: far more than are ever under way.
  static constexpr std::size_t kMaxCalls = 65536;

  // The ends of a connection; a client's port changes when it connects again.
  struct Pair {
    std::array<std::byte, 16> client{};
    Endpoint server{};
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };
  struct Earlier {
    std::string connection;
    std::uint64_t frame = 0;
  };

  // A Call was sent. The same one before it that was not answered, if there is one.
  std::optional<Earlier> call(const Pair& ends, const std::string& connection, const SeenRpc& rpc);
  void reply(const Pair& ends, const SeenRpc& rpc);

 private:
  struct Key {
    Pair ends;
    Direction caller;
    std::uint32_t xid, program, version, procedure;
    std::uint64_t bytes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  static Key key(const Pair& ends, const SeenRpc& rpc);

  std::map<Key, Earlier> calls_;
};

}  // namespace iwarp::trace
