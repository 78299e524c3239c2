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
  [[nodiscard]] ibv_qp_state state() const;
  // For a request with that opcode.
  [[nodiscard]] SendRules rules_for(int opcode);
  // The peer still gets what has completed; nothing completes any more here.
  void retire();

  ibv_qp_ex c{};
  std::shared_ptr<verbs::QueuePair> core;
  // What the send queue is of: `core`, but for a queue pair that is its own peer.
  std::shared_ptr<verbs::QueuePair> sender;
  verbs::QueuePair::Options options;  // of both
  ibv_qp_init_attr init{};            // as it was made
  bool all_signaled = false;
  std::atomic<bool> rfc7306{false}, send_immediate{false};    // the core is known to be told so
  std::atomic<ibv_qp_state> before_connection{IBV_QPS_INIT};  // as RNICs query at first, though c says RESET
  std::atomic<unsigned> access{0};  // as told by ibv_modify_qp(); the rights are those of the regions
  // Of the RoCE presentation, by ibv_modify_qp(): attributes, which of them, and whether they are a peer's address.
  ibv_qp_attr told{};
  int told_mask = 0;
  bool path_told = false;
  bool has_number = false;  // of the rendezvous
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
// ibv_modify_qp() where the device presents itself as RoCE: 0 or an errno value.
[[nodiscard]] int modify_as_roce(Qp& qp, const ibv_qp_attr& attr, int mask);
// Attributes come back as they were set there.
void tell_as_set(const Qp& qp, ibv_qp_attr& attr);
// 0 or an errno value. Writes into `attr` what was made.
[[nodiscard]] int make_qp(ibv_pd* pd, ibv_qp_init_attr& attr, std::unique_ptr<Qp>& out);
// Enters it among those that events name, and counts it where it belongs.
[[nodiscard]] ibv_qp* publish(std::unique_ptr<Qp> qp);

}  // namespace iwarp::dropin
