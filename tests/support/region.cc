#include "tests/support/region.h"

namespace iwarp::test {

rdmap::SendWr send_wr(std::uint64_t id, const rdmap::SgeList& sges) {
  rdmap::SendWr wr;
  wr.wr_id = id;
  wr.sges = sges;
  return wr;
}

rdmap::SendWr write_wr(std::uint64_t id, const rdmap::SgeList& sges, const Region& remote, std::size_t offset) {
  rdmap::SendWr wr = send_wr(id, sges);
  wr.op = rdmap::SendOp::kWrite;
  wr.remote_stag = remote.stag();
  wr.remote_to = remote.to(offset);
  return wr;
}

rdmap::SendWr read_wr(std::uint64_t id, const rdmap::SgeList& sink, const Region& remote, std::size_t offset) {
  rdmap::SendWr wr = write_wr(id, sink, remote, offset);
  wr.op = rdmap::SendOp::kRead;
  return wr;
}

rdmap::SgeList list(std::initializer_list<rdmap::Sge> sges) {
  rdmap::SgeList out;
  for (const auto& s : sges) EXPECT_TRUE(out.add(s));
  return out;
}

}  // namespace iwarp::test
