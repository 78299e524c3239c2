// The associations of `iwarp probe --llp sctp`, one for each question: its Initiate, what comes, the RTR that the
// answer names, what comes, the end. On raw messages, so that nothing hides what the peer does wrong. Harmless for the
// peer: no other segment is sent, each session is ended by a Terminate, each association in order, and each wait has a
// limit.
#pragma once

#include <boost/asio/ip/udp.hpp>
#include <chrono>
#include <memory>

#include "iwarp/base/result.h"
#include "tools/probe/sctp_answer.h"
#include "tools/probe/sctp_question.h"

namespace iwarp::tools::probe {

struct SctpDialogueOptions {
  // For the association, for each answer, and for the Read Response, each by itself.
  std::chrono::milliseconds timeout{5000};
  // How long to listen for what need not come: a Terminate behind that of this end, or behind the Write RTR.
  std::chrono::milliseconds quiet{150};
  std::uint16_t packet_bytes = 1452;  // of an SCTP packet, at most, 576 to 65507
};

// One thread.
class SctpDialogue {
 public:
  virtual ~SctpDialogue() = default;
  // `to`: of UDP; its port is that of SCTP, too.
  [[nodiscard]] virtual SctpAnswer ask(const SctpQuestion& question, ConstBytes private_data,
                                       const boost::asio::ip::udp::endpoint& to) = 0;
};

// A process has one at a time, and no other use of SCTP meanwhile: kResource; kInvalidArgument: this build has no SCTP.
[[nodiscard]] Result<std::unique_ptr<SctpDialogue>> make_sctp_dialogue(const SctpDialogueOptions& options);

}  // namespace iwarp::tools::probe
