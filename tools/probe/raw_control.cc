#include "tools/probe/raw_control.h"

#include <algorithm>

#include "iwarp/base/wire.h"
#include "tools/probe/rtr.h"
#include "tools/probe/terms.h"

namespace iwarp::tools::probe {

using sctp::Function;
using sctp::Ppid;

std::optional<RawControl> RawControl::parse(const SctpMessage& message) {
  const auto head = FixedView<sctp::kControlHeaderBytes>::of(message.octets);
  if (message.ppid != static_cast<std::uint32_t>(Ppid::kSessionControl) || !head) return std::nullopt;
  RawControl r;
  r.ssn = head->be<std::uint16_t, 0>();
  r.code = head->be<std::uint16_t, 2>();
  r.field = ConstBytes(message.octets).subspan(sctp::kControlHeaderBytes);
  if (r.has_enhanced_code() && r.field.size() >= enhanced::kEnhancedDataBytes)
    r.enhanced = enhanced::EnhancedData::parse(r.field.first<enhanced::kEnhancedDataBytes>());
  return r;
}

std::optional<Function> RawControl::function() const {
  if (code < static_cast<std::uint16_t>(Function::kInitiate) ||
      code > static_cast<std::uint16_t>(Function::kEnhancedReject))
    return std::nullopt;
  return static_cast<Function>(code);
}

bool RawControl::is(Function plain) const {
  const auto f = function();
  return f && sctp::plain(*f) == plain;
}

bool RawControl::has_enhanced_code() const {
  const auto f = function();
  return f && sctp::is_enhanced(*f);
}

ConstBytes RawControl::private_data() const {
  return enhanced ? field.subspan(enhanced::kEnhancedDataBytes) : field;
}

std::string RawControl::to_string() const {
  const auto f = function();
  std::string s = f ? sctp::name(*f) : "Function Code " + std::to_string(code);
  if (enhanced) s += " " + probe::to_string(*enhanced);
  if (!private_data().empty()) s += ", " + std::to_string(private_data().size()) + " octets of private data";
  return s;
}

nlohmann::ordered_json to_json(const RawControl& c) {
  const auto f = c.function();
  nlohmann::ordered_json j = {{"ssn", c.ssn}, {"code", c.code}};
  j["function"] = f ? nlohmann::ordered_json(sctp::name(*f)) : nlohmann::ordered_json();
  if (c.enhanced) put(j, *c.enhanced);
  put_private_data(j, c.private_data());
  return j;
}

std::optional<RawControl> answer_to(const SctpSession& session) {
  std::optional<RawControl> first;
  for (const SctpMessage& m : session.heard) {
    const auto control = RawControl::parse(m);
    if (!control) continue;
    if (control->ssn == 0) return control;
    if (!first) first = control;
  }
  return first;
}

bool accepted(const SctpSession& session) {
  const auto answer = answer_to(session);
  return answer && answer->is(Function::kAccept);
}

bool has_terminate(const SctpSession& session) {
  return std::ranges::any_of(session.heard, [](const SctpMessage& m) {
    const auto control = RawControl::parse(m);
    return control && control->is(Function::kTerminate);
  });
}

bool is_over(const SctpSession& session) {
  for (const SctpMessage& m : session.heard) {
    const auto control = RawControl::parse(m);
    if (control && (control->is(Function::kTerminate) || control->is(Function::kReject)))
      return session.heard.size() == control->ssn + std::size_t{1};
  }
  return false;
}

std::optional<RtrResult> rtr_result(mpa::Rtr form, const SctpSession& session) {
  for (const SctpMessage* m : in_order(session)) {
    if (m->ppid != static_cast<std::uint32_t>(Ppid::kDdpSegment)) continue;
    if (auto found = rtr_answer(form, ConstBytes(m->octets).subspan(sctp::kSsnBytes))) return found;
  }
  return std::nullopt;
}

std::vector<const SctpMessage*> in_order(const SctpSession& session) {
  std::vector<const SctpMessage*> all;
  for (const SctpMessage& m : session.heard) {
    if (m.octets.size() >= sctp::kSsnBytes) all.push_back(&m);
  }
  std::ranges::stable_sort(all, {}, [](const SctpMessage* m) { return ssn_of(*m); });
  return all;
}

std::uint16_t ssn_of(const SctpMessage& message) {
  return load_be<std::uint16_t>(ConstBytes(message.octets));
}

}  // namespace iwarp::tools::probe
