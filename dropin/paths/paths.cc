// A library that `iwarp run` preloads: programs that look for a device in the file system before they ask libibverbs
// are told that there is one. Open MPI's btl openib looks at /sys/class/infiniband, UCX at /dev/infiniband/NAME. What
// really exists is never hidden.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace {

constexpr std::string_view kClass = "/sys/class/infiniband", kDevices = "/dev/infiniband";
// As Linux numbers uverbs0.
constexpr unsigned kMajor = 231, kMinor = 192;

// The type of what is said to be there; 0: nothing of ours.
mode_t made_up(const char* path) {
  if (path == nullptr) return 0;
  const std::string_view name(path);
  if (name == kClass || name == kDevices) return S_IFDIR | 0755;
  const bool in_devices =
      name.size() > kDevices.size() + 1 && name.starts_with(kDevices) && name[kDevices.size()] == '/';
  return in_devices ? S_IFCHR | 0666 : 0;
}

template <typename Stat>
int fill(const char* path, Stat* to) {
  const mode_t mode = made_up(path);
  if (mode == 0) return -1;
  std::memset(to, 0, sizeof *to);
  to->st_mode = mode;
  to->st_nlink = 1;
  if (S_ISCHR(mode)) to->st_rdev = makedev(kMajor, kMinor);
  return 0;
}

// `result`, unless it is that there is no such file and there is to be one: then errno is what it was, `before`.
template <typename Stat>
int filled(int result, int before, const char* path, Stat* to) {
  if (result == 0 || errno != ENOENT || fill(path, to) != 0) return result;
  errno = before;
  return 0;
}

}  // namespace

extern "C" {

#define IWARP_SHOWN __attribute__((visibility("default")))

// By the calls that these are short for, which nobody replaces.
IWARP_SHOWN int stat(const char* path, struct stat* to) noexcept {
  const int before = errno;
  return filled(::fstatat(AT_FDCWD, path, to, 0), before, path, to);
}
IWARP_SHOWN int stat64(const char* path, struct stat64* to) noexcept {
  const int before = errno;
  return filled(::fstatat64(AT_FDCWD, path, to, 0), before, path, to);
}
IWARP_SHOWN int lstat(const char* path, struct stat* to) noexcept {
  const int before = errno;
  return filled(::fstatat(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW), before, path, to);
}
IWARP_SHOWN int lstat64(const char* path, struct stat64* to) noexcept {
  const int before = errno;
  return filled(::fstatat64(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW), before, path, to);
}

IWARP_SHOWN int access(const char* path, int mode) noexcept {
  const int before = errno;
  const int result = ::faccessat(AT_FDCWD, path, mode, 0);
  if (result == 0 || errno != ENOENT || made_up(path) == 0) return result;
  errno = before;
  return 0;
}

}  // extern "C"
