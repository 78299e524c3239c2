// MPA Request and Reply frame (RFC 5044 s7.1.1) with the enhanced data of RFC 6581 s9. A plain value: parse() checks
// form only, what a state allows is the business of Initiator and Responder. Field map, octets:
//    0-15 Key     16 flags M 0x80, C 0x40, R 0x20, S 0x10, reserved 0x0F     17 Rev     18-19 PD_Length, all Private
//    Data, <= 512
//   20-23 only if enhanced: enhanced/enhanced_data.h, then the ULP's Private Data
//
// Decided here, the texts being silent or at odds:
// - A frame is enhanced if S=1 and Rev >= 2. In a Rev 0 or 1 frame 0x10 is a reserved bit of RFC 5044, which "MUST NOT"
// be checked: all Private Data
//   belongs to the ULP. (RFC 6581 forbids to send S=1 with Rev 1.)
// - S=1 with PD_Length < 4 is malformed. (siw crashes on such a Reply: never send one.)
// - Any Rev is parsed; which ones we talk to is decided by the negotiation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"
#include "iwarp/enhanced/enhanced_data.h"
#include "iwarp/mpa/need_more.h"

namespace iwarp::mpa {

inline constexpr std::size_t kKeyBytes = 16;              // octets of the Key
inline constexpr std::size_t kStartupHeaderBytes = 20;    // octets in front of the Private Data field
inline constexpr std::size_t kMaxPrivateDataBytes = 512;  // the whole Private Data field, enhanced data included
// Longest private data of the ULP that we send. Linux peers take 256 octets in all, and siw handles its own answer
// right only up to 251.
inline constexpr std::size_t kMaxSendPrivateDataBytes = 251;
using enhanced::EnhancedData;
using enhanced::kEnhancedDataBytes;
using enhanced::kMaxIrdOrd;
using enhanced::kNoIrdOrdNegotiation;

struct StartupFrame {
  bool is_reply = false;           // which Key
  bool markers = false;            // M: the sender of this frame wants to receive Markers
  bool crc = false;                // C
  bool reject = false;             // R: meaningful in a Reply only
  bool enhanced = false;           // S, see above; written with Rev >= 2 only
  std::uint8_t revision = 2;       // Rev, as received
  std::uint8_t reserved_bits = 0;  // as received (0x0F of octet 16; with Rev < 2 also 0x10); ignored, and never written
  EnhancedData enhanced_data{};    // meaningful if enhanced
  ConstBytes private_data{};       // the ULP's part. Points into the parsed bytes, or to what the writer lends

  // Octets of the frame on the wire.
  [[nodiscard]] std::size_t size() const {
    return kStartupHeaderBytes + (enhanced ? kEnhancedDataBytes : 0) + private_data.size();
  }
  // Writes the frame to the first size() bytes of `out`. Precondition: out.size() >= size(); the Private Data field is
  // <= 512 octets.
  void write_to(MutBytes out) const;
  // "Request(rev=2, crc=1, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=1, rtr_read=1, ird=32, ord=32, pd=8)"
  [[nodiscard]] std::string to_string() const;

  struct Parsed;
};

struct StartupFrame::Parsed {
  StartupFrame frame;     // spans point into the parsed bytes
  std::size_t bytes = 0;  // consumed; what follows is not part of the frame
};

using StartupParse =
    std::variant<StartupFrame::Parsed, NeedMore, Error>;  // a frame, a wish for more bytes, or what is wrong

// Parses the frame that starts at bytes[0]. The Key is compared as far as it has come, so a stranger is told by its
// first wrong octet; PD_Length is judged on the header alone. Errors: kMalformedStartupFrame (wrong Key, S=1 without
// enhanced data), kPrivateDataTooLong (field longer than `max_private_data_bytes` or 512). Either way RFC 5044 s7.1.2
// wants TCP closed at once, without a word.
[[nodiscard]] StartupParse parse_request(ConstBytes bytes, std::size_t max_private_data_bytes = kMaxPrivateDataBytes);
// The same for the Key of a Reply.
[[nodiscard]] StartupParse parse_reply(ConstBytes bytes, std::size_t max_private_data_bytes = kMaxPrivateDataBytes);

}  // namespace iwarp::mpa
