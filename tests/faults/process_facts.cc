#include "tests/faults/process_facts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

namespace iwarp::faults {
namespace {

std::string proc(pid_t process, const char* entry) {
  return "/proc/" + std::to_string(process) + "/" + entry;
}

}  // namespace

void limit(pid_t process, __rlimit_resource resource, std::size_t value) {
  rlimit limits{};
  if (::prlimit(process, resource, nullptr, &limits) != 0)
    throw std::system_error(errno, std::generic_category(), "prlimit");
  limits.rlim_cur = value;
  if (::prlimit(process, resource, &limits, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(), "prlimit");
}

std::size_t descriptors(pid_t process) {
  const std::filesystem::directory_iterator begin(proc(process, "fd"));
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

std::size_t descriptors_at_rest(pid_t process) {
  std::size_t least = descriptors(process);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    least = std::min(least, descriptors(process));
  }
  return least;
}

void leave_descriptors(pid_t process, std::size_t more) {
  // Numbered from 0, with gaps where the process inherited some.
  const auto open = [&](std::size_t number) {
    const auto entry = proc(process, ("fd/" + std::to_string(number)).c_str());
    return std::filesystem::exists(std::filesystem::symlink_status(entry));
  };
  std::size_t end = 0;
  for (; more > 0; ++end) more -= open(end) ? 0 : 1;
  limit(process, RLIMIT_NOFILE, end);
}

std::chrono::milliseconds cpu_time(pid_t process) {
  std::ifstream in(proc(process, "stat"));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  // Behind the name in brackets: field 3. Wanted are fields 14 and 15, in ticks.
  std::size_t at = text.rfind(')') + 2;
  for (int field = 3; field < 14; ++field) at = text.find(' ', at) + 1;
  std::size_t length = 0;
  const long user = std::stol(text.substr(at), &length);
  const long system = std::stol(text.substr(at + length));
  return std::chrono::milliseconds((user + system) * 1000 / ::sysconf(_SC_CLK_TCK));
}

std::uint64_t sleeps(pid_t process) {
  static const std::string kField = "voluntary_ctxt_switches:";
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator(proc(process, "task"))) {
    std::ifstream in(task.path() / "status");
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with(kField)) sum += std::stoull(line.substr(kField.size()));
    }
  }
  return sum;
}

Memory memory(pid_t process) {
  Memory m;
  std::ifstream in(proc(process, "status"));
  for (std::string line; std::getline(in, line);) {  // "VmHWM:      1234 kB"
    if (line.starts_with("VmSize:")) m.mapped = std::stoul(line.substr(7)) * 1024;
    if (line.starts_with("VmHWM:")) m.peak = std::stoul(line.substr(6)) * 1024;
  }
  return m;
}

}  // namespace iwarp::faults
