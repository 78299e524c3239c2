// Run by the build: writes the man pages of `iwarp` into a directory, and its completion for bash into a file.
#include <cstdio>
#include <fstream>

#include "tools/command_line.h"
#include "tools/completion.h"
#include "tools/man_page.h"

namespace {

bool write(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "cannot write %s\n", file.c_str());
  return static_cast<bool>(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DIRECTORY COMPLETION\n", argv[0]);
    return 2;
  }
  const iwarp::tools::CommandLine commands;
  for (const auto& page : iwarp::tools::man_pages(commands.app())) {
    if (!write(std::string(argv[1]) + "/" + page.name + ".1", page.text)) return 1;
  }
  return write(argv[2], iwarp::tools::bash_completion(commands.app())) ? 0 : 1;
}
