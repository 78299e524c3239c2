// The receiving side of FPDU framing: finds and verifies the FPDUs of one half connection (RFC 5044 s4, s6, s8). It
// owns no bytes: the caller keeps the stream, this class judges it. Boundaries come from ULPDU_Length alone, one FPDU
// after the other; segmentation of TCP is irrelevant. Not thread-safe.
//
// Decided here, the texts being silent: every ULPDU_Length from 0 to 65535 is accepted. RFC 5044 s3 binds only senders
// to 64768 and real peers send up to 65514; the DDP layer refuses a ULPDU that is shorter than its header (2/0/3).
// With Markers every one of an FPDU is checked, behind its CRC, and they are cut out in place: what is left is the
// ULPDU in one piece.
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
  std::size_t fpdu_bytes = 0;  // consumed from the stream, Markers included: the next FPDU starts here
};

using DecodeResult = std::variant<FpduFrame, NeedMore, Error>;  // what decode() finds

class FpduDecoder {
 public:
  // `crc_enabled` and `markers`, whether the peer puts them in, are the negotiated outcome.
  // `skip_crc_check_for_fuzzing` accepts any CRC: never set it outside a fuzzer.
  explicit FpduDecoder(bool crc_enabled, bool markers = false, bool skip_crc_check_for_fuzzing = false);

  // Decodes the FPDU that starts at bytes[0]; more FPDUs may follow. After a frame the caller drops its fpdu_bytes and
  // calls again. An Error is final: every later call gives the same one, because nothing behind a bad FPDU may be
  // delivered (RFC 5044 s8). The caller must tell the peer (Error::tell_peer) and must not close TCP before that
  // Terminate is out. With Markers the octets of a frame are not those that were received any more.
  [[nodiscard]] DecodeResult decode(MutBytes bytes);

  // Sizes of the parts of an FPDU.
  struct Layout {
    std::size_t ulpdu_bytes = 0;    // as its length field says
    std::size_t fpdu_bytes = 0;     // all of it
    std::size_t trailer_bytes = 0;  // pad and CRC: fpdu_bytes = 2 + ulpdu_bytes + trailer_bytes

    friend constexpr bool operator==(const Layout&, const Layout&) = default;
  };
  // Where the parts of the FPDU that starts at bytes[0], without Markers, lie, as soon as two bytes are there.
  // Unverified: with CRC on nothing may be placed on the strength of it.
  [[nodiscard]] static std::optional<Layout> peek(ConstBytes bytes);

  // The driver has received this whole FPDU straight into its final buffer: only the stream position moves.
  // Precondition: neither CRC nor Markers, and no error so far.
  void skip(const Layout& layout);

  // Whether CRCs were negotiated.
  [[nodiscard]] bool crc_enabled() const { return crc_enabled_; }
  // Whether the first `bytes` octets behind the last FPDU are a part of the next: a Marker alone begins none.
  [[nodiscard]] bool has_begun(std::size_t bytes) const;
  // Octets of complete FPDUs, with their Markers, since the first octet of Full Operation.
  [[nodiscard]] std::uint64_t stream_position() const { return stream_position_; }

 private:
  [[nodiscard]] DecodeResult decode_marked(MutBytes bytes);

  bool crc_enabled_;
  bool markers_;
  bool check_crc_;
  std::optional<Error> error_;
  std::uint64_t stream_position_ = 0;
};

}  // namespace iwarp::mpa
