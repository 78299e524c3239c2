// Which peer profile (stream/profile.h) fits what `iwarp probe` saw. Only where the known peers differ: else it is
// "generic". windows-chelsio is never suggested, since nothing is known that would tell it by its frames. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tools/probe/encounter.h"
#include "tools/probe/judgement.h"

namespace iwarp::tools::probe {

struct Suggestion {
  std::string_view profile = "generic";
  std::string_view why = "nothing that was seen tells of a known peer";

  // "linux-siw: it repeats the reserved bits of the Request"
  [[nodiscard]] std::string to_string() const;
};

// For a responder, by its answers.
[[nodiscard]] Suggestion suggest(std::span<const Record> records);
// For an initiator, by what it asked for and sent first.
[[nodiscard]] Suggestion suggest(std::span<const Encounter> encounters);

[[nodiscard]] nlohmann::ordered_json to_json(const Suggestion& suggestion);

}  // namespace iwarp::tools::probe
