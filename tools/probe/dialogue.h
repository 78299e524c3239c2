// One connection of `iwarp probe`: the Request, what comes, the RTR that the Reply names, what comes, the end. Harmless
// for the listener: nothing follows the RTR, and each wait has a limit.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "iwarp/cm/byte_tap.h"
#include "tools/probe/answer.h"
#include "tools/probe/question.h"

namespace iwarp::tools::probe {

struct DialogueOptions {
  // For the connection, for the whole Reply, and for the Read Response, each by itself.
  std::chrono::milliseconds timeout{5000};
  // How long to listen for what should not come: octets behind the Reply, a Terminate after the Write RTR.
  std::chrono::milliseconds quiet{150};
  cm::TapMaker tap_maker{};
};

[[nodiscard]] Answer ask(const Question& question, ConstBytes private_data, const boost::asio::ip::tcp::endpoint& to,
                         const DialogueOptions& options);

}  // namespace iwarp::tools::probe
