#include "iwarp/gateway/rdma_counters.h"

namespace iwarp::gateway {
namespace {

template <class Add>
void each(const cm::Counters& c, Add add) {
  add(RdmaOperation::kSend, Way::kIn, c.rx.send_bytes);
  add(RdmaOperation::kSend, Way::kOut, c.tx.send_bytes);
  add(RdmaOperation::kWrite, Way::kIn, c.rx.write_bytes);
  add(RdmaOperation::kWrite, Way::kOut, c.tx.write_bytes);
  add(RdmaOperation::kRead, Way::kIn, c.rx.read_response_bytes);
  add(RdmaOperation::kRead, Way::kOut, c.tx.read_response_bytes);
}

}  // namespace

void record_counters(Stats& to, const cm::Counters& c) {
  each(c, [&](RdmaOperation op, Way way, std::uint64_t n) { to.rdma_bytes(op, way, n); });
  to.early_wakes(c.tx.wakes);
}

void add_counters(Stats::Snapshot& to, const cm::Counters& c) {
  each(c, [&](RdmaOperation op, Way way, std::uint64_t n) {
    to.rdma_bytes[static_cast<std::size_t>(op)][static_cast<std::size_t>(way)] += n;
  });
  to.early_wakes += c.tx.wakes;
}

}  // namespace iwarp::gateway
