// What an exception says, for a user: no place in a source file, which Boost's texts have.
#pragma once

#include <exception>
#include <string>

namespace iwarp::tools {

// "bind: Address already in use"
[[nodiscard]] std::string cause_of(const std::exception& error);

}  // namespace iwarp::tools
