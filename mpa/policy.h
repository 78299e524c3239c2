// What a side of a connection wants from MPA startup (Policy), and what came out of it (Negotiated). RFC 5044 s7.1, RFC
// 6581 s9.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "iwarp/base/result.h"
#include "iwarp/enhanced/settlement.h"

namespace iwarp::mpa {

using enhanced::Rtr;

struct Policy {
  // Whether FPDUs carry a CRC.
  enum class Crc : std::uint8_t {
    kOn,         // C=1 in our frames: CRC is on whatever the peer says
    kPreferOff,  // C=0 unless the peer sets it: CRC is on only if the peer wants it
    kOff,        // C=0, and a peer with C=1 is refused
  };
  // Whether FPDUs carry MPA Markers.
  enum class Markers : std::uint8_t {
    kServe,   // M=0 in our frames: none are received. They are sent to a peer with M=1
    kAsk,     // M=1: the peer is to send them; and they are sent to a peer with M=1
    kRefuse,  // M=0, and a peer with M=1 is refused
  };

  // Highest MPA revision sent and accepted, 1 or 2. Default 2: only enhanced frames (RFC 6581) settle IRD, ORD and the
  // RTR. With 1 the enhanced form is forbidden: siw then cannot issue Reads towards us, Intel RNICs still work. A
  // Responder with 2 takes revision 1 too.
  std::uint8_t revision = 2;
  // Default kOn: RFC 5044 s4.4 demands it. Anything else only by explicit order of the operator, for paths protected
  // otherwise; kOff does not connect to RNICs, which always set C=1.
  Crc crc = Crc::kOn;
  // Default kServe: every sender must be able to (RFC 5044 s4.3), and nothing here gains by receiving them: they are
  // for hardware that takes segments out of order. Either way they cost a copy of all octets in their direction. With
  // kAsk siw refuses the connection, as it does not know them; kRefuse turns the RNICs away that ask.
  Markers markers = Markers::kServe;
  // Initiator: ask for the peer-to-peer model (A=1) first. Default on: Intel RNICs reset the connection without it, and
  // it lets the Responder send first. Off where the Initiator speaks first by nature: Linux siw crashes when such a
  // connection ends too soon. A Responder follows the Request.
  bool peer_to_peer = true;
  // Initiator, with peer_to_peer off: ask for it after all, on a new connection, when the peer ends this one before the
  // first octet of its Reply (mpa/fallback.h). Default on. Off breaks peers that insist.
  bool allow_peer_to_peer_fallback = true;
  // RTR forms to send (Initiator) or to take (Responder). Default Write and Read. Without Read, Chelsio RNICs end the
  // connection with "RTR mismatch"; without Write, a siw Responder still picks Read. With peer_to_peer at least one
  // must be set, and a Responder needs one always.
  bool rtr_write = true;
  bool rtr_read = true;  // as rtr_write, for a zero-length Read
  // Likewise for a zero-length Send. Default off: no known peer supports it, and RFC 6581 does not say whether it takes
  // one of the receives that the Responder's application has posted. Here it takes none and completes nothing; other
  // Responders may differ.
  bool rtr_send = false;
  // Depth of the queue of inbound RDMA Reads we offer (IRD) and number of outbound Reads we want to have outstanding
  // (ORD), 0..16382. Default 32, which every known peer can match. IRD 0 forbids the peer to read from here (the Linux
  // NFS server then refuses); ORD 0 forbids our own Reads.
  std::uint16_t ird = 32;
  std::uint16_t ord = 32;  // as `ird`, for outbound Reads
  // Up to where IRD is raised if the peer asks for more than `ird` (relaxed); an `ird` of 0 is never raised. Default
  // 128, the maximum of siw. Below `ird` it means `ird`: 0 is strict. Too low: the Initiator ends with Terminate 2/0/6
  // where a raise would have done. Too high: the peer decides how much memory its Reads pin here.
  std::uint16_t max_ird = 128;
  // Initiator: whether the Request states `ird` and `ord`. Default on. Off: it has 0x3FFF for both (RFC 6581 s9.1), a
  // peer that knows it answers alike and both ends keep their own, for the applications to settle (irdma does; siw and
  // Chelsio take 0x3FFF for a large number). A Responder follows the Request.
  bool negotiate_depths = true;
  // From construction to the complete frame of the peer, never restarted by single octets. Default 5 s (RFC 5044 s7.1.2
  // rule 10 says "reasonable", siw waits 5 s as Responder and 10 s as Initiator). Lower breaks peers whose application
  // decides slowly; higher feeds slow-loris attackers.
  std::chrono::milliseconds startup_timeout{5000};
  // Initiator: suggest another try, the last one, with revision 1 on a new connection when the peer ends this one
  // before the first octet of its Reply. Default on: that is how peers without RFC 6581 answer. Off: such peers cannot
  // be reached with revision 2.
  bool allow_revision_1_fallback = true;
  // Longest Private Data field accepted, octets, enhanced data included. Default 512, the limit of RFC 5044. Lower
  // refuses peers; higher counts as 512.
  std::size_t max_private_data_bytes = 512;

  friend bool operator==(const Policy&, const Policy&) = default;
};

// kInvalidArgument if the policy contradicts itself (revision, IRD and ORD out of range; no RTR form though one is
// needed).
[[nodiscard]] Result<void> validate(const Policy& policy);

// What it wants from enhanced establishment. peer_to_peer as an Initiator asks for it.
[[nodiscard]] enhanced::Offer offer_of(const Policy& policy);

// What both ends have agreed on.
struct Negotiated {
  using Rtr = mpa::Rtr;  // its forms are listed there

  std::uint8_t revision = 2;      // of MPA, 1 or 2
  bool enhanced = false;          // IRD, ORD and the connection model were negotiated (S=1)
  bool crc = true;                // both directions
  bool markers_sent = false;      // by us: the peer's M
  bool markers_received = false;  // our M
  bool peer_to_peer = false;      // an RTR opens the connection
  Rtr rtr = Rtr::kNone;           // Initiator: the form to send. Responder: the form it named
  std::uint16_t ird = 0;          // used by this side: inbound Reads to admit,
  std::uint16_t ord = 0;          // outbound Reads to have outstanding at most
  std::uint16_t peer_ird = 0;     // as received, 0x3FFF included; 0 if not enhanced
  std::uint16_t peer_ord = 0;     // likewise

  // "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32", and " markers=sent", "received" or "both" where there are
  // any
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Negotiated&, const Negotiated&) = default;
};

}  // namespace iwarp::mpa
