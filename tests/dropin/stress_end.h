// One end of a connection of `dropin_stress connects`: what a program of one thread does with it, by its plan.
#pragma once

#include "tests/dropin/stress_support.h"
//
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "tests/dropin/stress_course.h"

namespace iwarp::stress {

// What the two ends tell each other beside the connection. Both are in this process.
struct Shared {
  struct OfSide {
    std::atomic<std::uint64_t> target{0}, source{0};  // addresses for the peer's Writes and Reads
    std::atomic<std::uint32_t> key{0};
    std::atomic<unsigned> sent{0}, received{0};  // messages, completed without error
    std::atomic<bool> saw_the_end{false};        // all its requests have completed before it was destroyed
  };
  [[nodiscard]] OfSide& of(Side side) { return sides.at(static_cast<unsigned>(side)); }

  std::atomic<std::uint16_t> port{0};    // where the server listens, or has listened
  std::atomic<bool> may_end{false};      // before, nothing may fail
  std::atomic<bool> client_gone{false};  // no request of it comes any more, but what is on its way
  std::array<OfSide, 2> sides;
};

struct Totals {
  std::atomic<unsigned> established{0}, completed{0}, failed{0}, compared_octets{0};
};
extern Totals totals;

class End {
 public:
  // The id becomes this end's. `channel`: null: the one that the id has is others' too.
  End(const Course& course, Side side, Shared& shared, rdma_cm_id* id, rdma_event_channel* channel);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void resolve_address();
  void resolve_route();
  // Queue pair, memory, Receives. The id knows its device.
  void prepare();
  void connect();
  void accept();
  // What came of either.
  [[nodiscard]] rdma_cm_event_type outcome();
  // What the peer has said when it rejected.
  [[nodiscard]] const std::string& rejection() const { return rejection_; }
  // Requests and messages, until the plan says that it ends, or the peer has ended.
  void converse();
  // Ends by the plan's way, and destroys everything.
  void finish();

 private:
  // Takes an event, if one is there or comes in that time.
  bool look(int timeout_ms);
  void on_event(rdma_cm_event* event);
  void expect(rdma_cm_event_type type);
  void migrate();
  void acknowledge_held();

  // Parts of the memory, each with a piece for each request.
  enum : unsigned { kOut, kIn, kTarget, kSource, kSink, kParts };
  static constexpr unsigned kSpareReceives = 2;
  static constexpr std::uint64_t kFirstReceive = 1000;  // wr_id; those of requests are smaller

  // Where the data of that piece are from.
  [[nodiscard]] unsigned origin(Side side, unsigned part, unsigned op) const;
  [[nodiscard]] std::span<std::byte> piece(unsigned part, unsigned op, std::size_t length) const;
  [[nodiscard]] rdma_conn_param parameters() const;
  [[nodiscard]] bool over() const;
  void receive();
  bool post_some();
  void post(unsigned op);
  bool poll();
  void completed(const ibv_wc& wc);
  void sent(unsigned op);
  void arrived(unsigned nth, std::uint32_t length);
  void rest();
  void drain();

  void end_established();
  void forget_memory();
  void destroy_id();
  void poll_until(const std::atomic<bool>& stopped) const;
  void destroy_queues();

  const Course& course_;
  const Side side_;
  const Plan &plan_, &peer_plan_;
  Shared& shared_;
  rdma_cm_id* id_;
  std::vector<rdma_event_channel*> channels_;  // of this end alone
  rdma_cm_event* held_ = nullptr;              // taken, and not acknowledged
  rdma_cm_event_type last_ = RDMA_CM_EVENT_ADDR_CHANGE;
  bool established_ = false, disconnected_ = false, failed_ = false;
  std::string rejection_;
  std::thread late_;

  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_comp_channel* completions_ = nullptr;
  std::vector<ibv_cq*> queues_;  // one, or that of Receives behind that of the others
  std::unique_ptr<std::byte[]> memory_;
  std::vector<unsigned> peer_sends_;  // which of the peer's requests are messages
  unsigned posted_ = 0, done_ = 0, receives_ = 0, receives_done_ = 0, arrived_ = 0;
  unsigned idle_ = 0;
};

}  // namespace iwarp::stress
