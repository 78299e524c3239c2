// What an end wants of its associations over UDP, and of the stack that has them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "iwarp/base/result.h"
#include "iwarp/sctp/chunk.h"
#include "iwarp/sctp_cm/udp_port.h"

namespace iwarp::sctp_cm {

// Of one association, or of all that a listener accepts.
struct TransportOptions {
  // SCTP streams, the same number each way, 1..1024. Default as sctp::AssociationOptions::streams.
  std::uint16_t streams = 64;
  // Adaptation indication that goes into INIT or INIT ACK; nullopt: none, for other uses of an association than DDP.
  std::optional<std::uint32_t> indication = sctp::kDdpIndication;
  // Octets of an SCTP packet, at most, 576..65507; IP and UDP come on top. Default: what an Ethernet frame leaves in
  // IPv6. SCTP does not look for the path MTU here: a value that is too high is fragmented by IP, which costs speed and
  // the whole packet with each fragment that is lost. 65507 suits loopback.
  std::uint16_t packet_bytes = 1452;
  // Of what is received and not yet handed up, and of what is sent and not yet acknowledged, octets, 64 KiB..64 MiB.
  // Default 1 MiB. A peer can make this end keep so much; less caps throughput at buffer / round trip.
  std::uint32_t buffer_bytes = 1 << 20;
  // From connect() to an association. Default 10 s. Lower breaks paths that lose INITs.
  std::chrono::milliseconds connect_timeout{10000};
  // Retransmission timer: lower and upper bound, milliseconds. Defaults 250 and 5000: more than the delayed SACK of
  // Linux (200 ms), and a path that was down is tried again soon. RFC 9260 has 1 s and 60 s for paths shared with all
  // the world.
  std::chrono::milliseconds rto_min{250};
  std::chrono::milliseconds rto_max{5000};
  // Retransmissions without an answer until the peer is given up, 1..100. Default 8: some 30 s with these timers.
  std::uint16_t max_retransmissions = 8;
  // How often an idle peer is asked whether it is there (HEARTBEAT). Default 10 s.
  std::chrono::milliseconds heartbeat{10000};
};

// kInvalidArgument, which names the option and its range.
[[nodiscard]] Result<void> validate(const TransportOptions& options);

// Of the stack, which a process has once.
struct StackOptions {
  // Associations at a time, those that are being set up by this end or shut down included. Beyond it connect() fails,
  // and cookies of new peers are dropped. Default 4096; each takes some 10 KB, and up to TransportOptions::buffer_bytes
  // each way.
  std::size_t max_associations = 4096;
  // Peers that have sent an INIT and nothing else, at a time; some 300 octets each. In a flood of forged INITs an
  // honest peer is served when its round trip is shorter than this number of INITs takes to come. Default 8192.
  std::size_t max_asking = 8192;
  // Packets of nobody that is known which SCTP answers (ABORT, SHUTDOWN COMPLETE), a second. Default 200.
  unsigned out_of_the_blue = 200;
  // Of packets that leave; for tests. Default: all pass.
  FateMaker fate{};
};

}  // namespace iwarp::sctp_cm
