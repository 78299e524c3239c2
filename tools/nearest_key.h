// What somebody meant who wrote a word that there is not.
#pragma once

#include <string>
#include <vector>

namespace iwarp::tools {

// The key that was probably meant, of those that there are; empty: none is near.
[[nodiscard]] std::string nearest_key(const std::string& wrong, const std::vector<std::string>& keys);

}  // namespace iwarp::tools
