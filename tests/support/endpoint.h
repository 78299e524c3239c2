// One stream::Connection with its STag table and memory, driven the way its header demands by a test that plays
// network, clock and application. After each input the connection must say that it is consistent.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "iwarp/stream/connection.h"
#include "tests/support/region.h"

namespace iwarp::test {

class Endpoint {
 public:
  // `number` makes the Protection Domain, stream id and STags of this end its own. `scratch_bytes`: what the driver
  // lends for receiving. `shared`: where it takes its Receives, if it has none of its own.
  explicit Endpoint(unsigned number, const stream::Options& options = {}, std::size_t scratch_bytes = 64 * 1024,
                    rdmap::ReceiveSource* shared = nullptr);

  [[nodiscard]] stream::Connection& conn() { return conn_; }
  [[nodiscard]] ddp::StagTable& stags() { return stags_; }
  [[nodiscard]] ddp::StreamKey key() const { return key_; }
  Region& region(std::size_t bytes, ddp::Access access = kLocal, std::uint64_t base_to = 0x10000,
                 std::optional<ddp::StreamKey> owner = std::nullopt);

  void start(mpa::Initiator initiator, TimePoint now);
  void start(mpa::Responder responder, TimePoint now);

  // Takes at most `limit` octets of what the connection wants to send, as one write.
  [[nodiscard]] Bytes send(std::size_t limit, TimePoint now);
  // Hands octets over as one read. Gives how many the connection took; 0 when it does not want any.
  std::size_t receive(ConstBytes bytes, TimePoint now);
  void end(stream::TcpEnd how, TimePoint now);
  void expire(TimePoint now);
  void disconnect(TimePoint now);
  // Drains events and completions into the lists below. All of the above do it at their end.
  void collect();

  std::vector<stream::Event> events;
  std::vector<rdmap::Completion> sends;
  std::vector<rdmap::Completion> recvs;

  [[nodiscard]] const stream::Established* established() const;
  [[nodiscard]] const stream::Disconnected* disconnected() const;
  // "send 1 ok", "recv 7 flushed", ... in order of each queue, and the events: what must not depend on fragmentation.
  [[nodiscard]] std::string log() const;

  // Posting with the results checked.
  void post(const rdmap::SendWr& wr);
  void post(const rdmap::RecvWr& wr);

 private:
  void check();

  ddp::StagTable stags_;
  ddp::StreamKey key_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Region>> regions_;
  endpoint::Endpoint endpoint_;
  stream::Connection conn_;
  Bytes scratch_[2];
  unsigned turn_ = 0;
};

}  // namespace iwarp::test
