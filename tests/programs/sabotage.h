// Plants one fault into what a run sees, as a defect of iwarp would make it: for the test of the model, which has to
// notice each.
#pragma once

#include <random>
#include <vector>

#include "tests/programs/hosts.h"
#include "tests/programs/model.h"

namespace iwarp::programs {

enum class Fault : std::uint8_t {
  kNone,
  kSwapped,      // two completions of one queue of a queue pair change places
  kDropped,      // a completion is lost
  kRepeated,     // one comes twice
  kFlushed,      // one is flushed while the connection stands
  kLength,       // a Receive of another length
  kSolicited,    // with a solicited event that was not sent, or without
  kImmediate,    // with other Immediate Data
  kInvalidated,  // without word of the STag that it revoked
  kReceived,     // an octet of a received message is wrong
  kRead,         // an octet that a Read or Atomic brings is
  kWritten,      // an octet of a Write is, when the message behind it has come
  kStray,        // an octet that nobody writes is
  kStillValid,   // an STag that was revoked
  kEventLost,    // an asynchronous event is lost
  kEventFromNowhere,
};
inline constexpr std::size_t kFaults = 16;
[[nodiscard]] const char* name(Fault fault);

class Saboteur {
 public:
  Saboteur(Fault fault, std::uint64_t seed) : fault_(fault), random_(static_cast<unsigned>(seed)) {}

  // What was polled from a queue, before the model sees it.
  void completions(std::vector<verbs::Completion>& polled, Hosts& hosts, const Model& model);
  // Memory, when nothing moves.
  void memory(Hosts& hosts, const Model& model);
  // An event that was polled, or none.
  void event(std::optional<verbs::AsyncEvent>& polled, Hosts& hosts, std::size_t host);
  // Whether an STag is said to be valid.
  [[nodiscard]] bool valid(bool is);

  [[nodiscard]] bool planted() const { return planted_; }

 private:
  [[nodiscard]] bool wants(Fault fault) const { return fault_ == fault && !planted_; }
  void alter(verbs::Completion& c);
  void flip(const verbs::Completion& c, Hosts& hosts, const Model& model);

  Fault fault_;
  std::minstd_rand random_;
  bool planted_ = false;
};

}  // namespace iwarp::programs
