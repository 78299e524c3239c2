#include "tests/programs/make_setup.h"

namespace iwarp::programs {
namespace {

HostSetup host_setup(Random& r) {
  HostSetup h;
  h.shares = r.once_in(3);
  h.one_cq = r.once_in(2);
  h.eager = r.once_in(2);
  h.direct_placement = !r.once_in(4);
  h.early_wake = !r.once_in(3);
  h.ask_markers = r.once_in(3);
  h.receive_wait = r.once_in(3);
  const std::uint32_t forms = 1 + r.below(7);
  h.rtr_send = (forms & 1) != 0;
  h.rtr_write = (forms & 2) != 0;
  h.rtr_read = (forms & 4) != 0;
  h.ird = static_cast<std::uint16_t>(r.once_in(10) ? 0 : 1 + r.below(16));
  h.ord = static_cast<std::uint16_t>(r.once_in(10) ? 0 : 1 + r.below(16));
  h.sq_depth = r.among({1U, 3U, 8U, 16U, 32U, 64U});
  h.rq_depth = r.among({1U, 3U, 8U, 16U, 32U});
  h.srq_depth = r.among({2U, 8U, 32U, 64U});
  h.max_inline = r.among({0U, 16U, 64U, 300U, 2000U});
  h.emss = r.among({128U, 536U, 1448U, 1460U, 8960U}) + r.below(40);
  h.scratch = r.among({64U, 1500U, 16384U, 65536U});
  h.fpdu = r.among({mpa::FpduPolicy::kEmss, mpa::FpduPolicy::k16k, mpa::FpduPolicy::kMax});
  h.addressing = static_cast<std::uint8_t>(r.below(4));
  return h;
}

}  // namespace

Setup make_setup(Random& r) {
  Setup s;
  s.pairs = r.once_in(4) ? 2 : 1;
  s.initiator = r.below(kHosts);
  s.crc = r.once_in(2);
  s.peer_to_peer = !r.once_in(4);
  s.relaxed = r.once_in(2);
  s.rfc7306 = !r.once_in(4);
  s.reset_keeps = r.once_in(2);
  s.settle_cut = r.among({0U, 0U, 1U, 7U, 100U, 1460U});
  s.region_bytes = r.among({1024U, 4096U, 8192U, 8192U, 16384U, 65536U});
  for (HostSetup& h : s.hosts) h = host_setup(r);
  if (!s.crc && r.once_in(2)) s.hosts[0].ask_markers = s.hosts[1].ask_markers = false;  // octets straight into place
  HostSetup &a = s.hosts[0], &b = s.hosts[1];
  if (!(a.rtr_send && b.rtr_send) && !(a.rtr_write && b.rtr_write) && !(a.rtr_read && b.rtr_read))
    a.rtr_write = b.rtr_write = true;
  if (r.once_in(12)) {  // nothing settles the depths: the applications know them
    s.revision = 1;
    s.peer_to_peer = s.relaxed = false;
    b.ird = a.ord;
    a.ird = b.ord;
  }
  return s;
}

}  // namespace iwarp::programs
