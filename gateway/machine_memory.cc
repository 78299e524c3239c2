#include "iwarp/gateway/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace iwarp::gateway {
namespace {

namespace fs = std::filesystem;

// "max", or no number at all: no limit.
std::size_t limit_in(const fs::path& file) {
  std::ifstream in(file);
  std::size_t octets = 0;
  return in >> octets ? octets : SIZE_MAX;
}

// Of a group and all above it. In a container the names may begin outside of what is mounted: then the mount is the
// group.
std::size_t limit_of(const fs::path& mount, const fs::path& group, const char* file) {
  std::size_t least = limit_in(mount / file);
  fs::path at = mount;
  for (const fs::path& part : group.relative_path()) {
    at /= part;
    least = std::min(least, limit_in(at / file));
  }
  return least;
}

}  // namespace

std::size_t memory_of_process(const fs::path& root, std::size_t machine) {
  std::size_t least = machine;
  std::ifstream groups(root / "proc/self/cgroup");
  const fs::path mount = root / "sys/fs/cgroup";
  for (std::string line; std::getline(groups, line);) {  // "number:controllers:group"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") least = std::min(least, limit_of(mount, group, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, limit_of(mount / "memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

std::size_t memory_of_process() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  const bool known = pages > 0 && page > 0;
  return memory_of_process("/", known ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : SIZE_MAX);
}

}  // namespace iwarp::gateway
