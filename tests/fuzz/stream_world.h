// A stream::Connection in a starting state that real traffic leads to, and the operations of a script on it: PDUs with
// fuzzed fields, raw octets, work requests, time, ends. Keeps account of what may and must come of them.
#pragma once

#include <deque>

#include "iwarp/rdmap/shared_receives.h"
#include "tests/fuzz/check.h"
#include "tests/support/raw_peer.h"

namespace iwarp::fuzz {

using test::Bytes;

// n octets of a pattern, from its first-th on; n <= kMostContent, first < 256. Made once: a sanitized loop takes its
// time.
inline constexpr std::size_t kMostContent = 65536;
[[nodiscard]] Bytes content(std::size_t n, std::size_t first);

// Where a script begins. The names are those of the seeds in corpus/stream/.
enum class Start : std::uint8_t {
  kReplyUnsent,       // Responder, accepted, its Reply still to be sent
  kAwaitingReply,     // Initiator
  kResponder,         // established by the peer's first FPDU, Receives posted
  kInitiator,         // established, Receives posted
  kReadsOutstanding,  // established, three Reads sent and not answered
  kReadsInbound,      // established, the peer's Read Requests not answered yet
  kMidMessage,        // established, inside a Send and inside a large FPDU
  kDraining,          // disconnect() with requests unsent
  kFinWait,           // our FIN is out, the peer may go on
  kTerminating,       // a violation, our Terminate not sent yet
};
inline constexpr std::size_t kStarts = 10;

struct Setup {
  Start start;
  bool crc, peer_to_peer;
  bool shares;   // its Receives are those of a shared receive queue
  bool rfc7306;  // it knows Immediate Data and Atomics
  bool markers;  // in both directions
  std::size_t scratch_bytes;

  explicit Setup(Script& in);
};

class World {
 public:
  World(const Setup& setup, Chunking chunking);

  // Executes all operations, then ends the connection and checks what must hold of every one.
  void run(Script script);

  // What must not depend on how TCP cut the stream.
  [[nodiscard]] std::string log() const { return peer_.end.log(); }
  [[nodiscard]] const Bytes& sent() const { return sent_; }
  [[nodiscard]] bool same_memory(const World& other) const;
  // Whether the script left an FPDU incomplete while something else happened, with CRC off. Then octets may have been
  // placed early, and an error seen early, or not.
  [[nodiscard]] bool torn() const { return torn_; }

 private:
  struct Memory {
    test::Region* region;
    bool revoked = false;
    bool constant = false;  // nobody may write there
    Bytes before{};         // what it held when that became true
  };
  struct PeerRead {
    Stag sink{};
    std::uint64_t to = 0;
    std::uint32_t left = 0;
    std::optional<std::uint32_t> atomic{};  // it is an Atomic Request, with this identifier
  };

  void add_memory(std::size_t bytes, ddp::Access access, std::uint64_t base_to, bool constant,
                  std::optional<ddp::StreamKey> owner = std::nullopt);
  void reach(Start start);
  void operation(Script& in);
  void feed_pdu(Script& in);
  void answer_read(Script& in);
  void post(Script& in);
  void vary(Script& in, rdmap::SendWr& wr);
  void revoke(Script& in);
  void end_tcp(stream::TcpEnd how);
  void finish();

  [[nodiscard]] Bytes made_ulpdu(Script& in);
  [[nodiscard]] Bytes made_rfc7306(Script& in, std::uint8_t kind);
  [[nodiscard]] Bytes atomic_response(std::uint32_t id);
  void become_rfc7306(Script& in, rdmap::SendWr& wr);
  void note_request(ConstBytes ulpdu);
  [[nodiscard]] std::pair<Stag, std::uint64_t> target(Script& in);
  [[nodiscard]] rdmap::SgeList pieces(Script& in, std::size_t most);
  void post(const rdmap::SendWr& wr);
  void post(const rdmap::RecvWr& wr);
  void lose_receive();

  // The FPDU that begins where the one before it ends, whether that has arrived or is held. `damage` other than 0: of
  // its first Marker, if it has one, which its CRC covers.
  [[nodiscard]] Bytes framed(const Bytes& ulpdu, std::uint8_t damage = 0) const;
  // Octets arrive behind those that were not read yet.
  void arrive(ConstBytes bytes, bool whole_fpdus);
  void pump();
  void transmit(std::size_t limit);
  void note_requests();

  bool shares_, rfc7306_, markers_;
  rdmap::SharedReceives shared_{8};
  test::RawPeer peer_;
  Chunking chunking_;
  bool crc_;
  bool ended_ = false;  // FIN or RST has come
  bool torn_ = false;
  bool partial_ = false;
  bool unsteady_ = false;  // something was sent from memory that may change meanwhile: its CRC may be wrong then
  std::vector<Memory> memory_;
  Bytes unread_;
  Bytes held_;                 // the rest of an FPDU of which only the beginning has arrived
  std::uint64_t arrived_ = 0;  // octets that were to arrive in Full Operation
  bool awaits_reply_;          // the next Reply is no part of it
  Bytes sent_;
  std::size_t parsed_ = 0;   // octets of sent_ that were looked at, or are our Reply
  mpa::FpduDecoder opener_;  // of what is sent; the CRC is looked at besides
  std::deque<PeerRead> reads_;
  std::uint32_t send_msn_ = 1, send_mo_ = 0, read_msn_ = 1, atomic_msn_ = 1;
  std::uint64_t next_id_ = 1;
  std::vector<std::uint64_t> posted_sends_, posted_recvs_;
};

}  // namespace iwarp::fuzz
