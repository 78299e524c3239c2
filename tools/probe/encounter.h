// One connection of `iwarp probe --listen`: the Request, the answer of a trial, what comes then, the end. Each wait has
// a limit.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/probe/answer.h"
#include "tools/probe/first_message.h"
#include "tools/probe/socket.h"
#include "tools/probe/trial.h"

namespace iwarp::tools::probe {

// What happened: a plain value, so that judging it needs no network.
struct Encounter {
  const Trial* trial = nullptr;
  std::string peer{};
  std::vector<std::byte> request{};  // what came before a Reply was sent: a Request, or anything else
  std::vector<std::byte> reply{};    // what was sent; empty: nothing
  // What came behind the Reply: its first message, and how many octets.
  FirstMessage first{};
  std::size_t octets_behind = 0;
  TcpState at_end = TcpState::kOpen;
  // Of a trial that closes: the Request of the next connection; empty: there was none in time.
  std::vector<std::byte> next_request{};

  [[nodiscard]] std::optional<RawFrame> parsed_request() const;
  [[nodiscard]] std::optional<RawFrame> parsed_reply() const { return RawFrame::parse(reply); }
};

struct EncounterOptions {
  // For the Request, for what follows the Reply, and for an end that has to come, each by itself.
  std::chrono::milliseconds timeout{5000};
  // How long to listen for what should not come: octets before the Reply, or behind a rejection.
  std::chrono::milliseconds quiet{150};
};

[[nodiscard]] Encounter meet(const Trial& trial, ConstBytes private_data, Socket& socket, std::string peer,
                             const EncounterOptions& options);
// A Request alone, and the end: for the connection that follows one that was closed.
[[nodiscard]] std::vector<std::byte> request_of(Socket& socket, const EncounterOptions& options);

}  // namespace iwarp::tools::probe
