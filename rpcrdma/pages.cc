#include "iwarp/rpcrdma/pages.h"

#include <sys/mman.h>

namespace iwarp::rpcrdma {

MutBytes map_pages(std::size_t bytes) noexcept {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return {};
  // Neighbours become one mapping, of which a huge page would make 2 MiB resident at the first touch.
  (void)::madvise(at, bytes, MADV_NOHUGEPAGE);
  return {static_cast<std::byte*>(at), bytes};
}

void unmap_pages(MutBytes pages) noexcept {
  (void)::munmap(pages.data(), pages.size());
}

void forget_pages(MutBytes pages) noexcept {
  (void)::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

}  // namespace iwarp::rpcrdma
