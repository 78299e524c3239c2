// How to talk to an RDMA victim: the wire protocol of rdma-core's rping server, so that the same scripts run against
// ours and against siw. A Send of 16 octets announces memory (address 8 | STag 4 | size 4); the victim answers the
// first, third, ... of them with an RDMA Read of that memory and a Send, the others with an RDMA Write and a Send.
// Immediate Data (RFC 7306) that are not 0 announce an STag to our own victim: it answers with a FetchAdd and a Send.
//
// Our own victim also tells, in the private data of its Reply, which memory it has registered: an Advert. Of another
// program's memory we know what its Reads tell.
#pragma once

#include <array>
#include <memory>

#include "tests/hostile/peer.h"

namespace iwarp::hostile {

// Memory of the victim. Of ours, all start at TO kBase and are kRegionBytes long.
enum class Memory : std::uint8_t {
  kOpen,         // remote read and write, not to be invalidated
  kReadOnly,     // remote read
  kWriteOnly,    // remote write
  kForeign,      // of another Protection Domain
  kOtherStream,  // of the same Protection Domain, for another stream only
  kRevoked,      // was open once
  kInvalidable,  // remote read and write, and the peer may invalidate it
  kShifted,      // remote read and write; where a TO is a multiple of 8, the address is not: it is 4 more
  kCount
};
inline constexpr std::uint64_t kBase = 0x10000;
inline constexpr std::uint32_t kRegionBytes = 4096;
inline constexpr std::uint32_t kSlotBytes = 64;  // of each posted receive
inline constexpr std::size_t kReceives = 2;
inline constexpr std::uint16_t kDepth = 4;  // IRD of the victim

struct Advert {
  std::array<Stag, static_cast<std::size_t>(Memory::kCount)> stags{};

  [[nodiscard]] Bytes encode() const;
  // Nullopt when these private data are no Advert: the victim is another program.
  [[nodiscard]] static std::optional<Advert> parse(const Bytes& private_data);
  [[nodiscard]] Stag operator[](Memory m) const { return stags[static_cast<std::size_t>(m)]; }
};

// An enhanced Request that offers the Write RTR, and the Reply that names it.
[[nodiscard]] mpa::StartupFrame polite_request();
[[nodiscard]] mpa::StartupFrame polite_reply();
// Octets of a frame with some of them overwritten: {offset, value}.
[[nodiscard]] Bytes altered(Bytes octets, std::initializer_list<std::pair<std::size_t, unsigned>> changes);

// The victim did not accept a Request; `reaction` is what it did instead.
class Refused : public std::runtime_error {
 public:
  explicit Refused(Reaction what)
      : std::runtime_error("the victim did not accept the Request: " + what), reaction(std::move(what)) {}
  Reaction reaction;
};

// Full operation as MPA initiator, the RTR sent. Throws Refused.
[[nodiscard]] Peer open(Target& target, Flavour flavour = Flavour::kDefault,
                        const mpa::StartupFrame& request = polite_request());
// The rest of it, once the Request is out: takes the Reply and sends the RTR that it names.
[[nodiscard]] Peer finish_opening(Target& target, RawTcp tcp, const mpa::StartupFrame& request);
// Full operation as MPA responder: the Request taken, the Reply sent.
[[nodiscard]] Peer lure(Target& target, Flavour flavour = Flavour::kDefault, mpa::StartupFrame reply = polite_reply());

// The Send that announces memory of ours.
[[nodiscard]] Bytes info(std::uint32_t size = 64);
// Announces memory and returns the Read Request that follows, unanswered. Throws when another thing comes.
[[nodiscard]] rdmap::ReadRequest provoke_read(Peer& peer, std::uint32_t size = 64);

// A piece of the victim's memory.
struct Region {
  Stag stag{};
  std::uint64_t to = 0;
  std::uint32_t bytes = 0;
  std::shared_ptr<Peer> owner{};  // the other connection that it belongs to, if any
};
// The victim's memory of that kind, as `peer` may know it. Of another program than ours: the sink of its Reads, which
// rping's server registers for remote reading and writing, in a Protection Domain for each connection. Throws
// Inapplicable when there is none of that kind.
[[nodiscard]] Region find_memory(Target& target, Peer& peer, Memory kind);

// FPDUs of that many Read Requests (of nothing), one behind the other, from MSN 1 on: more than any queue holds, and
// all there before the first can be answered.
[[nodiscard]] Bytes read_burst(const Peer& peer, std::uint32_t count);

// What the victim does about what went before: proves by two whole exchanges that it serves on, or tells how it ended.
// `announced`: the Send of the first exchange is already out.
[[nodiscard]] Reaction verdict(Peer& peer, bool announced = false);
// The same before full operation: what comes is a startup frame or the end.
[[nodiscard]] Reaction startup_verdict(Target& target, RawTcp& tcp);

}  // namespace iwarp::hostile
