#include "tests/support/vectors.h"

namespace iwarp::test {

std::string vector_path(const std::string& name) {
  return std::string(IWARP_TEST_VECTORS) + "/" + name;
}

}  // namespace iwarp::test
