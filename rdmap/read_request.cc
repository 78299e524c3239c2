#include "iwarp/rdmap/read_request.h"

#include "iwarp/base/wire.h"

namespace iwarp::rdmap {

std::optional<ReadRequest> ReadRequest::parse(ConstBytes in) {
  const auto v = FixedView<kSize>::of(in);
  // req: RFC5040-4.2-1 RFC5040-4.2-3
  if (!v || in.size() != kSize) return std::nullopt;
  return ReadRequest{Stag{v->be<std::uint32_t, 0>()}, v->be<std::uint64_t, 4>(), v->be<std::uint32_t, 12>(),
                     Stag{v->be<std::uint32_t, 16>()}, v->be<std::uint64_t, 20>()};
}

// req: RFC5040-4.4-1 RFC5040-4.4-2 RFC5040-A.2-1
void ReadRequest::write_to(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w{out};
  w.be<0>(raw(sink_stag));
  w.be<4>(sink_to);
  w.be<12>(size);
  w.be<16>(raw(source_stag));
  w.be<20>(source_to);
}

}  // namespace iwarp::rdmap
