#include "tools/probe/sctp_report.h"

#include <set>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/probe/raw_control.h"
#include "tools/probe/sctp_summary.h"
#include "tools/probe/terms.h"

namespace iwarp::tools::probe {
namespace {

using Json = nlohmann::ordered_json;
using sctp::Function;

const char* name(SctpState state) {
  switch (state) {
    case SctpState::kOpen:
      return "open";
    case SctpState::kShutDown:
      return "shut down";
    case SctpState::kAborted:
      return "aborted";
    case SctpState::kUnreachable:
      break;
  }
  return "unreachable";
}

std::string outcome(const SctpSession& s) {
  const auto said = answer_to(s);
  if (!said) {
    if (s.heard.empty()) return "no answer";
    const SctpMessage& m = s.heard.front();
    return "no answer but PPID " + std::to_string(m.ppid) + ", " + hex(m.octets);
  }
  const char* verb = said->is(Function::kAccept)   ? "accepted: "
                     : said->is(Function::kReject) ? "rejected: "
                                                   : "answered: ";
  std::string text = verb + said->to_string();
  if (const auto rpc = rpcrdma::PrivateData::find(said->private_data())) text += " " + rpc->to_string();
  return text + to_string(s.rtr);
}

std::string outcome(const SctpRecord& r) {
  const SctpAnswer& a = r.answer;
  if (!a.init) return "no association: " + a.why;
  if (!a.init->indication) return "SCTP, but no DDP: its INIT ACK has no adaptation indication";
  if (!indicates_ddp(a))
    return "SCTP, but no DDP: its INIT ACK has adaptation indication " + std::to_string(*a.init->indication);
  std::string text;
  for (std::size_t i = 0; i < a.sessions.size(); ++i) text += (i == 0 ? "" : "; then ") + outcome(a.sessions[i]);
  if (a.state != SctpState::kOpen)
    text += (text.empty() ? "the association is " : ", then the association is ") + std::string(name(a.state));
  return text;
}

Json to_json(const SctpSession& s) {
  const auto said = answer_to(s);
  Json j = {{"stream", s.stream}, {"answer", said ? to_json(*said) : Json()}};
  if (!said && !s.heard.empty()) j["octets_hex"] = hex(s.heard.front().octets);
  put(j, s.rtr);
  j["terminate"] = has_terminate(s);
  return j;
}

Json to_json(const SctpRecord& record, const Deviations& deviations) {
  const SctpAnswer& a = record.answer;
  Json j = {{"question", record.question->name}, {"asks", record.question->asks}, {"ms", a.took.count()}};
  j["association"] = Json();
  if (a.init) {
    j["association"] = {{"indication", a.init->indication ? Json(*a.init->indication) : Json()},
                        {"streams_in", a.init->inbound},
                        {"streams_out", a.init->outbound},
                        {"fragmentation_point", a.init->fragmentation_point}};
  }
  j["sessions"] = Json::array();
  for (const SctpSession& s : a.sessions) j["sessions"].push_back(to_json(s));
  j["sctp"] = name(a.state);
  if (!a.why.empty()) j["why"] = a.why;
  j["deviations"] = to_json(deviations);
  return j;
}

// Different questions that got an association.
std::size_t known_answers(std::span<const SctpRecord> records) {
  std::set<std::string_view> seen;
  for (const SctpRecord& r : records) {
    if (r.answer.init) seen.insert(r.question->name);
  }
  return seen.size();
}

}  // namespace

SctpReport make_report(std::string peer, std::vector<SctpRecord> records) {
  SctpReport report{
      .peer = std::move(peer), .ddp = false, .not_ddp_why = {}, .records = std::move(records), .deviations = {}};
  const SctpKnown known = learn(report.records);
  report.ddp = known.answers;
  for (const SctpRecord& r : report.records) report.deviations.push_back(judge(r, known));
  drop_repeated_advice(report.deviations);
  if (!report.ddp && !report.records.empty()) report.not_ddp_why = outcome(report.records.front());
  return report;
}

Verdict verdict(const SctpReport& report) {
  bool unreachable = false, reached = false, accepts = false;
  for (const SctpRecord& r : report.records) {
    (r.answer.init ? reached : unreachable) = true;
    for (const SctpSession& s : r.answer.sessions) accepts |= accepted(s);
  }
  if (!reached) return Verdict::kUnreachable;
  if (!report.ddp) return Verdict::kNoMpa;
  if (grave(report.deviations) != 0) return Verdict::kDeviations;
  if (unreachable) return Verdict::kUnreachable;
  return accepts ? Verdict::kHealthy : Verdict::kRefused;
}

std::string_view sctp_name(Verdict verdict) {
  return verdict == Verdict::kNoMpa ? "no_ddp" : probe::name(verdict);
}

std::string line(const SctpRecord& record) {
  return padded(record.question->name, 18) + outcome(record) + "\n";
}

std::string conclusion(const SctpReport& report) {
  const Verdict is = verdict(report);
  if (!report.ddp && is == Verdict::kUnreachable) return "\n" + report.peer + " cannot be reached\n";
  if (!report.ddp) return "\n" + report.peer + " is not known as a DDP peer over SCTP: " + report.not_ddp_why + "\n";
  std::string s = "\n" + report.peer + "\n";
  for (const Fact& fact : summarise(report.records)) s += "  " + padded(fact.name, 14) + fact.value + "\n";
  s += "  " + padded("deviations", 14) + counted(report.deviations);
  const std::size_t unseen = sctp_questions().size() - known_answers(report.records);
  if (unseen != 0)
    s += "; not known for " + count_of(unseen, "question") + " of " + std::to_string(sctp_questions().size());
  s += "\n";
  for (std::size_t i = 0; i < report.records.size(); ++i)
    s += listed(report.records[i].question->name, report.deviations[i]);
  if (is == Verdict::kRefused) s += "it refuses every session that was asked for\n";
  if (is == Verdict::kUnreachable) s += "some questions got no association: does it serve a single client?\n";
  return s;
}

Json to_json(const SctpReport& report) {
  Json j = {{"examined", "responder"},
            {"llp", "sctp"},
            {"peer", report.peer},
            {"verdict", sctp_name(verdict(report))},
            {"ddp", report.ddp}};
  if (!report.ddp) j["why"] = report.not_ddp_why;
  j["connections"] = Json::array();
  for (std::size_t i = 0; i < report.records.size(); ++i)
    j["connections"].push_back(to_json(report.records[i], report.deviations[i]));
  j["summary"] = Json::object();
  for (const Fact& fact : summarise(report.records)) j["summary"][std::string(fact.name)] = fact.value;
  j["deviations"] = grave(report.deviations);
  return j;
}

}  // namespace iwarp::tools::probe
