// How to talk to a victim over SCTP: an association by hand, the sessions on it, and what the victim does. Its
// application answers each Send with a Send of the same octets. The private data of an Initiate tell it to do something
// else than to accept: kRejectMe, kLeaveMe.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

#include "iwarp/enhanced/enhanced_data.h"
#include "iwarp/sctp/session_control.h"
#include "tests/hostile/reaction.h"
#include "tests/hostile/sctp_peer.h"
#include "tests/support/segments.h"

namespace iwarp::hostile::sctp {

using namespace std::chrono_literals;
using iwarp::sctp::Function;
using test::pattern;
using test::operator|;

// How the victim is configured.
enum class Flavour : std::uint8_t {
  kDefault,    // knows RFC 6581; as initiator it asks for 4 Reads each way, and can do no more
  kPlain,      // knows RFC 5043 only; as initiator it begins plain sessions
  kPeerToPeer  // as initiator it asks for the peer-to-peer model, with a Write or a Read for RTR
};

class Target {
 public:
  virtual ~Target() = default;
  // UDP port of 127.0.0.1 at which the victim listens; its SCTP port, too. Responding flavours: kDefault, kPlain.
  [[nodiscard]] virtual std::uint16_t port(Flavour flavour) = 0;
  // Has the victim connect to that UDP port of 127.0.0.1.
  virtual void connect_to(std::uint16_t port, Flavour flavour) = 0;
  // As hostile::Target::meanwhile.
  std::function<void()> meanwhile;
};

// A script: behaves until it breaks one rule, and says what the victim did about it.
struct Script {
  std::string_view name;
  Reaction (*run)(Target&);
};
[[nodiscard]] std::span<const Script> responder_scripts();
[[nodiscard]] std::span<const Script> initiator_scripts();

inline constexpr const char* kRejectMe = "reject";
inline constexpr const char* kLeaveMe = "leave";  // undecided, as long as the association lasts
inline constexpr std::uint16_t kNeighbourStream = 62;
inline constexpr std::uint16_t kDepth = 4;  // IRD and ORD of the victim, the most that it can do

[[nodiscard]] Bytes text(std::string_view words);
// Enhanced data that any victim can do with.
[[nodiscard]] enhanced::EnhancedData polite();
[[nodiscard]] Bytes octets(const enhanced::EnhancedData& data);

// What came on a stream, in the order of the DDP-SSN.
struct Heard {
  enum class Kind : std::uint8_t { kControl, kSend, kTerminate, kUnreadable, kAborted, kShutDown, kSilence };
  Kind kind{};
  Function function{};                           // kControl
  std::optional<enhanced::EnhancedData> data{};  //
  Bytes payload{};                               // kSend; kControl: the ULP's private data
  TerminateCode code{};                          // kTerminate: of RDMAP

  [[nodiscard]] bool is(Function f) const { return kind == Kind::kControl && function == f; }
};

// One session of an association, from this end. A message has the next DDP-SSN unless told otherwise.
class Session {
 public:
  // `heard`: messages of the victim that have been taken already.
  Session(SctpPeer& peer, std::uint16_t stream, std::uint16_t heard = 0) : peer_(&peer), stream_(stream), due_(heard) {}

  [[nodiscard]] std::uint16_t stream() const { return stream_; }
  [[nodiscard]] std::uint16_t take_ssn() { return next_++; }
  // A whole message, the DDP-SSN in front of `rest`.
  void message(std::uint32_t ppid, const Bytes& rest, SctpPeer::Chunk how = {}) {
    message_at(take_ssn(), ppid, rest, how);
  }
  void message_at(std::uint16_t ssn, std::uint32_t ppid, const Bytes& rest, SctpPeer::Chunk how = {});
  void control(Function function, const Bytes& private_data = {}) { control_at(take_ssn(), function, private_data); }
  void control_at(std::uint16_t ssn, Function function, const Bytes& private_data = {});
  // Of a Send with the next MSN.
  [[nodiscard]] Bytes send_segment(const Bytes& payload) { return test::send_segment(payload, {.msn = next_msn_++}); }
  void send(const Bytes& payload) { message(kSegmentPpid, send_segment(payload)); }
  // An Initiate, and the Accept that comes. Throws when another thing comes.
  void open(Function function = Function::kEnhancedInitiate);

  [[nodiscard]] Heard hear(std::chrono::milliseconds limit = 10s);
  // Two Sends are answered.
  [[nodiscard]] bool is_served();

  static constexpr std::uint32_t kSegmentPpid = 16, kControlPpid = 17;

 private:
  SctpPeer* peer_;
  std::uint16_t stream_;
  std::uint16_t next_ = 0, due_ = 0;  // DDP-SSN of this end, and of the victim
  std::uint32_t next_msn_ = 1;
};

// An association with a victim that listens, and a session without fault on it beside the one that misbehaves.
class Association {
 public:
  explicit Association(Target& target, const SctpPeer::Setup& setup = {}, Flavour flavour = Flavour::kDefault,
                       std::uint16_t neighbour_stream = kNeighbourStream);

  SctpPeer peer;
  Session neighbour;
  Session session;  // on stream 0, not begun

  // What the victim does about what went before on `session`. `accepts`: how it would answer an Initiate that is out.
  [[nodiscard]] Reaction verdict(std::optional<Function> accepts = std::nullopt);
};

// A victim that has connected: its Initiate has come.
class Caught {
 public:
  explicit Caught(Target& target, const SctpPeer::Setup& setup = {}, Flavour flavour = Flavour::kDefault);

  SctpPeer peer;
  Session session;
  Heard initiate;

  // Accepts it as it wants to be.
  void accept();
  // What the victim does about what went before. `accepted`: unless it breaks off, it serves on.
  [[nodiscard]] Reaction verdict();
};

// Before there is a session: how the victim ends the association.
[[nodiscard]] Reaction association_verdict(SctpPeer& peer);

}  // namespace iwarp::hostile::sctp
