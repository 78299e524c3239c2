// A session control message of a peer (RFC 5043 s5.2.3, RFC 6581 s7), taken apart as it lies there: unlike
// sctp::SessionControl::parse() this refuses nothing for what it says, so that `iwarp probe` can tell what is wrong
// with it. And what a session has heard, by the DDP-SSN. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/sctp/session_control.h"
#include "tools/probe/sctp_answer.h"

namespace iwarp::tools::probe {

struct RawControl {
  std::uint16_t ssn = 0;
  std::uint16_t code = 0;                            // Function Code as it stands there
  ConstBytes field{};                                // Private Data, enhanced data included
  std::optional<enhanced::EnhancedData> enhanced{};  // of codes 5 to 7 with room for it

  // nullopt: no session control (PPID 17), or not even a Function Code. Points into `message`.
  [[nodiscard]] static std::optional<RawControl> parse(const SctpMessage& message);
  // nullopt: a code that neither RFC has.
  [[nodiscard]] std::optional<sctp::Function> function() const;
  // Whether it is that, or what RFC 6581 has in its place.
  [[nodiscard]] bool is(sctp::Function plain) const;
  [[nodiscard]] bool has_enhanced_code() const;
  // The ULP's part of the Private Data.
  [[nodiscard]] ConstBytes private_data() const;
  // "EnhancedAccept A=0 B=0 C_write=0 D=0 IRD=1 ORD=8, 8 octets of private data"
  [[nodiscard]] std::string to_string() const;
};
[[nodiscard]] nlohmann::ordered_json to_json(const RawControl& control);

// What answers the Initiate: the session control message with DDP-SSN 0, or if there is none the first that came.
// nullopt: nothing.
[[nodiscard]] std::optional<RawControl> answer_to(const SctpSession& session);
[[nodiscard]] bool accepted(const SctpSession& session);
// The peer's Terminate has come, in answer to the Initiate or later.
[[nodiscard]] bool has_terminate(const SctpSession& session);
// Nothing of the peer is under way: its last message, as the legal sequences have it, and all before it have come.
[[nodiscard]] bool is_over(const SctpSession& session);
// What its segments say about the RTR, in the order of the DDP-SSN; nullopt: nothing yet.
[[nodiscard]] std::optional<RtrResult> rtr_result(mpa::Rtr form, const SctpSession& session);
// Those that have a DDP-SSN, in its order; those that have the same one as they came.
[[nodiscard]] std::vector<const SctpMessage*> in_order(const SctpSession& session);
// Precondition: the message has one.
[[nodiscard]] std::uint16_t ssn_of(const SctpMessage& message);

}  // namespace iwarp::tools::probe
