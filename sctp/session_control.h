// DDP Stream Session Control messages (RFC 5043 s5.2.3, RFC 6581 s7) as plain values: form only. What may come when is
// the session's business (session.h). Octets of a message:
//   0-1 DDP-SSN     2-3 Function Code     4.. Private Data (at most 512)
// The Private Data of the enhanced messages begin with 32 bits of enhanced data; what follows belongs to the ULP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "iwarp/enhanced/enhanced_data.h"
#include "iwarp/sctp/chunk.h"

namespace iwarp::sctp {

// Function Codes: 16 bits on the wire. req: RFC6581-11-1
enum class Function : std::uint16_t {
  kInitiate = 1,
  kAccept = 2,
  kReject = 3,
  kTerminate = 4,         // ends enhanced sessions too
  kEnhancedInitiate = 5,  // RFC 6581
  kEnhancedAccept = 6,
  kEnhancedReject = 7,
};

// "Initiate", "EnhancedAccept"
[[nodiscard]] const char* name(Function function);
// One of the three of RFC 6581.
[[nodiscard]] constexpr bool is_enhanced(Function f) {
  return f >= Function::kEnhancedInitiate;
}
// The function of RFC 5043 that an enhanced one stands for; others are themselves.
[[nodiscard]] Function plain(Function function);

inline constexpr std::size_t kControlHeaderBytes = 4;     // DDP-SSN and Function Code
inline constexpr std::size_t kMaxPrivateDataBytes = 512;  // enhanced data included
inline constexpr std::size_t kMaxSessionControlBytes = kControlHeaderBytes + kMaxPrivateDataBytes;
inline constexpr std::uint16_t kExperimentalFunctionCode = 0xFFFF;  // reserved for experiments: never sent

// The most that the ULP can have in a message of this kind.
[[nodiscard]] constexpr std::size_t max_ulp_bytes(Function f) {
  if (f == Function::kTerminate) return 0;
  return is_enhanced(f) ? kMaxPrivateDataBytes - enhanced::kEnhancedDataBytes : kMaxPrivateDataBytes;
}

struct SessionControl {
  DdpSsn ssn{};                                  // where it stands among the messages of its direction
  Function function = Function::kInitiate;       // what it says
  std::optional<enhanced::EnhancedData> data{};  // of an enhanced message; a Reject may lack it when received
  ConstBytes private_data{};                     // the ULP's part. Points into the parsed bytes, or to what is lent

  // Octets of the message.
  [[nodiscard]] std::size_t size() const {
    return kControlHeaderBytes + (data ? enhanced::kEnhancedDataBytes : 0) + private_data.size();
  }
  // Writes it to the first size() octets of `out`. Preconditions: out.size() >= size(); private_data has at most
  // max_ulp_bytes(); `data` is there if and only if the function is enhanced.
  void write_to(MutBytes out) const;
  // "EnhancedInitiate(ssn=0, p2p=1, rtr_send=0, rtr_write=1, rtr_read=1, ird=32, ord=32, pd=8)"
  [[nodiscard]] std::string to_string() const;

  // `message`: the whole of it, DDP-SSN first. `max_private_data_bytes`: of the field, up to 512. Errors:
  // kSessionControl (too short, unknown Function Code, no room for the enhanced data), kPrivateDataTooLong. Private
  // Data of a Terminate, which it must not have, are passed over: the session ends with it anyway.
  [[nodiscard]] static Result<SessionControl> parse(ConstBytes message,
                                                    std::size_t max_private_data_bytes = kMaxPrivateDataBytes);
};

}  // namespace iwarp::sctp
