// Whom a script attacks.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include "tests/cm/raw_tcp.h"

namespace iwarp::hostile {

// How the victim is configured. Another program's listener has the default only.
enum class Flavour : std::uint8_t {
  kDefault,         // revision 2, CRC on, both RTR forms
  kPreferOff,       // CRC only if the peer wants it
  kRevision1,       // enhanced frames forbidden
  kImpatient,       // every wait for a peer ends after a fraction of a second
  kNoPeer2Peer,     // does not ask for the peer-to-peer model
  kAsksForMarkers,  // M=1
  kSharedReceives,  // its receives are those of a shared receive queue
  kRfc7306,         // it knows Immediate Data and Atomics
  kVersion2,        // it speaks version 2 of RPC-over-RDMA, and asks for it
  kDraft2005,       // it speaks the draft of 2005 (RDMA_MSGP, RDMA_DONE, CONFIG_RDMA)
  kImpatient2005,   // as well, and waits for RDMA_DONE for a fraction of a second
  kBackwardChunks,  // a requester that takes chunks in backward Calls, if it can
};

// This victim cannot be attacked in that way: the case is skipped, and the reason reported.
class Inapplicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Target {
 public:
  virtual ~Target() = default;
  // A fresh TCP connection to the victim, which is MPA responder. Throws Inapplicable.
  [[nodiscard]] virtual test::RawTcp dial(Flavour flavour) = 0;
  // A fresh TCP connection from the victim, which is MPA initiator. Throws Inapplicable.
  [[nodiscard]] virtual test::RawTcp hook(Flavour flavour) = 0;
  // Called whenever a script is about to wait for the victim: the chance of the victim's other connections to be served
  // while this one misbehaves. May be empty. Connections opened while it is empty never call it.
  std::function<void()> meanwhile;

  // How long to wait for a victim of flavour kImpatient, which has to lose patience earlier.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const { return std::chrono::seconds(5); }
  // How long to wait after the Reply, and after the RTR, before the first octet that follows; and for an answer that
  // may come behind later ones. Linux siw needs some time: FPDUs that come before it took over the socket stay unread,
  // and an error that comes before the application has accepted ends in a BUG of the kernel's iw_cm.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const { return {}; }
};

}  // namespace iwarp::hostile
