#include "tools/profile_flag.h"

#include <array>
#include <utility>
#include <vector>

#include "tools/nearest_key.h"

namespace iwarp::tools {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const stream::Profile& p : stream::profiles()) out.emplace_back(p.name());
  return out;
}

std::string joined(const std::string& separator) {
  std::string out;
  for (const std::string& name : names()) out += (out.empty() ? "" : separator) + name;
  return out;
}

}  // namespace

void ProfileFlag::add(CLI::App& app, const std::string& group) {
  app.add_option("--profile", name_,
                 "Values that suit a kind of peer: `iwarp profiles` explains them. Other flags win over it")
      ->check(CLI::Validator(
          [](const std::string& given) {
            return stream::find_profile(given) == nullptr ? unknown_profile(given) : std::string{};
          },
          ""))
      ->type_name(joined("|"))
      ->capture_default_str()
      ->group(group);
}

const stream::Profile& ProfileFlag::profile() const {
  return *stream::find_profile(name_);
}

std::string unknown_profile(const std::string& name) {
  const std::string near = nearest_key(name, names());
  return "there is no profile '" + name + "'" + (near.empty() ? "" : "; did you mean " + near + "?") +
         (near.empty() ? ": use " : " There are ") + joined(", ");
}

std::string_view flag_of(std::string_view option) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kFlags = {{
      {"crc", "--crc"},
      {"markers", "--markers"},
      {"peer_to_peer", "--p2p, --no-p2p"},
      {"allow_peer_to_peer_fallback", "--p2p, --no-p2p"},
      {"rtr_write", "--rtr"},
      {"rtr_read", "--rtr"},
      {"fpdu", "--fpdu"},
      {"early_wake", "--wake, --no-wake"},
  }};
  for (const auto& [name, flag] : kFlags) {
    if (name == option) return flag;
  }
  return {};
}

}  // namespace iwarp::tools
