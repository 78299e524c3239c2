// Which protocol a peer speaks that is no MPA peer, told from the octets that it sent. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "iwarp/base/bytes.h"

namespace iwarp::tools::probe {

struct Stranger {
  std::string_view protocol;  // "HTTP", "TLS", "SSH", ...
  std::string greeting;       // of a text protocol: the first line, fit for a terminal; else empty
};

// nullopt: nothing that is known here. What is named has the marks of that protocol, which is no proof.
[[nodiscard]] std::optional<Stranger> stranger(ConstBytes octets);
// "HTTP: "HTTP/1.1 400 Bad Request"", or "TLS"
[[nodiscard]] std::string to_string(const Stranger& who);

}  // namespace iwarp::tools::probe
