#include "iwarp/sctp/session_control.h"

#include <algorithm>
#include <cassert>

#include "iwarp/base/wire.h"

namespace iwarp::sctp {
namespace {

std::optional<Function> known(std::uint16_t code) {
  // req: RFC5043-5.2.3-2, RFC6581-7-2, RFC6580-3.5-1, RFC6580-3.5-2
  if (code < static_cast<std::uint16_t>(Function::kInitiate) ||
      code > static_cast<std::uint16_t>(Function::kEnhancedReject))
    return std::nullopt;
  return static_cast<Function>(code);
}

}  // namespace

const char* name(Function function) {
  switch (function) {
    case Function::kInitiate:
      return "Initiate";
    case Function::kAccept:
      return "Accept";
    case Function::kReject:
      return "Reject";
    case Function::kTerminate:
      return "Terminate";
    case Function::kEnhancedInitiate:
      return "EnhancedInitiate";
    case Function::kEnhancedAccept:
      return "EnhancedAccept";
    case Function::kEnhancedReject:
      return "EnhancedReject";
  }
  return "?";
}

Function plain(Function function) {
  switch (function) {
    case Function::kEnhancedInitiate:
      return Function::kInitiate;
    case Function::kEnhancedAccept:
      return Function::kAccept;
    case Function::kEnhancedReject:
      return Function::kReject;
    case Function::kInitiate:
    case Function::kAccept:
    case Function::kReject:
    case Function::kTerminate:
      return function;
  }
  return function;
}

Result<SessionControl> SessionControl::parse(ConstBytes message, std::size_t max_private_data_bytes) {
  const auto head = FixedView<kControlHeaderBytes>::of(message);  // req: RFC5043-5.2.3-1
  if (!head) return make_error(Errc::kSessionControl, "session control message of fewer than 4 octets");
  const auto function = known(head->be<std::uint16_t, 2>());
  if (!function) return make_error(Errc::kSessionControl, "session control message with an unknown Function Code");
  SessionControl m;
  m.ssn = DdpSsn{head->be<std::uint16_t, 0>()};
  m.function = *function;
  if (m.function == Function::kTerminate) return m;
  const ConstBytes field = message.subspan(kControlHeaderBytes);  // req: RFC5043-5.2.3-4
  if (field.size() > std::min(max_private_data_bytes, kMaxPrivateDataBytes))
    return make_error(Errc::kPrivateDataTooLong, "session control message with more Private Data than allowed");
  m.private_data = field;
  if (!is_enhanced(m.function)) return m;  // req: RFC6581-7-18
  if (field.size() < enhanced::kEnhancedDataBytes) {
    if (m.function == Function::kEnhancedReject) return m;  // req: RFC6581-7-19
    // req: RFC6581-7-21
    return make_error(Errc::kSessionControl, "enhanced session control message without room for the enhanced data");
  }
  // req: RFC6581-7-1, RFC6581-9-6, RFC6581-7-17
  m.data = enhanced::EnhancedData::parse(field.first<enhanced::kEnhancedDataBytes>());
  m.private_data = field.subspan(enhanced::kEnhancedDataBytes);  // req: RFC6581-7-6, RFC6581-7-10
  return m;
}

void SessionControl::write_to(MutBytes out) const {
  assert(out.size() >= size() && data.has_value() == is_enhanced(function));
  assert(private_data.size() <= max_ulp_bytes(function));  // req: RFC5043-5.2.3-6, RFC6581-7-8, RFC6581-7-20
  FixedWriter<kControlHeaderBytes> head{out.first<kControlHeaderBytes>()};
  head.be<0>(ssn.value);
  head.be<2>(static_cast<std::uint16_t>(function));
  MutBytes rest = out.subspan(kControlHeaderBytes);
  if (data) {
    data->write_to(rest.first<enhanced::kEnhancedDataBytes>());
    rest = rest.subspan(enhanced::kEnhancedDataBytes);
  }
  std::copy(private_data.begin(), private_data.end(), rest.begin());  // req: RFC5043-5.2.3-3, RFC6581-7-5
}

std::string SessionControl::to_string() const {
  const auto flag = [](const char* field, bool b) { return std::string(", ") + field + (b ? "=1" : "=0"); };
  std::string s = std::string(name(function)) + "(ssn=" + std::to_string(ssn.value);
  if (data) {
    s += flag("p2p", data->peer_to_peer) + flag("rtr_send", data->rtr_send) + flag("rtr_write", data->rtr_write);
    s += flag("rtr_read", data->rtr_read) + ", ird=" + std::to_string(data->ird) + ", ord=" + std::to_string(data->ord);
  }
  return s + ", pd=" + std::to_string(private_data.size()) + ")";
}

}  // namespace iwarp::sctp
