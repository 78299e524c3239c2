#include "iwarp/gateway/machine_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace iwarp::gateway {
namespace {

class MachineMemory : public ::testing::Test {
 protected:
  MachineMemory() {
    std::string name = ::testing::TempDir() + "machine-memory-XXXXXX";
    root = ::mkdtemp(name.data());
  }
  ~MachineMemory() override { std::filesystem::remove_all(root); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << '\n';
  }
  [[nodiscard]] std::size_t memory() const { return memory_of_process(root, 1000000); }

  std::filesystem::path root;
};

TEST_F(MachineMemory, IsTheMachinesWithoutGroups) {
  EXPECT_EQ(memory(), 1000000U);
  EXPECT_GT(memory_of_process(), 16U << 20);
}

TEST_F(MachineMemory, IsTheLeastOfAllGroupsAbove) {
  write("proc/self/cgroup", "0::/system.slice/gateway.service");
  write("sys/fs/cgroup/system.slice/gateway.service/memory.max", "max");
  EXPECT_EQ(memory(), 1000000U);
  write("sys/fs/cgroup/system.slice/gateway.service/memory.max", "5000");
  EXPECT_EQ(memory(), 5000U);
  write("sys/fs/cgroup/system.slice/memory.max", "4000");
  EXPECT_EQ(memory(), 4000U);
}

TEST_F(MachineMemory, IsThatOfTheMountInAContainer) {
  write("proc/self/cgroup", "0::/../../elsewhere");
  write("sys/fs/cgroup/memory.max", "3000");
  EXPECT_EQ(memory(), 3000U);
}

TEST_F(MachineMemory, KnowsTheFirstVersionOfGroups) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/docker/1\n0::/b");
  write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "7000");
  write("sys/fs/cgroup/cpu,cpuacct/a/memory.limit_in_bytes", "1");
  write("sys/fs/cgroup/docker/1/memory.max", "1");  // of that name in the second version, which this is not
  EXPECT_EQ(memory(), 7000U);
  write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "9223372036854771712");  // none
  EXPECT_EQ(memory(), 1000000U);
}

}  // namespace
}  // namespace iwarp::gateway
