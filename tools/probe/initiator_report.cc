#include "tools/probe/initiator_report.h"

#include <algorithm>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/probe/initiator_judgement.h"
#include "tools/probe/stranger.h"
#include "tools/probe/suggestion.h"

namespace iwarp::tools::probe {
namespace {

using Json = nlohmann::ordered_json;
using Kind = FirstMessage::Kind;

constexpr const char* kNotKnown = "not known";

const char* end_name(TcpState state) {
  return state == TcpState::kClosed ? "closed" : state == TcpState::kReset ? "reset" : "open";
}

std::string revision_text(const RawFrame& r) {
  return std::to_string(r.revision) + (r.enhanced ? " enhanced" : "");
}

// "A", "A and B": each value once, in the order in which they came.
template <class Each>
std::string values(const InitiatorReport& report, const Each& each) {
  std::vector<std::string> seen;
  for (const Encounter& e : report.encounters) {
    const auto request = e.parsed_request();
    if (!request) continue;
    const std::string value = each(*request);
    if (!value.empty() && std::ranges::find(seen, value) == seen.end()) seen.push_back(value);
  }
  std::string s;
  for (const std::string& value : seen) s += (s.empty() ? "" : ", ") + value;
  return s.empty() ? kNotKnown : s;
}

const Encounter* to(const InitiatorReport& report, std::string_view name) {
  const auto found = std::ranges::find_if(
      report.encounters, [&](const Encounter& e) { return e.trial->name == name && e.parsed_request(); });
  return found == report.encounters.end() ? nullptr : &*found;
}

// What followed the answer of a trial.
std::string then(const Encounter& e) {
  if (e.octets_behind == 0) return e.at_end == TcpState::kOpen ? "nothing" : end_name(e.at_end);
  return e.first.to_string() + (e.at_end == TcpState::kOpen ? "" : std::string(", then ") + end_name(e.at_end));
}

std::string then(const InitiatorReport& report, std::string_view name) {
  const Encounter* e = to(report, name);
  return e == nullptr || e->reply.empty() ? kNotKnown : then(*e);
}

std::string again(const Encounter& e) {
  const auto next = RawFrame::parse(e.next_request);
  if (!next || !next->is_request()) return "no other Request in time";
  return "tries again with revision " + revision_text(*next) +
         (next->enhanced ? next->enhanced->peer_to_peer ? ", A=1" : ", A=0" : "");
}

std::string crc(const InitiatorReport& report) {
  std::size_t right = 0, wrong = 0;
  for (const Encounter& e : report.encounters) {
    const auto request = e.parsed_request(), reply = e.parsed_reply();
    if (!request || !reply || !(request->crc || reply->crc)) continue;
    wrong += e.first.kind == Kind::kBadCrc ? 1 : 0;
    right += e.first.kind != Kind::kBadCrc && e.first.kind != Kind::kNone && e.first.kind != Kind::kNoFpdu ? 1 : 0;
  }
  const std::string fpdus = wrong != 0 ? "wrong" : right != 0 ? "right" : kNotKnown;
  return values(report, [](const RawFrame& r) { return std::string(r.crc ? "C=1" : "C=0"); }) +
         "; of its FPDUs: " + fpdus;
}

std::string depth(const RawFrame& r) {
  const auto count = [](std::uint16_t n) {
    return n == mpa::kNoIrdOrdNegotiation ? std::string("left to the ULP") : std::to_string(n);
  };
  return r.enhanced ? count(r.enhanced->ird) + "/" + count(r.enhanced->ord) : "";
}

std::string rpc(const RawFrame& r) {
  const auto said = rpcrdma::PrivateData::find(r.private_data());
  if (!said) return "not stated (RFC 8797)";
  return "sends " + std::to_string(said->send_bytes) + ", receives " + std::to_string(said->receive_bytes) +
         " octets; remote invalidation " + (said->remote_invalidation ? "yes" : "no") + " (RFC 8797)";
}

}  // namespace

InitiatorReport make_report(std::vector<Encounter> encounters) {
  InitiatorReport report{
      .peer = encounters.empty() ? "" : encounters.front().peer, .encounters = std::move(encounters), .deviations = {}};
  for (const Encounter& e : report.encounters) report.deviations.push_back(judge(e));
  drop_repeated_advice(report.deviations);
  return report;
}

Verdict verdict(const InitiatorReport& report) {
  if (report.encounters.empty()) return Verdict::kUnreachable;
  const auto is_mpa = [](const Encounter& e) { return e.parsed_request().has_value(); };
  if (std::ranges::none_of(report.encounters, is_mpa)) return Verdict::kNoMpa;
  return grave(report.deviations) == 0 ? Verdict::kHealthy : Verdict::kDeviations;
}

std::string line(const Encounter& e) {
  std::string s = padded(e.trial->name, 18);
  if (const auto request = e.parsed_request()) {
    s += "Request " + request->to_string();
    if (!e.next_request.empty() || e.trial->answer == Trial::Answer::kClose) return s + "; " + again(e) + "\n";
    return s + "; then " + then(e) + "\n";
  }
  if (e.request.empty()) {
    s += e.at_end == TcpState::kOpen ? "no Request in time" : std::string(end_name(e.at_end)) + " without a Request";
  } else if (const auto who = stranger(e.request)) {
    s += "no MPA but " + to_string(*who);
  } else {
    s += "no Request but " + hex(e.request);
  }
  return s + "\n";
}

std::vector<Fact> summarise(const InitiatorReport& report) {
  const Encounter* closed = to(report, "close");
  return {{"revisions", values(report, revision_text)},
          {"crc", crc(report)},
          {"markers", values(report,
                             [](const RawFrame& r) {
                               return std::string(r.markers ? "M=1: wanted by it" : "M=0: not wanted by it");
                             })},
          {"peer_to_peer", values(report,
                                  [](const RawFrame& r) {
                                    return std::string(!r.enhanced ? "" : r.enhanced->peer_to_peer ? "A=1" : "A=0");
                                  })},
          {"rtr", "offered: " +
                      values(report,
                             [](const RawFrame& r) {
                               return r.enhanced && r.enhanced->peer_to_peer ? forms_of(r).to_string() : "";
                             }) +
                      "; all named: " + then(report, "accept") + "; only Write: " + then(report, "rtr-write") +
                      "; only Read: " + then(report, "rtr-read") + "; only Send: " + then(report, "rtr-send")},
          {"ird_ord", "IRD/ORD " + values(report, depth) + "; with IRD 0 of the peer: " + then(report, "depth-0") +
                          "; with an ORD above its IRD: " + then(report, "ord-above")},
          {"private_data",
           "64 octets: " + then(report, "private-data") + "; 508 octets: " + then(report, "private-data-max")},
          {"inline", values(report, rpc)},
          {"fallback", closed == nullptr ? kNotKnown : again(*closed)}};
}

std::string conclusion(const InitiatorReport& report) {
  const Verdict is = verdict(report);
  if (is == Verdict::kUnreachable) return "nobody has connected\n";
  if (is == Verdict::kNoMpa) return "\n" + report.peer + " is not known as an MPA initiator\n";
  std::string s = "\n" + report.peer + "\n";
  for (const Fact& fact : summarise(report)) s += "  " + padded(fact.name, 14) + fact.value + "\n";
  s += "  " + padded("profile", 14) + suggest(report.encounters).to_string() + "\n";
  s += "  " + padded("deviations", 14) + counted(report.deviations);
  const auto seen = std::ranges::count_if(trials(), [&](const Trial& t) { return to(report, t.name) != nullptr; });
  const std::size_t unseen = trials().size() - static_cast<std::size_t>(seen);
  if (unseen != 0) s += "; not known for " + count_of(unseen, "question") + " of " + std::to_string(trials().size());
  s += "\n";
  for (std::size_t i = 0; i < report.encounters.size(); ++i)
    s += listed(report.encounters[i].trial->name, report.deviations[i]);
  return s;
}

Json to_json(const InitiatorReport& report) {
  Json j = {{"examined", "initiator"},
            {"llp", "tcp"},
            {"peer", report.peer},
            {"verdict", name(verdict(report))},
            {"mpa", std::ranges::any_of(report.encounters,
                                        [](const Encounter& e) { return e.parsed_request().has_value(); })}};
  j["connections"] = Json::array();
  for (std::size_t i = 0; i < report.encounters.size(); ++i) {
    const Encounter& e = report.encounters[i];
    const auto request = e.parsed_request();
    Json c = {{"question", e.trial->name}, {"asks", e.trial->asks}, {"peer", e.peer}};
    c["request"] = request ? to_json(*request) : Json();
    if (!request && !e.request.empty()) c["octets_hex"] = hex(e.request);
    if (const auto who = request ? std::nullopt : stranger(e.request)) c["protocol"] = who->protocol;
    if (!e.reply.empty()) c["then"] = then(e);
    if (e.trial->answer == Trial::Answer::kClose && request) c["then"] = again(e);
    c["tcp"] = end_name(e.at_end);
    c["deviations"] = to_json(report.deviations[i]);
    j["connections"].push_back(std::move(c));
  }
  j["summary"] = Json::object();
  for (const Fact& fact : summarise(report)) j["summary"][std::string(fact.name)] = fact.value;
  j["profile"] = j["mpa"].get<bool>() ? to_json(suggest(report.encounters)) : Json();
  j["deviations"] = grave(report.deviations);
  return j;
}

}  // namespace iwarp::tools::probe
