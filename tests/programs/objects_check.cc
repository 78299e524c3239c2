#include "tests/programs/objects_check.h"

namespace iwarp::programs {
namespace {

void check_queue_pair(std::size_t qp, Hosts& hosts, Model& model) {
  const std::string id = "qp" + std::to_string(qp) + ": ";
  const Setup& setup = model.setup();
  const HostSetup& host = setup.hosts[host_of(qp)];
  const auto attributes = hosts.qp(qp).query();
  if (!attributes.ok()) return model.wrong(id + "no attributes");
  const auto& a = *attributes;
  const verbs::QueuePairState state = model.is_over(qp)     ? verbs::QueuePairState::kError
                                      : model.connected(qp) ? verbs::QueuePairState::kRts
                                                            : verbs::QueuePairState::kInit;
  if (a.state != state || hosts.qp(qp).state() != state) model.wrong(id + "in state " + verbs::name(a.state));
  if (((model.may_send(qp) && !model.stands_still(qp)) || model.is_over(qp)) && a.sends_posted != 0)
    model.wrong(id + std::to_string(a.sends_posted) + " requests are left in the send queue");
  if (a.receives_posted != model.receives_open(qp))
    model.wrong(id + std::to_string(a.receives_posted) + " Receives are left");
  if (host.shares && hosts.qp(qp).receives_taken() != model.receives_taken(qp))
    model.wrong(id + std::to_string(hosts.qp(qp).receives_taken()) + " shared Receives were taken");
  if (model.is_over(qp) && !hosts.released(qp)) model.wrong(id + "TCP was not let go");
  if (!hosts.consistent(qp) || hosts.sent_behind_fin()) model.wrong(id + "the core is inconsistent");
  if (!a.established) return;
  const std::uint16_t ord = setup.ord(host_of(qp));
  if (ord != 0 && a.ord != ord) model.wrong(id + "an ORD of " + std::to_string(a.ord));
  if (a.crc != setup.crc || a.markers_received != host.ask_markers ||
      a.markers_sent != setup.hosts[host_of(peer_of(qp))].ask_markers)
    model.wrong(id + "another framing than was asked for");
}

void check_stags(std::size_t qp, Hosts& hosts, Model& model, Saboteur& saboteur) {
  for (std::size_t i = 0; i < kRegions; ++i) {
    const Region& r = model.memory().region(qp, i);
    if (r.state == Region::State::kDying) continue;
    const bool is = saboteur.valid(hosts.context(host_of(qp)).stags().valid(r.stag));
    if (is != (r.state == Region::State::kValid))
      model.wrong("qp" + std::to_string(qp) + " region " + std::to_string(i) + ": the STag is " + (is ? "" : "not ") +
                  "valid");
  }
}

}  // namespace

void check_objects(Hosts& hosts, Model& model, Saboteur& saboteur) {
  for (std::size_t qp = 0; qp < hosts.qps() && model.fault().empty(); ++qp) {
    check_queue_pair(qp, hosts, model);
    check_stags(qp, hosts, model, saboteur);
  }
  for (std::size_t host = 0; host < kHosts; ++host) {
    if (hosts.srq(host) == nullptr) continue;
    model.limit_left(host, hosts.srq(host)->limit());
    if (hosts.srq(host)->posted() != model.shared_left(host))
      model.wrong("host " + std::to_string(host) + ": " + std::to_string(hosts.srq(host)->posted()) +
                  " Receives in the shared queue");
  }
}

}  // namespace iwarp::programs
