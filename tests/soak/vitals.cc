#include "tests/soak/vitals.h"

#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace iwarp::soak {
namespace {

std::size_t entries(const char* directory) {
  const std::filesystem::directory_iterator begin(directory);
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

}  // namespace

bool memory_is_measurable() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

Vitals Vitals::now() {
  Vitals v;
  if (memory_is_measurable()) {
    malloc_trim(0);
    const struct mallinfo2 heap = mallinfo2();
    v.allocated_bytes = heap.uordblks + heap.hblkhd;
  }
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  v.resident_bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  v.descriptors = entries("/proc/self/fd");
  v.threads = entries("/proc/self/task");
  return v;
}

}  // namespace iwarp::soak
