#include "iwarp/enhanced/rtr.h"

#include <utility>

namespace iwarp::enhanced {

const char* name(Rtr rtr) {
  switch (rtr) {
    case Rtr::kNone:
      return "none";
    case Rtr::kSend:
      return "send";
    case Rtr::kWrite:
      return "write";
    case Rtr::kRead:
      return "read";
  }
  return "?";
}

std::string RtrForms::to_string() const {
  std::string s;
  for (const auto& [set, form] : {std::pair{send, "Send"}, {write, "Write"}, {read, "Read"}}) {
    if (set) s += (s.empty() ? "" : "+") + std::string(form);
  }
  return s.empty() ? "none" : s;
}

RtrForms forms_of(const EnhancedData& data) {
  if (!data.peer_to_peer) return {};  // req: RFC6581-9.2-25
  return {data.rtr_send, data.rtr_write, data.rtr_read};
}

void set_forms(EnhancedData& data, const RtrForms& forms) {
  data.rtr_send = forms.send;
  data.rtr_write = forms.write;
  data.rtr_read = forms.read;
}

Rtr name_rtr(const RtrForms& supported, const RtrForms& offered) {
  const RtrForms common = supported.common(offered);
  const RtrForms& from = common.any() ? common : supported;  // req: RFC6581-9.2-16
  if (from.read) return Rtr::kRead;                          // req: RFC6581-9.2-12, RFC6581-9.2-14, RFC6581-9.2-13
  return from.write ? Rtr::kWrite : Rtr::kSend;
}

Rtr choose_rtr(const RtrForms& offered, const RtrForms& named, std::uint16_t ord) {
  const RtrForms common = offered.common(named);   // req: RFC6581-1.1-2, RFC6581-9.2-15
  if (common.read && ord >= 1) return Rtr::kRead;  // req: RFC6581-1.1-1
  if (common.write) return Rtr::kWrite;
  return common.send ? Rtr::kSend : Rtr::kNone;
}

}  // namespace iwarp::enhanced
