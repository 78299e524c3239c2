// Runs a fuzz target over files, without libFuzzer: the corpora in ctest, and a finding in a debugger.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/check.h"

namespace {

// A folder stands for the files in it. The name is printed before an input runs that is given by name.
std::size_t replay(const std::filesystem::path& path, bool verbose) {
  if (std::filesystem::is_directory(path)) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) count += replay(entry.path(), verbose);
    return count;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot open %s\n", path.c_str());
    std::exit(2);
  }
  const std::vector<char> content{std::istreambuf_iterator<char>(in), {}};
  if (verbose) std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) count += replay(argv[i], true);
  std::printf("%zu inputs\n", count);
  return count == 0 ? 2 : 0;
}
