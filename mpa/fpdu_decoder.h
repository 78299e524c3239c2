// The receiving side of FPDU framing: finds and verifies the FPDUs of one half connection (RFC 5044 s4, s6, s8). It
// owns no bytes: the caller keeps the stream, this class judges it. Boundaries come from ULPDU_Length alone, one FPDU
// after the other; segmentation of TCP is irrelevant. Not thread-safe.
//
// Decided here, the texts being silent: every ULPDU_Length from 0 to 65535 is accepted. RFC 5044 s3 binds only senders
// to 64768 and real peers send up to 65514; the DDP layer refuses a ULPDU that is shorter than its header (2/0/3).
// Markers are not implemented: this build never asks for them (M=0), so a peer never sends any. Their place is here:
// decode() takes mutable bytes to strip them in place, stream_position() is what their spacing counts.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"
#include "iwarp/mpa/need_more.h"

namespace iwarp::mpa {

// An FPDU that is whole and whose CRC, if there is one, is right.
struct FpduFrame {
  ConstBytes ulpdu;            // into the caller's buffer, and valid as long as that
  std::size_t fpdu_bytes = 0;  // consumed from the stream: the next FPDU starts here
};

using DecodeResult = std::variant<FpduFrame, NeedMore, Error>;  // what decode() finds

class FpduDecoder {
 public:
  // `crc_enabled` is the negotiated outcome. `skip_crc_check_for_fuzzing` accepts any CRC: never set it outside a
  // fuzzer.
  explicit FpduDecoder(bool crc_enabled, bool skip_crc_check_for_fuzzing = false);

  // Decodes the FPDU that starts at bytes[0]; more FPDUs may follow. After a frame the caller drops its fpdu_bytes and
  // calls again. An Error is final: every later call gives the same one, because nothing behind a bad FPDU may be
  // delivered (RFC 5044 s8). The caller must tell the peer (Error::tell_peer) and must not close TCP before that
  // Terminate is out.
  [[nodiscard]] DecodeResult decode(MutBytes bytes);

  // Sizes of the parts of an FPDU.
  struct Layout {
    std::size_t ulpdu_bytes = 0;    // as its length field says
    std::size_t fpdu_bytes = 0;     // all of it
    std::size_t trailer_bytes = 0;  // pad and CRC: fpdu_bytes = 2 + ulpdu_bytes + trailer_bytes

    friend constexpr bool operator==(const Layout&, const Layout&) = default;
  };
  // Where the parts of the FPDU that starts at bytes[0] lie, as soon as two bytes are there. Unverified: with CRC on
  // nothing may be placed on the strength of it.
  [[nodiscard]] static std::optional<Layout> peek(ConstBytes bytes);

  // The driver has received this whole FPDU straight into its final buffer: only the stream position moves.
  // Precondition: CRC off and no error so far.
  void skip(const Layout& layout);

  // Whether CRCs were negotiated.
  [[nodiscard]] bool crc_enabled() const { return crc_enabled_; }
  // Octets of complete FPDUs since the first octet of Full Operation.
  [[nodiscard]] std::uint64_t stream_position() const { return stream_position_; }

 private:
  bool crc_enabled_;
  bool check_crc_;
  std::optional<Error> error_;
  std::uint64_t stream_position_ = 0;
};

}  // namespace iwarp::mpa
