#include "tests/support/mixed_scenario.h"

namespace iwarp::test {
namespace {

std::string digest(const Bytes& bytes) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const std::byte b : bytes) h = (h ^ std::to_integer<std::uint64_t>(b)) * 1099511628211ULL;
  return std::to_string(h) + "\n";
}

rdmap::SendWr invalidating(rdmap::SendWr wr, Stag stag) {
  wr.op = rdmap::SendOp::kSendInvalidate;
  wr.remote_stag = stag;
  wr.solicited = true;
  return wr;
}

}  // namespace

std::string run_mixed_scenario(Pair& p) {
  Endpoint& a = p.initiator;
  Endpoint& b = p.responder;
  // Large enough for the direct path with long FPDUs, and for several segments with short ones. Nothing overlaps.
  constexpr std::size_t kLarge = 9001;
  Region& a_source = a.region(kLarge);
  Region& a_remote = a.region(kLarge, kRemoteAll);
  Region& a_sink = a.region(6100);
  Region& a_recv = a.region(3 * kLarge);
  Region& b_source = b.region(kLarge);
  Region& b_remote = b.region(2 * kLarge, kRemoteAll | ddp::Access::kRemoteInvalidate, 0x10000, b.key());
  Region& b_sink = b.region(5600);
  Region& b_recv = b.region(5 * kLarge);
  a_source.fill(pattern(kLarge, 1));
  a_remote.fill(pattern(kLarge, 2));
  b_source.fill(pattern(kLarge, 3));
  b_remote.fill(pattern(2 * kLarge, 4));

  for (std::uint64_t i = 0; i < 4; ++i) {
    b.post(rdmap::RecvWr{10 + i, list({b_recv.sge(i * kLarge + 1, 3), b_recv.sge(i * kLarge + 20, 5000)})});
  }
  for (std::uint64_t i = 0; i < 2; ++i) a.post(rdmap::RecvWr{20 + i, a_recv.sge(i * kLarge + 3, 8000)});
  a.post(send_wr(1, list({a_source.sge(1, 0), a_source.sge(3, 77), a_source.sge(101, 5)})));
  a.post(write_wr(2, a_source.all(), b_remote, 7));
  a.post(read_wr(3, a_sink.sge(33, 6000), b_remote, 1));
  a.post(send_wr(4, {}));
  a.post(read_wr(5, {}, b_remote));
  rdmap::SendWr fenced = send_wr(6, a_source.sge(5, 4500));
  fenced.fence = true;
  a.post(fenced);
  b.post(write_wr(31, b_source.sge(0, 2000), a_remote, 500));
  b.post(read_wr(32, b_sink.sge(20, 5555), a_remote));
  b.post(send_wr(33, b_source.sge(9, 4097)));
  p.settle();
  a.post(invalidating(send_wr(7, a_source.sge(11, 1)), b_remote.stag()));
  b.post(send_wr(34, b_source.sge(0, 5)));
  p.settle();
  a.disconnect(p.now);
  p.run();
  std::string out = p.log();
  for (Region* r : {&a_source, &a_remote, &a_sink, &a_recv, &b_source, &b_remote, &b_sink, &b_recv})
    out += digest(r->bytes());
  return out;
}

}  // namespace iwarp::test
