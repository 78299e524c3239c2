// SCTP over UDP by hand (RFC 9260, RFC 6951), as much of it as a hostile peer needs: an association, set up by either
// end, and its messages as they are, whatever is wrong with them. Acknowledges what comes, in order of the TSN; sends
// nothing twice but an INIT, for on loopback nothing is lost. Blocking, with a limit on every wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "tests/support/hex.h"

namespace iwarp::hostile {

using test::Bytes;

class SctpPeer {
 public:
  // What its INIT or INIT ACK says.
  struct Setup {
    std::optional<std::uint32_t> indication = 1;  // 1: DDP
    std::uint16_t outbound = 64, inbound = 64;    // streams
  };
  struct Message {
    std::uint16_t stream = 0;
    std::uint32_t ppid = 0;
    bool ordered = false;
    Bytes octets;
  };
  // Of the association.
  enum class End : std::uint8_t { kNone, kAborted, kShutDown };
  // A DATA chunk, as a sender may write it.
  struct Chunk {
    bool ordered = false, begins = true, ends = true;
  };

  // A UDP socket of 127.0.0.1 that no other has had. `meanwhile` is called when it is up, and in waits; may be empty.
  explicit SctpPeer(std::function<void()> meanwhile);
  // Aborts the association, if there is one.
  ~SctpPeer();
  SctpPeer(const SctpPeer&) = delete;
  SctpPeer& operator=(const SctpPeer&) = delete;

  // UDP port of this end.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Sets up an association with who listens at that UDP port of 127.0.0.1, which is the SCTP port as well. Throws when
  // there is none in time.
  void connect(std::uint16_t to, const Setup& setup);
  // Takes the association that another end begins. Throws when nobody comes.
  void accept(const Setup& setup);

  void send(std::uint16_t stream, std::uint32_t ppid, const Bytes& octets, Chunk how);
  void send(std::uint16_t stream, std::uint32_t ppid, const Bytes& octets) { send(stream, ppid, octets, Chunk{}); }
  // Begins the shutdown of the association.
  void shut_down();

  // The first message of a stream that has come and that suits; waits for one until the limit, or the end.
  [[nodiscard]] std::optional<Message> take(const std::function<bool(const Message&)>& suits,
                                            std::chrono::milliseconds limit);
  // Waits for the end of the association; kNone: it goes on.
  [[nodiscard]] End end(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  bool wait(const std::function<bool()>& done, std::chrono::milliseconds limit);
  void receive();
  void take_packet(const Bytes& packet);
  void take_chunk(unsigned type, unsigned flags, const Bytes& value);
  void take_data(unsigned flags, const Bytes& value);
  void put(std::uint32_t tag, const Bytes& chunks);
  [[nodiscard]] Bytes init(unsigned type, const Bytes& parameters) const;

  std::function<void()> meanwhile_;
  Setup setup_;
  int fd_;
  std::uint16_t port_ = 0;
  std::uint16_t to_ = 0;                             // UDP port of the other end; 0: nobody yet
  std::uint16_t own_sctp_port_ = 0, sctp_port_ = 0;  // of this end, of the other
  std::uint32_t tag_ = 0;                            // of the other end
  std::uint32_t next_tsn_ = 1, cumulative_ = 0;      // of this end, of the other
  bool up_ = false, owes_sack_ = false;
  End end_ = End::kNone;
  std::deque<Message> inbox_;
};

}  // namespace iwarp::hostile
