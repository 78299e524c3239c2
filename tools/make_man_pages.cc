// Run by the build: writes the man pages of `iwarp` into a directory.
#include <cstdio>
#include <fstream>

#include "tools/command_line.h"
#include "tools/man_page.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const iwarp::tools::CommandLine commands;
  for (const auto& page : iwarp::tools::man_pages(commands.app())) {
    const std::string file = std::string(argv[1]) + "/" + page.name + ".1";
    std::ofstream out(file);
    out << page.text;
    out.close();
    if (!out) {
      std::fprintf(stderr, "cannot write %s\n", file.c_str());
      return 1;
    }
  }
  return 0;
}
