// Two of our queue pairs that talk through a Relay: Sends, RDMA Writes and Reads both ways, in a fixed order, every
// octet known. Whatever the relay does, the following must hold, or the test fails: what completed successfully is
// intact; no octet of registered memory ever has a value that nobody sent; every request completes, once; both ends
// learn why they ended, in time; and nothing of the connection is left.
#pragma once

#include <functional>

#include "tests/cm/node.h"
#include "tests/faults/relay.h"

namespace iwarp::faults {

struct Settings {
  Relay::Plan plan{};
  mpa::Policy client_policy{.allow_revision_1_fallback = false};
  mpa::Policy server_policy{};
  stream::Options stream{};
  // How long a party waits for the other in the middle of the conversation before it closes the connection.
  std::chrono::milliseconds patience = test::kPatience;
};

struct Outcome {
  Error client_start, server_start;  // server: kNotConnected when no valid Request reached it
  stream::Disconnected client_end, server_end;
  bool complete = false;  // all was said, and the end was in order
  bool gave_up = false;   // a party lost its patience
  Relay::Record record;

  [[nodiscard]] std::string to_string() const;
};

class Conversations {
 public:
  // One conversation over a connection of its own.
  Outcome hold(const Settings& settings);
  // Octets of each way when nothing is wrong.
  [[nodiscard]] Relay::Record undisturbed();

 private:
  cm::Engine server_engine_, client_engine_;
  Relay relay_;
};

// Holds a conversation for each of these, several at a time because most of them wait for timeouts; `check` sees each
// outcome, in several threads. The test fails when descriptors or threads are left.
struct Case {
  std::string name;
  Settings settings;
};
void hold_all(const std::vector<Case>& cases, const std::function<void(const Case&, const Outcome&)>& check);

// Timeouts for tests in which they expire.
[[nodiscard]] Settings impatient();

}  // namespace iwarp::faults
