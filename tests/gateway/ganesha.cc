#include "tests/gateway/ganesha.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>

namespace iwarp::gateway::test {
namespace {

constexpr const char* kScript = IWARP_SOURCE_DIR "/scripts/ganesha";

std::uint16_t free_port() {
  boost::asio::io_context io;
  const boost::asio::ip::tcp::acceptor a(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  return a.local_endpoint().port();
}

int run(const std::string& command) {
  return std::system(command.c_str());
}  // NOLINT: paths of our own making

}  // namespace

std::string Ganesha::start() {
  if (::geteuid() != 0) return "nfs-ganesha needs root";
  if (run("command -v ganesha.nfsd >/dev/null") != 0)
    return "nfs-ganesha is not installed: scripts/install-packages demo";
  std::string pattern = (std::filesystem::temp_directory_path() / "iwarp-ganesha-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return "no temporary directory";
  root_ = pattern;
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
