#include "tools/probe/report.h"

#include <set>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/probe/stranger.h"
#include "tools/probe/suggestion.h"
#include "tools/probe/summary.h"
#include "tools/probe/terms.h"

namespace iwarp::tools::probe {
namespace {

using Json = nlohmann::ordered_json;

const char* name(TcpState state) {
  switch (state) {
    case TcpState::kOpen:
      return "open";
    case TcpState::kClosed:
      return "closed";
    case TcpState::kReset:
      return "reset";
    case TcpState::kUnreachable:
      break;
  }
  return "unreachable";
}

std::optional<Stranger> stranger_of(const Answer& a) {
  const auto reply = RawFrame::parse(a.octets);
  return reply && reply->is_reply() ? std::nullopt : stranger(a.octets);
}

std::string outcome(const Answer& a) {
  const auto reply = RawFrame::parse(a.octets);
  std::string s;
  if (reply && reply->is_reply()) {
    s = (reply->reject ? "rejected " : "accepted ") + reply->to_string();
    if (const auto said = rpcrdma::PrivateData::find(reply->private_data())) s += " " + said->to_string();
    s += to_string(a.rtr);
  } else if (a.after_reply == TcpState::kUnreachable) {
    return "no connection: " + a.why;
  } else if (reply && reply->key == RawFrame::Key::kRequest) {
    s = "no Reply but a Request: both ends play Initiator";
  } else if (const auto who = stranger_of(a)) {
    s = "no MPA but " + to_string(*who);
  } else if (!a.octets.empty()) {
    s = "no Reply but " + hex(a.octets);
  } else if (a.after_reply == TcpState::kOpen) {
    return "no answer in time";
  }
  if (a.at_end == TcpState::kOpen) return s;
  return s + (s.empty() ? "" : ", then ") + name(a.at_end) + (s.empty() ? " without a Reply" : "");
}

Json to_json(const Record& record, const Deviations& deviations) {
  const Answer& a = record.answer;
  Json j = {{"question", record.question->name}, {"asks", record.question->asks}, {"ms", a.took.count()}};
  const auto reply = RawFrame::parse(a.octets);
  j["reply"] = reply && reply->is_reply() ? to_json(*reply) : Json();
  if (!(reply && reply->is_reply()) && !a.octets.empty()) j["octets_hex"] = hex(a.octets);
  j["tcp"] = name(a.at_end);
  if (!a.why.empty()) j["why"] = a.why;
  put(j, a.rtr);
  if (const auto who = stranger_of(a)) j["protocol"] = who->protocol;
  j["deviations"] = to_json(deviations);
  return j;
}

// Different questions that got a connection.
std::size_t known_answers(std::span<const Record> records) {
  std::set<std::string_view> seen;
  for (const Record& r : records) {
    if (r.answer.after_reply != TcpState::kUnreachable) seen.insert(r.question->name);
  }
  return seen.size();
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHealthy:
      return "healthy";
    case Verdict::kDeviations:
      return "deviations";
    case Verdict::kUnreachable:
      return "unreachable";
    case Verdict::kNoMpa:
      return "no_mpa";
    case Verdict::kRefused:
      break;
  }
  return "refused";
}

Report make_report(std::string peer, std::vector<Record> records) {
  Report report{
      .peer = std::move(peer), .mpa = false, .not_mpa_why = {}, .records = std::move(records), .deviations = {}};
  const Known known = learn(report.records);
  report.mpa = known.replies;
  for (const Record& r : report.records) report.deviations.push_back(judge(r, known));
  drop_repeated_advice(report.deviations);
  if (!report.mpa && !report.records.empty()) report.not_mpa_why = outcome(report.records.front().answer);
  return report;
}

Verdict verdict(const Report& report) {
  bool unreachable = false, reached = false, accepts = false;
  for (const Record& r : report.records) {
    const bool none = r.answer.after_reply == TcpState::kUnreachable;
    (none ? unreachable : reached) = true;
    const auto reply = RawFrame::parse(r.answer.octets);
    accepts |= reply && reply->is_reply() && !reply->reject;
  }
  if (!reached) return Verdict::kUnreachable;
  if (!report.mpa) return Verdict::kNoMpa;
  if (grave(report.deviations) != 0) return Verdict::kDeviations;
  if (unreachable) return Verdict::kUnreachable;
  return accepts ? Verdict::kHealthy : Verdict::kRefused;
}

std::string line(const Record& record) {
  return padded(record.question->name, 18) + outcome(record.answer) + "\n";
}

std::string conclusion(const Report& report) {
  const Verdict is = verdict(report);
  if (!report.mpa && is == Verdict::kUnreachable) return "\n" + report.peer + " cannot be reached\n";
  if (!report.mpa) return "\n" + report.peer + " is not known as an MPA responder: " + report.not_mpa_why + "\n";
  std::string s = "\n" + report.peer + "\n";
  for (const Fact& fact : summarise(report.records)) s += "  " + padded(fact.name, 14) + fact.value + "\n";
  s += "  " + padded("profile", 14) + suggest(report.records).to_string() + "\n";
  s += "  " + padded("deviations", 14) + counted(report.deviations);
  const std::size_t unseen = questions().size() - known_answers(report.records);
  if (unseen != 0) s += "; not known for " + count_of(unseen, "question") + " of " + std::to_string(questions().size());
  s += "\n";
  for (std::size_t i = 0; i < report.records.size(); ++i)
    s += listed(report.records[i].question->name, report.deviations[i]);
  if (is == Verdict::kRefused) s += "it rejects every Request that was asked\n";
  if (is == Verdict::kUnreachable) s += "some questions got no connection: does it serve a single client?\n";
  return s;
}

Json to_json(const Report& report) {
  Json j = {{"examined", "responder"},
            {"llp", "tcp"},
            {"peer", report.peer},
            {"verdict", name(verdict(report))},
            {"mpa", report.mpa}};
  if (!report.mpa) j["why"] = report.not_mpa_why;
  j["connections"] = Json::array();
  for (std::size_t i = 0; i < report.records.size(); ++i)
    j["connections"].push_back(to_json(report.records[i], report.deviations[i]));
  j["summary"] = Json::object();
  for (const Fact& fact : summarise(report.records)) j["summary"][std::string(fact.name)] = fact.value;
  j["profile"] = report.mpa ? to_json(suggest(report.records)) : Json();
  j["deviations"] = grave(report.deviations);
  return j;
}

}  // namespace iwarp::tools::probe
