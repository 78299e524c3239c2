// --profile NAME, the same wherever a connection is made or accepted: which peer it is for (stream/profile.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "iwarp/stream/profile.h"

namespace iwarp::tools {

class ProfileFlag {
 public:
  void add(CLI::App& app, const std::string& group);
  [[nodiscard]] const stream::Profile& profile() const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_ = "generic";
};

// "there is no profile 'linux'; did you mean linux-siw? There are generic, linux-siw, ..."
[[nodiscard]] std::string unknown_profile(const std::string& name);

// The flag that sets what an option of profiles sets, "--p2p, --no-p2p"; empty: there is none.
[[nodiscard]] std::string_view flag_of(std::string_view option);

}  // namespace iwarp::tools
