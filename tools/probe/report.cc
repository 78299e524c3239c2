#include "tools/probe/report.h"

#include <algorithm>
#include <set>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/probe/summary.h"

namespace iwarp::tools::probe {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kHexBytes = 32;  // of what is no Reply

bool advice(const Deviation& d) {
  return text(d.rule).level == "SHOULD";
}

std::string hex(ConstBytes octets) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : octets.first(std::min(octets.size(), kHexBytes))) {
    out += kDigits[std::to_integer<unsigned>(b) >> 4];
    out += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return octets.size() > kHexBytes ? out + "..." : out;
}

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

const char* name(RtrResult::Fate fate) {
  switch (fate) {
    case RtrResult::Fate::kNotSent:
      return "not sent";
    case RtrResult::Fate::kTaken:
      return "taken";
    case RtrResult::Fate::kNoResponse:
      return "no Read Response";
    case RtrResult::Fate::kTerminated:
      return "Terminate";
    case RtrResult::Fate::kEnded:
      return "end of the connection";
    case RtrResult::Fate::kBadCrc:
      return "wrong CRC";
    case RtrResult::Fate::kOdd:
      break;
  }
  return "odd answer";
}

const char* name(mpa::Rtr form) {
  return form == mpa::Rtr::kRead ? "Read" : form == mpa::Rtr::kWrite ? "Write" : "none";
}

std::string outcome(const Answer& a) {
  const auto reply = RawReply::parse(a.octets);
  std::string s;
  if (reply && reply->is_mpa()) {
    s = (reply->reject ? "rejected " : "accepted ") + reply->to_string();
    if (const auto said = rpcrdma::PrivateData::find(reply->private_data())) s += " " + said->to_string();
    if (a.rtr.fate != RtrResult::Fate::kNotSent)
      s += std::string(", ") + name(a.rtr.form) + " RTR: " + name(a.rtr.fate);
  } else if (a.after_reply == TcpState::kUnreachable) {
    return "no connection: " + a.why;
  } else if (!a.octets.empty()) {
    s = "no Reply but " + hex(a.octets);
  } else if (a.after_reply == TcpState::kOpen) {
    return "no answer in time";
  }
  if (a.at_end == TcpState::kOpen) return s;
  return s + (s.empty() ? "" : ", then ") + name(a.at_end) + (s.empty() ? " without a Reply" : "");
}

Json to_json(const RawReply& r) {
  Json j = {{"M", r.markers},
            {"C", r.crc},
            {"R", r.reject},
            {"S", r.s_bit},
            {"revision", r.revision},
            {"reserved", r.reserved_bits},
            {"pd_length", r.private_data_length}};
  if (r.enhanced) {
    const mpa::EnhancedData& e = *r.enhanced;
    j.update({{"A", e.peer_to_peer}, {"B", e.rtr_send}, {"C_write", e.rtr_write}, {"D", e.rtr_read}});
    j.update({{"ird", e.ird}, {"ord", e.ord}});
  }
  j["private_data_hex"] = hex(r.private_data());
  if (const auto said = rpcrdma::PrivateData::find(r.private_data())) {
    j["rpcrdma"] = {{"send_bytes", said->send_bytes},
                    {"receive_bytes", said->receive_bytes},
                    {"remote_invalidation", said->remote_invalidation}};
  }
  return j;
}

Json to_json(const Deviation& d) {
  const RuleText& rule = text(d.rule);
  return {{"requirement", rule.id},
          {"section", section(rule.id)},
          {"level", rule.level},
          {"says", rule.says},
          {"seen", d.what}};
}

Json to_json(const Record& record, const std::vector<Deviation>& deviations) {
  const Answer& a = record.answer;
  Json j = {{"question", record.question->name}, {"asks", record.question->asks}, {"ms", a.took.count()}};
  const auto reply = RawReply::parse(a.octets);
  j["reply"] = reply && reply->is_mpa() ? to_json(*reply) : Json();
  if (!(reply && reply->is_mpa()) && !a.octets.empty()) j["octets_hex"] = hex(a.octets);
  j["tcp"] = name(a.at_end);
  if (!a.why.empty()) j["why"] = a.why;
  if (a.rtr.fate != RtrResult::Fate::kNotSent) j["rtr"] = {{"form", name(a.rtr.form)}, {"fate", name(a.rtr.fate)}};
  j["deviations"] = Json::array();
  for (const Deviation& d : deviations) j["deviations"].push_back(to_json(d));
  return j;
}

std::string padded(std::string_view word, std::size_t width) {
  std::string s(word);
  s.resize(std::max(width, s.size() + 1), ' ');
  return s;
}

std::string count(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

Report make_report(std::string peer, std::vector<Record> records) {
  Report report{
      .peer = std::move(peer), .mpa = false, .not_mpa_why = {}, .records = std::move(records), .deviations = {}};
  const Known known = learn(report.records);
  report.mpa = known.replies;
  std::set<std::pair<Rule, std::string>> given;
  for (const Record& r : report.records) {
    auto& list = report.deviations.emplace_back(judge(r, known));
    std::erase_if(list, [&](const Deviation& d) { return advice(d) && !given.emplace(d.rule, d.what).second; });
  }
  if (!report.mpa && !report.records.empty()) report.not_mpa_why = outcome(report.records.front().answer);
  return report;
}

std::size_t grave(const Report& report) {
  std::size_t n = 0;
  for (const auto& list : report.deviations) {
    for (const Deviation& d : list) n += advice(d) ? 0 : 1;
  }
  return n;
}

std::string to_text(const Report& report) {
  std::string s;
  for (std::size_t i = 0; i < report.records.size(); ++i) {
    const Record& r = report.records[i];
    s += padded(r.question->name, 18) + outcome(r.answer) + "\n";
    for (const Deviation& d : report.deviations[i]) {
      const RuleText& rule = text(d.rule);
      s += std::string(advice(d) ? "    advice:    " : "    deviation: ") + d.what + " - " + section(rule.id) + ", " +
           std::string(rule.level) + ": " + std::string(rule.says) + " (" + std::string(rule.id) + ")\n";
    }
  }
  if (!report.mpa) return s + "\n" + report.peer + " is not known as an MPA responder: " + report.not_mpa_why + "\n";
  s += "\n" + report.peer + "\n";
  for (const Fact& fact : summarise(report.records)) s += "  " + padded(fact.name, 14) + fact.value + "\n";
  std::size_t all = 0;
  for (const auto& list : report.deviations) all += list.size();
  const std::size_t bad = grave(report);
  return s + "  " + padded("deviations", 14) + (bad == 0 ? "none" : count(bad, "deviation")) +
         (all > bad ? ", " + count(all - bad, "piece") + " of advice" : "") + "\n";
}

Json to_json(const Report& report) {
  Json j = {{"peer", report.peer}, {"mpa", report.mpa}};
  if (!report.mpa) j["why"] = report.not_mpa_why;
  j["connections"] = Json::array();
  for (std::size_t i = 0; i < report.records.size(); ++i)
    j["connections"].push_back(to_json(report.records[i], report.deviations[i]));
  j["summary"] = Json::object();
  for (const Fact& fact : summarise(report.records)) j["summary"][std::string(fact.name)] = fact.value;
  j["deviations"] = grave(report);
  return j;
}

}  // namespace iwarp::tools::probe
