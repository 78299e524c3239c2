// Queue pairs, extended ones included: each is both.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/events.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin {

class WrBuilder;

struct Qp {
  Qp();
  ~Qp();

  [[nodiscard]] ibv_qp& face() { return c.qp_base; }
  // The queue pair of that number; null: it is destroyed, or never was. With events_mutex() held.
  [[nodiscard]] static Qp* find(std::uint32_t number);
  // What ibv_query_qp() tells.
  [[nodiscard]] ibv_qp_state state() const { return to_qp_state(core->state(), before_connection.load()); }
  // For a request with that opcode.
  [[nodiscard]] SendRules rules_for(int opcode);

  ibv_qp_ex c{};
  std::shared_ptr<verbs::QueuePair> core;
  ibv_qp_init_attr init{};  // as it was made
  bool all_signaled = false;
  std::atomic<bool> rfc7306{false}, send_immediate{false};    // the core is known to be told so
  std::atomic<ibv_qp_state> before_connection{IBV_QPS_INIT};  // as RNICs query at first, though c says RESET
  std::atomic<unsigned> access{0};  // as told by ibv_modify_qp(); the rights are those of the regions
  EventCount async_events;
  const verbs::ForkGuard process;
  std::unique_ptr<WrBuilder> builder;  // of ibv_wr_*; null: it has none
};
IWARP_C_FIRST(Qp, c);

[[nodiscard]] inline Qp& owner(ibv_qp* qp) {
  return *reinterpret_cast<Qp*>(qp);
}
[[nodiscard]] inline Qp& owner(ibv_qp_ex* qp) {
  return *reinterpret_cast<Qp*>(qp);
}

// Operations of ibv_context and verbs_context.
int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
// 0 or an errno value. Writes into `attr` what was made.
[[nodiscard]] int make_qp(ibv_pd* pd, ibv_qp_init_attr& attr, std::unique_ptr<Qp>& out);
// Enters it among those that events name, and counts it where it belongs.
[[nodiscard]] ibv_qp* publish(std::unique_ptr<Qp> qp);

}  // namespace iwarp::dropin
