// Run by the build: writes the man pages of `iwarp` into man1 and man5 of a directory, and its completion for bash into
// a file.
#include <cstdio>
#include <fstream>

#include "tools/command_line.h"
#include "tools/completion.h"
#include "tools/man_config.h"
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
  auto pages = iwarp::tools::man_pages(commands.app());
  pages.push_back(iwarp::tools::gateway_config_page(IWARP_VERSION));
  for (const auto& page : pages) {
    const std::string section(1, page.section);
    if (!write(std::string(argv[1]) + "/man" + section + "/" + page.name + "." + section, page.text)) return 1;
  }
  return write(argv[2], iwarp::tools::bash_completion(commands.app())) ? 0 : 1;
}
