// One direction of a DDP stream as an observer sees it: its messages in the order of their DDP-SSN (RFC 5043 s10), with
// what the capture lacks in between. It goes on behind what no receiver would take. Not thread-safe.
//
// Memory: kMaxKept messages, kMaxBytes of them; beyond that what is missing is given up for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <variant>

#include "iwarp/trace/sctp_messages.h"

namespace iwarp::trace {

class SctpOrder {
 public:
  static constexpr std::size_t kMaxKept = 4096;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  // Messages that the capture lacks here.
  struct Lost {
    std::uint32_t messages = 0;
  };
  // A message whose DDP-SSN was there already.
  struct Stray {
    SctpMessage message;
  };
  using Item = std::variant<SctpMessage, Lost, Stray>;

  // A message, two octets of DDP-SSN at least. Before the first one, or begin(), any DDP-SSN is taken for due.
  void add(SctpMessage message);
  // A session begins: 0 is due.
  void begin();
  // Nothing more of this session comes: next() gives what is left.
  void finish() { giving_up_ = true; }
  // The next message that is due, or what is missing; nullopt: none yet. Call it until it gives nothing.
  [[nodiscard]] std::optional<Item> next();
  // Octets that are kept.
  [[nodiscard]] std::size_t memory() const { return bytes_; }

 private:
  std::optional<std::uint16_t> due_;
  bool giving_up_ = false;
  std::map<std::uint16_t, SctpMessage> kept_;  // by DDP-SSN
  std::deque<SctpMessage> strays_;
  std::size_t bytes_ = 0;
};

}  // namespace iwarp::trace
