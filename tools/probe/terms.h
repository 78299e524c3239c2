// What an answer settles beside its form, the same over MPA and over SCTP (RFC 6581 s7, s9): connection model, RTR, IRD
// and ORD, private data. As text, as JSON, and judged. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "iwarp/enhanced/rtr.h"
#include "tools/probe/answer.h"
#include "tools/probe/findings.h"

namespace iwarp::tools::probe {

// "A=1 B=0 C_write=0 D=1 IRD=8 ORD=8"
[[nodiscard]] std::string to_string(const enhanced::EnhancedData& data);
// Adds "A", "B", "C_write", "D", "ird" and "ord".
void put(nlohmann::ordered_json& into, const enhanced::EnhancedData& data);
// Adds "private_data_hex", and "rpcrdma" where RFC 8797 is found in it.
void put_private_data(nlohmann::ordered_json& into, ConstBytes private_data);

// "Read", "Write", "none"
[[nodiscard]] const char* form_name(mpa::Rtr form);
[[nodiscard]] const char* name(RtrResult::Fate fate);
// ", Read RTR: taken"; nothing where none was sent.
[[nodiscard]] std::string to_string(const RtrResult& rtr);
void put(nlohmann::ordered_json& into, const RtrResult& rtr);

// `elsewhere`: RTR forms that an accepting answer of that responder ever named.
void judge_terms(const enhanced::EnhancedData& asked, const enhanced::EnhancedData& said, bool rejected,
                 const enhanced::RtrForms& elsewhere, Deviations& found);
void judge_rtr(const RtrResult& rtr, Deviations& found);
void judge_private_data(ConstBytes private_data, Deviations& found);

}  // namespace iwarp::tools::probe
