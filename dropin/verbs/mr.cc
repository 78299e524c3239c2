// Memory regions.
#include <memory>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/pd.h"
#include "iwarp/verbs/memory_region.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace iwarp::dropin {
namespace {

struct Mr {
  ibv_mr c{};
  verbs::MemoryRegion core;
  ddp::Access access = ddp::Access::kLocalRead;
  const verbs::ForkGuard process;
};
IWARP_C_FIRST(Mr, c);

Mr& owner(ibv_mr* mr) {
  return *reinterpret_cast<Mr*>(mr);
}

MutBytes memory(void* addr, std::size_t length) {
  return {static_cast<std::byte*>(addr), length};
}

void show(Mr& mr, ibv_pd* pd, void* addr, std::size_t length) {
  mr.c.context = pd->context;
  mr.c.pd = pd;
  mr.c.addr = addr;
  mr.c.length = length;
  mr.c.lkey = mr.c.rkey = static_cast<std::uint32_t>(mr.core.stag());
  mr.c.handle = mr.c.lkey >> 8;
}

int make(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned flags, ibv_mr*& out) {
  if (!dropin::owner(pd).process.alive()) return EINVAL;
  auto mr = std::make_unique<Mr>();
  if (const int error = to_access(flags, mr->access); error != 0) return error;
  if (length == 0) return EINVAL;
  auto core = verbs::MemoryRegion::register_memory(
      dropin::owner(pd).core, memory(addr, length),
      {.access = mr->access, .iova = (flags & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova});
  if (!core) return to_errno(core.error().code);
  mr->core = std::move(*core);
  show(*mr, pd, addr, length);
  dropin::owner(pd).users.fetch_add(1);
  out = &mr.release()->c;
  return 0;
}

// Answers what ibv_rereg_mr() owes.
int change(Mr& mr, int flags, ibv_pd* pd, void* addr, std::size_t length, unsigned access) {
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0) return IBV_REREG_MR_ERR_INPUT;
  ibv_pd* const new_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : mr.c.pd;
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  void* const new_addr = moves ? addr : mr.c.addr;
  const std::size_t new_length = moves ? length : mr.c.length;
  ddp::Access new_access = mr.access;
  if (new_pd == nullptr || new_length == 0) return IBV_REREG_MR_ERR_INPUT;
  if (!mr.process.alive() || !dropin::owner(new_pd).process.alive()) return IBV_REREG_MR_ERR_INPUT;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 && to_access(access, new_access) != 0) return IBV_REREG_MR_ERR_INPUT;
  const std::uint64_t iova = moves ? reinterpret_cast<std::uintptr_t>(addr) : mr.core.iova();
  const auto done = mr.core.reregister(dropin::owner(new_pd).core, memory(new_addr, new_length),
                                       {.access = new_access, .iova = iova});
  if (!done) {
    errno = to_errno(done.error().code);
    return IBV_REREG_MR_ERR_INPUT;  // the old registration stands
  }
  dropin::owner(new_pd).users.fetch_add(1);
  dropin::owner(mr.c.pd).users.fetch_sub(1);
  mr.access = new_access;
  show(mr, new_pd, new_addr, new_length);
  return 0;
}

}  // namespace
}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return made<ibv_mr>([&](ibv_mr*& out) {
    return make(pd, addr, length, reinterpret_cast<std::uintptr_t>(addr), static_cast<unsigned>(access), out);
  });
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access) {
  return made<ibv_mr>([&](ibv_mr*& out) { return make(pd, addr, length, iova, static_cast<unsigned>(access), out); });
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access) {
  return made<ibv_mr>([&](ibv_mr*& out) { return make(pd, addr, length, iova, access, out); });
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  int answer = IBV_REREG_MR_ERR_INPUT;
  const int thrown = guarded([&] {
    answer = change(owner(mr), flags, pd, addr, length, static_cast<unsigned>(access));
    return 0;
  });
  if (thrown != 0) errno = thrown;
  return answer;
}

int ibv_dereg_mr(ibv_mr* mr) {
  return guarded([&] {
    if (!owner(mr).process.alive()) return 0;
    ibv_pd* const pd = mr->pd;
    delete &owner(mr);
    owner(pd).users.fetch_sub(1);
    return 0;
  });
}
}
