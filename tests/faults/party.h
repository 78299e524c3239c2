// One end of a conversation. Octet n of its `out` may only ever arrive at octet n of the other's `in`.
#pragma once

#include <map>

#include "tests/cm/node.h"

namespace iwarp::faults {

class Party {
 public:
  // `receives`: (offset, length) of the messages that will be sent to it, in order.
  Party(cm::Engine& engine, const stream::Options& options,
        const std::vector<std::pair<std::size_t, std::size_t>>& receives);

  test::Node node;

  // False when the queue pair does not take it: the connection is over, or was agreed to carry no Reads.
  bool post(verbs::SendOp op, std::size_t offset, std::size_t length, const Party& peer);
  // Waits until the latest post has completed. False when it failed, or did not come within `patience`.
  bool await_post(std::chrono::milliseconds patience);
  // ... until the next message has arrived.
  bool await_message(std::chrono::milliseconds patience);
  // Patience was lost, or the connection does not admit what is to be said.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  // All that was posted must have completed; whatever is in memory must be what the peer has there.
  void check_at_end(const Party& peer);

 private:
  bool await(std::uint64_t id, std::chrono::milliseconds patience);
  void poll();

  std::map<std::uint64_t, std::optional<verbs::Completion>> posted_;
  std::uint64_t next_post_ = 1000;
  std::uint64_t next_message_ = 0;
  bool gave_up_ = false;
};

}  // namespace iwarp::faults
