// A device over which the two ends of a test really talk: the calls of a FakeVerbs, and what is posted to a queue pair
// reaches the one that it is connected to, by memcpy and when it is posted. Memory is reached through registrations
// alone, with the rights and the protection domain that a device asks for; who breaks a rule loses the connection, and
// fails the test. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "tests/device/fake_verbs.h"

namespace iwarp::device::test {

class JoinedVerbs {
 public:
  JoinedVerbs();
  ~JoinedVerbs();
  JoinedVerbs(const JoinedVerbs&) = delete;
  JoinedVerbs& operator=(const JoinedVerbs&) = delete;

  [[nodiscard]] const VerbsTable& table() const { return table_; }
  [[nodiscard]] FakeVerbs& fake() { return fake_; }
  // Ends all connections there are as a network does; how many there were.
  std::size_t cut();
  // The n-th Send counted from here ends its connection, in place of reaching the peer; once. 1 is the next.
  void cut_at_send(std::uint64_t n);
  // From now on requests get no answer, neither yes nor no.
  void ignore_requests();
  // Of all connections so far: octets that Writes and Reads have moved.
  [[nodiscard]] std::uint64_t written() const;
  [[nodiscard]] std::uint64_t read() const;
  // Connections at this moment.
  [[nodiscard]] std::size_t connections() const;

 private:
  friend struct JoinedCalls;
  struct End {
    const ibv_qp* qp = nullptr;
    rdma_cm_id* peer = nullptr;  // null: it has left, or was never there
    bool up = false;
    std::deque<std::pair<std::uint64_t, ibv_sge>> receives{};
  };

  // Those below need mu_.
  [[nodiscard]] std::byte* reach(const ibv_pd* pd, std::uint32_t key, bool remote, std::uint64_t address,
                                 std::size_t bytes, int access);
  [[nodiscard]] bool gather(const ibv_qp* qp, const ibv_send_wr& wr, std::vector<std::byte>& to);
  [[nodiscard]] bool execute(rdma_cm_id* id, const ibv_send_wr& wr);
  void flush(rdma_cm_id* id);
  // Both ends hear of it; of `not_told` no id is left.
  void part(rdma_cm_id* id, int status, const rdma_cm_id* not_told = nullptr);

  FakeVerbs fake_;
  VerbsTable table_;
  mutable std::recursive_mutex mu_;
  std::map<rdma_cm_id*, End> ends_;
  std::map<const ibv_mr*, int> regions_;                 // and the rights to them
  std::map<const ibv_context*, rdma_cm_id*> listening_;  // one on each device
  std::uint64_t sends_left_ = 0, written_ = 0, read_ = 0;
  bool ignores_ = false;
};

}  // namespace iwarp::device::test
