// A private nfs-ganesha for one test, run by scripts/ganesha.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace iwarp::gateway::test {

class Ganesha {
 public:
  Ganesha() = default;
  Ganesha(const Ganesha&) = delete;
  Ganesha& operator=(const Ganesha&) = delete;
  ~Ganesha();

  // Empty, or why there is none: a reason to skip. Ends the test's process never.
  [[nodiscard]] std::string start();
  [[nodiscard]] std::uint16_t nfs_port() const { return nfs_port_; }
  [[nodiscard]] std::uint16_t mount_port() const { return mount_port_; }
  // Of an entry in the directory exported.
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(root_ / "export" / name); }

 private:
  std::filesystem::path root_;
  bool started_ = false;
  std::uint16_t nfs_port_ = 0, mount_port_ = 0;
};

}  // namespace iwarp::gateway::test
