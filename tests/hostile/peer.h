// The hostile end of a connection in full operation: sends FPDUs as they should be or as they should not, and hears
// what the victim says. Blocking, with a limit on every wait.
#pragma once

#include <map>
#include <optional>

#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/rdmap/atomic.h"
#include "iwarp/rdmap/terminate_message.h"
#include "tests/hostile/reaction.h"
#include "tests/hostile/target.h"
#include "tests/support/segments.h"

namespace iwarp::hostile {

using test::Bytes;
using test::hex;
using test::pattern;
using test::RawTcp;
using test::operator|;

// What came from the victim.
struct Heard {
  enum class Kind : std::uint8_t {
    kSend,          // a whole message, in `payload`
    kReadRequest,   // in `read`
    kReadResponse,  // a segment
    kWrite,         // a segment
    kTerminate,     // in `terminate`
    kFin,
    kReset,
    kSilence,         // nothing within the limit
    kUnreadable,      // not a good FPDU, or not a good segment: `payload`
    kAtomicRequest,   // in `atomic`
    kAtomicResponse,  // in `answer`
  };
  Kind kind{};
  Bytes payload{};
  Stag stag{};
  std::uint64_t to = 0;
  rdmap::ReadRequest read{};
  rdmap::TerminateMessage terminate{};
  rdmap::AtomicRequest atomic{};
  rdmap::AtomicResponse answer{};
};

// Which directions carry Markers, as the peer sees it.
struct MarkerUse {
  bool heard = false, sent = false;
};

class Peer {
 public:
  // Takes the connection over when startup is done. `crc`, `markers`: as negotiated.
  Peer(const Target& target, RawTcp tcp, bool crc, Bytes private_data = {}, MarkerUse markers = {});

  RawTcp tcp;
  bool crc;
  Bytes private_data;                                       // of the victim's startup frame, the ULP's part
  int settle_ms;                                            // Target::settle()
  rdmap::Extensions extensions = rdmap::Extensions::kNone;  // what the victim may send; the rest is kUnreadable

  // Octets as they are; an FPDU as it should be around a ULPDU that may be anything. What the victim does not take any
  // more is not missed.
  void raw(const Bytes& octets) {
    sent_bytes_ += octets.size();
    (void)tcp.send(octets);
  }
  void ulpdu(const Bytes& octets) { raw(framed(octets)); }
  [[nodiscard]] Bytes framed(const Bytes& ulpdu) const {
    return markers_.sent ? test::marked_fpdu(ulpdu, sent_bytes_, crc) : test::fpdu(ulpdu, crc);
  }
  // Of FPDUs, in a connection that another has taken through startup.
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }
  // A Send as it should be, with the next MSN.
  void send(const Bytes& payload, rdmap::Opcode op = rdmap::Opcode::kSend, std::uint32_t tail = 0);
  [[nodiscard]] std::uint32_t take_msn() { return next_msn_++; }
  // The Read Response that `request` asks for, of pattern octets or of what is exposed.
  void respond(const rdmap::ReadRequest& request);
  // Memory that the victim may read. It may write anywhere: nobody looks.
  std::map<Stag, Bytes> exposed;

  [[nodiscard]] Heard hear(int limit_ms = 5000);
  // hear(), but serves Read Requests and skips Writes and Responses.
  [[nodiscard]] Heard hear_message(int limit_ms = 5000);
  // What ended the connection, in the vocabulary, if `last` is an end: "term ..." only when TCP ends behind it.
  [[nodiscard]] std::optional<Reaction> ending(const Heard& last);

 private:
  [[nodiscard]] std::optional<Heard> decode();
  [[nodiscard]] std::optional<Heard> take_segment(const Bytes& ulpdu);

  std::function<void()> meanwhile_;  // of the target
  MarkerUse markers_;
  std::uint64_t sent_bytes_ = 0;
  mpa::FpduDecoder decoder_;
  Bytes in_;
  Bytes message_;
  std::uint32_t next_msn_ = 1;
};

}  // namespace iwarp::hostile
