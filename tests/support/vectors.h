// Where the recorded and reviewed data of the tests lie. The path of the tree stands in one object file, so that a
// compiler cache serves the others in any checkout.
#pragma once

#include <string>

namespace iwarp::test {

// tests/vectors/`name`.
[[nodiscard]] std::string vector_path(const std::string& name);

}  // namespace iwarp::test
