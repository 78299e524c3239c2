#include "tools/command_line.h"

int main(int argc, char** argv) {
  return iwarp::tools::CommandLine().run(argc, argv);
}
