// Two stream::Connections joined in memory in virtual time: no threads, no sockets, no clock. Knobs make the network
// bad.
#pragma once

#include <deque>
#include <optional>
#include <random>

#include "tests/support/endpoint.h"

namespace iwarp::test {

// One direction of the TCP connection.
struct Wire {
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  // --- Knobs.
  std::size_t max_chunk_bytes = kUnlimited;  // longest run that one read gives
  std::size_t max_write_bytes = kUnlimited;  // longest run that one write takes
  std::optional<std::uint32_t> random_seed;  // chunks of random length up to max_chunk_bytes (then at most 3000)
  std::optional<std::uint64_t> cut_at;       // no read goes across this stream offset
  bool stall = false;                        // the window is closed: writes take nothing
  std::optional<std::uint64_t> stall_after;  // writes take nothing beyond this stream offset
  std::optional<std::uint64_t> flip_bit_at;  // stream offset of an octet of which bit 0 arrives inverted
  std::optional<std::uint64_t> reset_after;  // both ends see RST when this stream offset has been delivered
  Duration latency{};

  // --- What went over it.
  Bytes recorded;  // all octets ever written
  std::uint64_t delivered = 0;
  bool fin_sent = false;

  struct Chunk {
    Bytes bytes;
    TimePoint ready;
    std::size_t taken = 0;
    bool fin = false;
  };
  std::deque<Chunk> in_flight;
  std::mt19937 random;
};

struct PairOptions {
  mpa::Policy initiator_policy{}, responder_policy{};
  stream::Options initiator{}, responder{};
  std::size_t scratch_bytes = 64 * 1024;
  std::uint16_t accept_ird = 32, accept_ord = 32;
  Bytes request_private_data, reply_private_data;
  std::size_t emss = 1448;
  std::size_t max_steps = 10'000;  // a run that takes more is a hang, and a failure
};

class Pair {
 public:
  explicit Pair(const PairOptions& options = {});

  Endpoint initiator, responder;
  Wire to_responder, to_initiator;
  TimePoint now{std::chrono::seconds(1000)};

  // Moves bytes until all have arrived and nothing moves any more; no deadline is waited for.
  void settle();
  // Moves bytes and jumps to the next deadline or arrival, until both ends are idle.
  void run();
  // settle(), and both ends must be established.
  void establish();
  [[nodiscard]] std::string log() const;

  // What became of the sockets.
  struct Link {
    bool fin_given = false, closed = false, reset = false;
  };
  Link initiator_link, responder_link;

 private:
  [[nodiscard]] bool step();
  [[nodiscard]] bool transmit(Endpoint& from, Link& link, Wire& out);
  [[nodiscard]] bool act_on_link(Endpoint& from, Link& link, Wire& out, Wire& in);
  [[nodiscard]] bool deliver(Wire& wire, Endpoint& to, Link& link);
  [[nodiscard]] std::size_t feed(Endpoint& to, Link& link, ConstBytes bytes);
  void reset_both();
  [[nodiscard]] std::optional<TimePoint> next_arrival() const;
  void step_until_stuck(std::size_t& steps);

  PairOptions options_;
  std::optional<mpa::Responder> deciding_;  // the responder before the application has accepted
};

}  // namespace iwarp::test
