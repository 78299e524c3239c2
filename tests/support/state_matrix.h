// Tables of states as reviewed files. A difference means that a life changed: if on purpose, replace the file by what
// the test prints.
#pragma once

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/vectors.h"

namespace iwarp::test {

// Every pair, a line each: "FROM + input -> TO", or "-" where next() says that the input does not matter.
template <class State, class Input>
std::string state_matrix(std::size_t states, std::size_t inputs) {
  std::ostringstream out;
  for (std::size_t s = 0; s < states; ++s) {
    for (std::size_t i = 0; i < inputs; ++i) {
      const auto from = static_cast<State>(s);
      const auto on = static_cast<Input>(i);
      const auto to = next(from, on);
      out << name(from) << " + " << name(on) << " -> " << (to ? name(*to) : "-") << "\n";
    }
  }
  return out.str();
}

// The text of tests/vectors/`file`.
inline std::string reviewed(const std::string& file) {
  std::ifstream in(vector_path(file));
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace iwarp::test
