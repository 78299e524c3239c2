#include "iwarp/rdmap/atomic.h"

#include <atomic>
#include <bit>

#include "iwarp/base/wire.h"

namespace iwarp::rdmap {
namespace {

// Fields are added apart: the bits of `mask` are their most significant ones, and no carry leaves those.
std::uint64_t masked_sum(std::uint64_t a, std::uint64_t b, std::uint64_t mask) {
  // req: RFC7306-5.1.1-1 RFC7306-5.1.1-2 RFC7306-5.1.1-8 RFC7306-5.1.1-9
  return ((a & ~mask) + (b & ~mask)) ^ ((a ^ b) & mask);
}

}  // namespace

bool AtomicRequest::known() const {
  return code == static_cast<std::uint8_t>(AtomicCode::kFetchAdd) ||
         code == static_cast<std::uint8_t>(AtomicCode::kCmpSwap);
}

std::optional<AtomicRequest> AtomicRequest::parse(ConstBytes in) {
  const auto v = FixedView<kSize>::of(in);
  if (!v || in.size() != kSize) return std::nullopt;
  // req: RFC7306-4-2 RFC7306-5.2.1-1; reserved bits are not looked at: RFC7306-5.2.1-2
  return AtomicRequest{.code = static_cast<std::uint8_t>(v->be<std::uint32_t, 0>() & 0xF),
                       .id = v->be<std::uint32_t, 4>(),
                       .stag = Stag{v->be<std::uint32_t, 8>()},
                       .to = v->be<std::uint64_t, 12>(),
                       .operands = {.data = v->be<std::uint64_t, 20>(),
                                    .mask = v->be<std::uint64_t, 28>(),
                                    .compare = v->be<std::uint64_t, 36>(),
                                    .compare_mask = v->be<std::uint64_t, 44>()}};
}

void AtomicRequest::write_to(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w{out};
  w.be<0>(std::uint32_t{code});
  w.be<4>(id);
  w.be<8>(raw(stag));
  w.be<12>(to);
  w.be<20>(operands.data);  // req: RFC7306-5.2.1-8
  w.be<28>(operands.mask);  // req: RFC7306-5.2.1-9
  w.be<36>(operands.compare);
  w.be<44>(operands.compare_mask);
}

std::optional<AtomicResponse> AtomicResponse::parse(ConstBytes in) {
  const auto v = FixedView<kSize>::of(in);
  if (!v || in.size() != kSize) return std::nullopt;
  return AtomicResponse{v->be<std::uint32_t, 0>(), v->be<std::uint64_t, 4>()};
}

// req: RFC7306-4-3 RFC7306-5.2.2-1
void AtomicResponse::write_to(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w{out};
  w.be<0>(id);
  w.be<4>(original);
}

std::uint64_t apply(const AtomicRequest& request, std::uint64_t original) {
  const AtomicOperands& o = request.operands;
  if (request.code == static_cast<std::uint8_t>(AtomicCode::kFetchAdd)) return masked_sum(original, o.data, o.mask);
  // req: RFC7306-5.1.2-1 RFC7306-5.1.2-4
  if (((o.compare ^ original) & o.compare_mask) != 0) return original;
  return (original & ~o.mask) | (o.data & o.mask);
}

std::uint64_t execute(const AtomicRequest& request, MutBytes target) {
  // Against whoever changes it as an atomic, of this connection or another. req: RFC7306-5-2 RFC7306-5-3 RFC7306-5.3-1
  // req: RFC7306-5.4-2 RFC7306-5.4-3; in the octet order of this host: RFC7306-5.1.1-10
  const std::atomic_ref<std::uint64_t> memory(*reinterpret_cast<std::uint64_t*>(target.data()));
  std::uint64_t original = memory.load();
  for (;;) {
    const std::uint64_t result = apply(request, original);
    // What would not change is not written. req: RFC7306-5-1 RFC7306-1.1-3 RFC7306-5.1.2-2 RFC7306-5.1.1-11
    if (result == original || memory.compare_exchange_weak(original, result)) return original;
  }
}

}  // namespace iwarp::rdmap
