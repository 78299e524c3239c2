// dropin_stress MODE [COUNT] [OPTIONS]: the drop-in libraries under stress, by a program of C's interface alone. What
// is wrong ends it with status 1, what hangs with status 3.
//
//   connects COUNT   connections whose ends take random courses, and end at random moments in random ways
//     --seed S       the same seed gives the same courses
//     --threads N    connections at a time
//     --only I       connection I alone
//     --list         prints the courses
//   pairs COUNT      so many queue pairs at once
//   fork COUNT       children, while the connections of their parent go on
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/dropin/stress_support.h"

namespace {

[[noreturn]] void usage() {
  std::fputs("usage: dropin_stress connects|pairs|fork COUNT [--seed S] [--threads N] [--only I] [--list]\n", stderr);
  std::exit(2);
}

unsigned long number(const char* text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0') usage();
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace iwarp::stress;
  if (argc < 3) usage();
  const std::string_view mode = argv[1];
  Settings settings;
  settings.program = argv[0];
  settings.count = static_cast<unsigned>(number(argv[2]));
  for (int i = 3; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--list") {
      settings.list = true;
      continue;
    }
    if (i + 1 == argc) usage();
    const unsigned long value = number(argv[++i]);
    if (option == "--seed") {
      settings.seed = value;
    } else if (option == "--threads") {
      settings.threads = static_cast<unsigned>(value);
    } else if (option == "--only") {
      settings.only = static_cast<int>(value);
    } else {
      usage();
    }
  }
  (void)::setenv("IWARP_ADDRESS", "127.0.0.1", 0);
  watch(kPatience * 2);
  if (mode == "connects") {
    connects(settings);
  } else if (mode == "pairs") {
    pairs(settings);
  } else if (mode == "fork") {
    forks(settings);
  } else if (mode == "fork-child") {
    exec_child(static_cast<std::uint16_t>(settings.count));
  } else {
    usage();
  }
  return 0;
}
