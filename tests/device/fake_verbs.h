// A device that a test plays: a VerbsTable whose calls keep record and do what they are told. It fails the test when
// objects go in the wrong order, when an id is destroyed while an event of it is not acknowledged, and when something
// is left at its end.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "iwarp/device/device.h"

namespace iwarp::device::test {

class FakeVerbs {
 public:
  FakeVerbs();
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  [[nodiscard]] const VerbsTable& table() const { return table_; }
  // By its name; closed with the fake.
  [[nodiscard]] std::shared_ptr<Device> open(boost::asio::io_context& io, const std::string& name = "fake0");

  // The next call of that name fails with this errno value.
  void fail(const std::string& call, int error) {
    const std::lock_guard lock(mu_);
    fails_[call] = error;
  }
  // Calls made so far.
  [[nodiscard]] int calls(const std::string& name) const;
  // Of any kind that still exist.
  [[nodiscard]] std::size_t live() const;

  // --- Events.
  struct Told {
    int status = 0;
    std::vector<std::byte> private_data{};
    std::uint8_t responder_resources = 0, initiator_depth = 0;
  };
  void tell(rdma_cm_id* id, rdma_cm_event_type type, const Told& what);
  void tell(rdma_cm_id* id, rdma_cm_event_type type) { tell(id, type, {}); }
  // A CONNECT_REQUEST at `listener`; the new id is over the device of that index.
  rdma_cm_id* request(rdma_cm_id* listener, const Told& what, std::size_t device = 0);
  // The id made last, and the one that listens.
  [[nodiscard]] rdma_cm_id* last_id() const { return last_id_; }
  void async(ibv_event_type type, ibv_qp* qp, ibv_cq* cq = nullptr);

  // --- Queues, of the queue pair of an id.
  struct SendRequest {
    ibv_send_wr wr{};
    std::vector<ibv_sge> sges{};
  };
  std::vector<SendRequest> sends;    // posted so far
  std::deque<ibv_recv_wr> receives;  // likewise, with their lengths in `receive_bytes`
  std::deque<std::uint32_t> receive_bytes;
  void complete(rdma_cm_id* id, ibv_wc wc);
  void complete(rdma_cm_id* id, std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS, std::uint32_t bytes = 0);
  // All that was posted and has not completed.
  void flush(rdma_cm_id* id);
  std::size_t sends_completed = 0, receives_completed = 0;
  int refuse_sends_from = -1;  // index in one call of post_send()

  struct Region {
    void* address;
    std::size_t bytes;
    int access;
  };
  [[nodiscard]] std::vector<Region> regions() const;
  // RLIMIT_MEMLOCK, as `more` octets beyond what is registered now.
  void limit_locked(std::size_t more);
  rdma_conn_param last_param{};              // of accept() or connect(), without private data
  std::vector<std::byte> last_private_data;  // of these

  ibv_device_attr attributes{};
  ibv_transport_type transport = IBV_TRANSPORT_IWARP;
  // connect() waits until release_connects().
  void hold_connects();
  void release_connects();
  std::size_t device_of_address = 0;  // what ids get that are bound or resolved
  bool there = true;                  // the devices; false: get_devices() finds none
  std::function<void()> in_listen;    // called once, inside listen()
  // From now on their events cannot be read, and their descriptors are ready: the devices were removed.
  void break_async();
  void break_completions(rdma_cm_id* id);

 private:
  struct Channel;
  struct Id;
  struct Cq;
  struct Completions;
  friend struct Calls;

  [[nodiscard]] bool fails(const char* name);  // counts, and sets errno

  VerbsTable table_{};
  std::array<ibv_device, 2> devices_{};
  std::array<ibv_context, 2> contexts_{};
  std::map<std::string, int> fails_, counts_;
  mutable std::recursive_mutex mu_;
  std::set<Id*> ids_;
  std::set<Channel*> channels_;
  std::set<Cq*> cqs_;
  std::set<Completions*> completions_;
  std::set<ibv_pd*> pds_;
  std::map<ibv_mr*, Region> regions_;
  std::size_t lockable_ = SIZE_MAX;
  [[nodiscard]] std::size_t locked() const;  // needs mu_
  std::deque<ibv_async_event> async_;
  bool async_broken_ = false, completions_broken_ = false;
  std::uint32_t next_key_ = 100;
  int unacknowledged_async_ = 0;
  rdma_cm_id* last_id_ = nullptr;
  std::vector<std::shared_ptr<Device>> opened_;
  std::mutex hold_mu_;
  std::condition_variable held_;
  bool holding_ = false;
};

// Runs until `done()`, or false after 5 s.
template <class Done>
[[nodiscard]] bool run_until(boost::asio::io_context& io, Done done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(2));
  }
  return true;
}
// What is ready, and what that makes ready.
inline void settle(boost::asio::io_context& io) {
  for (int i = 0; i < 20; ++i) {
    io.restart();
    io.poll();
  }
}

}  // namespace iwarp::device::test
