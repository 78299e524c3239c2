#include "tests/gateway/ganesha.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace iwarp::gateway::test {
namespace {

constexpr const char* kScript = IWARP_SOURCE_DIR "/scripts/ganesha";

std::uint16_t free_port() {
  boost::asio::io_context io;
  const boost::asio::ip::tcp::acceptor a(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  return a.local_endpoint().port();
}

// Why nfs-ganesha cannot export that directory, if so: it needs file handles, and has to open files by them.
std::string unfit(const std::filesystem::path& directory) {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + MAX_HANDLE_SZ> memory{};
  auto* const handle = new (memory.data()) file_handle{};
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (::name_to_handle_at(AT_FDCWD, directory.c_str(), handle, &mount_id, 0) != 0) {
    return "the file system of " + directory.string() + " has no file handles";
  }
  const int mount = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY);
  const int opened = ::open_by_handle_at(mount, handle, O_RDONLY);
  const bool denied = opened < 0 && errno == EPERM;
  if (opened >= 0) ::close(opened);
  if (mount >= 0) ::close(mount);
  if (denied) return "CAP_DAC_READ_SEARCH is missing (in a container: --cap-add DAC_READ_SEARCH)";
  return opened < 0 ? "files in " + directory.string() + " cannot be opened by handle" : "";
}

int run(const std::string& command) {
  return std::system(command.c_str());
}  // NOLINT: paths of our own making

}  // namespace

std::string Ganesha::start() {
  if (::geteuid() != 0) return "nfs-ganesha needs root";
  if (run("command -v ganesha.nfsd >/dev/null") != 0)
    return "nfs-ganesha is not installed: scripts/install-packages demo";
  std::string why;
  for (const std::filesystem::path& parent :
       {std::filesystem::temp_directory_path(), std::filesystem::path("/var/tmp"), std::filesystem::path("/dev/shm")}) {
    std::string pattern = (parent / "iwarp-ganesha-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) continue;
    if (why = unfit(pattern); why.empty()) {
      root_ = pattern;
      break;
    }
    std::filesystem::remove(pattern);
  }
  if (root_.empty()) return "no directory for nfs-ganesha: " + (why.empty() ? "none can be written" : why);
  std::filesystem::create_directory(root_ / "export");
  nfs_port_ = free_port();
  mount_port_ = free_port();
  started_ = true;
  const int rc = run(std::string(kScript) + " start --work " + (root_ / "work").string() + " --export " +
                     (root_ / "export").string() + " --nfs-port " + std::to_string(nfs_port_) + " --mount-port " +
                     std::to_string(mount_port_));
  EXPECT_EQ(rc, 0) << "scripts/ganesha start failed";
  return {};
}

Ganesha::~Ganesha() {
  if (!started_) return;
  EXPECT_EQ(run(std::string(kScript) + " stop --work " + (root_ / "work").string()), 0);
  std::error_code ec;
  std::filesystem::remove_all(root_, ec);
}

}  // namespace iwarp::gateway::test
