// The questions of `iwarp probe`: each is one MPA Request on a connection of its own, to find out one thing. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/mpa/startup_frame.h"

namespace iwarp::tools::probe {

struct Question {
  std::string_view name;  // for --only
  std::string_view asks;  // what is found out, one line
  std::uint8_t revision = 2;
  bool enhanced = true;
  bool crc = true;
  bool markers = false;
  std::uint8_t reserved_bits = 0;  // ORed into octet 16 of the Request
  mpa::EnhancedData data{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 8, .ord = 8};
  // Octets of private data (the ULP's part) that no ULP knows; nullopt: those that the user chose.
  std::optional<std::size_t> private_data_bytes{};

  // The Request on the wire. `private_data`: the user's, at most 508 octets.
  [[nodiscard]] std::vector<std::byte> request(ConstBytes private_data) const;
};

// In the order in which they are asked. The first two are forms that every MPA responder answers, one or the other: who
// answers neither is no MPA peer.
[[nodiscard]] std::span<const Question> questions();
inline constexpr std::size_t kDecidingQuestions = 2;
// nullptr: there is none of this name.
[[nodiscard]] const Question* question_named(std::string_view name);

}  // namespace iwarp::tools::probe
