// The questions of `iwarp probe --llp sctp`: each is one SCTP association with one DDP Stream Session or two, to find
// out one thing. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "iwarp/sctp/session_control.h"

namespace iwarp::tools::probe {

struct SctpQuestion {
  enum class Sessions : std::uint8_t {
    kOne,
    kTwo,   // on a stream each; the first is ended, then the second is looked at
    kAgain  // one after the other on the same stream
  };

  std::string_view name;                                                               // for --only
  std::string_view asks;                                                               // what is found out, one line
  std::uint16_t code = static_cast<std::uint16_t>(sctp::Function::kEnhancedInitiate);  // Function Code
  enhanced::EnhancedData data{.ird = 8, .ord = 8};                                     // with that code
  // Octets of private data (the ULP's part) that no ULP knows; nullopt: those that the user chose.
  std::optional<std::size_t> private_data_bytes{};
  Sessions sessions = Sessions::kOne;

  [[nodiscard]] bool enhanced() const { return code == static_cast<std::uint16_t>(sctp::Function::kEnhancedInitiate); }
  // Whether any RFC has its Function Code.
  [[nodiscard]] bool known() const {
    return enhanced() || code == static_cast<std::uint16_t>(sctp::Function::kInitiate);
  }
  // The Initiate, with DDP-SSN 0. `private_data`: the user's, at most 508 octets.
  [[nodiscard]] std::vector<std::byte> initiate(ConstBytes private_data) const;
};

// In the order in which they are asked. The first two are forms of which a passive DDP peer knows one or both: who
// answers neither is none.
[[nodiscard]] std::span<const SctpQuestion> sctp_questions();
inline constexpr std::size_t kDecidingSctpQuestions = 2;
// nullptr: there is none of this name.
[[nodiscard]] const SctpQuestion* sctp_question_named(std::string_view name);

}  // namespace iwarp::tools::probe
