// Trace of one iWARP connection: both directions of its TCP byte stream in, or the DDP segments of a session over SCTP,
// a record for each protocol message out
// (what they hold: docs/TRACE.md). A passive observer: it takes whatever comes, goes on behind errors and says what it
// could not read. Pure, not thread-safe.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/trace/half_stream.h"
#include "iwarp/trace/message_assembler.h"
#include "iwarp/trace/record.h"
#include "iwarp/trace/rpc_view.h"

namespace iwarp::trace {

// How one connection is read.
struct DecoderOptions {
  std::string connection = "1";  // the name in the records; no blanks
  // What carries it, static text: "mpa" for a TCP byte stream, "sctp" for DDP segments.
  std::string_view carrier = "mpa";
  // Also a record for each FPDU and DDP segment.
  bool verbose = false;
  // Whether Sends carry RPC-over-RDMA. kUnknown: find out.
  RpcGuess rpcrdma = RpcGuess::kUnknown;
  // Number of the program CONFIG_RDMA of the draft of 2005; the draft leaves it open.
  std::uint32_t config_program = rpcrdma::kConfigProgram;
  // What was called on other connections, and the ends of this one: to tell retransmissions. Empty: of this one only.
  std::shared_ptr<CallBook> calls{};
  CallBook::Pair ends{};  // the client's address and the server, for `calls`
};

// What was seen of one direction.
struct Totals {
  std::uint64_t bytes = 0;      // of the TCP stream, as captured
  std::uint64_t fpdus = 0;      // those found
  std::uint64_t messages = 0;   // RDMAP messages, incomplete ones included
  std::uint64_t undecoded = 0;  // octets without sense, those of FPDUs with a wrong CRC included
  std::uint64_t lost = 0;       // octets that the capture lacks
  std::uint64_t bad_crc = 0;    // FPDUs
  std::uint64_t malformed = 0;  // messages whose content contradicts the protocol above RDMAP

  // Whether everything was captured and makes sense.
  [[nodiscard]] bool all_decoded() const { return undecoded == 0 && malformed == 0 && lost == 0; }
  // Adds those of another direction.
  Totals& operator+=(const Totals& other);
};

class Decoder {
 public:
  // For the connection that the options name.
  explicit Decoder(DecoderOptions options);

  // Before the first octet of a direction: whether the stream was captured from its beginning. Default yes.
  void start(Direction direction, bool from_beginning);
  // Number of the packet that the following calls are about; 0: there are none.
  void set_frame(std::uint64_t frame) { frame_ = frame; }
  // The next octets of a direction. Times never go backwards.
  void receive(Direction direction, ConstBytes bytes, Duration at);
  // A DDP segment of `bytes` octets, of which `seen` was captured, in order; where nothing but segments carries them.
  void segment(Direction direction, ConstBytes seen, std::size_t bytes, Duration at);
  // The capture lacks segments of a direction here, or what was taken for one makes no sense.
  void gap(Direction direction, Duration at) { interrupt(direction, at); }
  // Octets that make no sense; `why` is static text.
  void undecoded(Direction direction, std::uint64_t bytes, const char* why);
  // Private data of a message that opens a session.
  void private_data(Direction direction, ConstBytes octets, Duration at);
  // The capture lacks the next `bytes` octets.
  void lose(Direction direction, std::uint64_t bytes, Duration at);
  // How TCP ended.
  enum class End : std::uint8_t { kFin, kReset, kSilence };  // kSilence: TCP gave up on the peer
  // A direction has ended.
  void end(Direction direction, End how, Duration at);
  // Nothing more comes: what is left over is undecoded, and the totals are given.
  void finish(Duration at);

  // A record of the driver's own findings. `layer` is static text.
  void add(Duration at, Direction direction, std::string_view layer, Pdu pdu, bool error = false);
  // The records made since the last call, in order.
  [[nodiscard]] std::vector<Record> take() { return std::exchange(records_, {}); }
  // What was seen of a direction so far.
  [[nodiscard]] const Totals& totals(Direction d) const { return half(d).totals; }
  // Octets of memory, about.
  [[nodiscard]] std::size_t memory() const;
  // Gives back what it can: RPCs under way are forgotten.
  void forget();
  // RPCs that were forgotten so far, here or because there were too many.
  [[nodiscard]] std::uint64_t forgotten_rpcs() const { return rpc_.forgotten(); }
  // The stream begins with something else than an MPA startup frame: give it up.
  [[nodiscard]] bool is_not_mpa() const { return half(Direction::kTx).not_mpa || half(Direction::kRx).not_mpa; }

 private:
  struct Half {
    HalfStream stream{true};
    MessageAssembler messages;
    Totals totals;
    std::uint64_t undecoded_run = 0;  // octets whose record is still to be made
    const char* why_undecoded = "";
    bool not_mpa = false;
    std::optional<mpa::StartupFrame> startup;  // without private data
  };

  [[nodiscard]] Half& half(Direction d) { return halves_[index(d)]; }
  [[nodiscard]] const Half& half(Direction d) const { return halves_[index(d)]; }
  void drain(Direction d, Duration at);
  void on(Direction d, Duration at, const HalfStream::Startup& item);
  void on(Direction d, Duration at, const HalfStream::Fpdu& item);
  void on(Direction d, Duration at, const HalfStream::Undecoded& item);
  void on(Direction d, Duration at, const HalfStream::Aligned& item);
  void on(Direction d, Duration at, const HalfStream::NotMpa& item);
  void negotiated();
  void on_ulpdu(Direction d, Duration at, ConstBytes seen, std::size_t ulpdu_bytes, std::size_t carried_bytes);
  void flush_undecoded(Direction d, Duration at);
  void interrupt(Direction d, Duration at);
  Record& push(Direction d, Duration at, Record record);
  Record& push(Direction d, Duration at, std::string_view layer, Pdu pdu, bool error = false);
  void push(Direction d, Duration at, RpcView::Events events);
  void write(Direction d, Duration at, const Message& message);
  void write_send(Direction d, Duration at, const Message& message);
  void write_segment(Direction d, Duration at, const ddp::SegmentHeader& header, std::size_t payload_bytes);

  DecoderOptions options_;
  std::vector<Record> records_;
  std::uint64_t frame_ = 0;
  std::array<Half, 2> halves_;
  RpcView rpc_;
};

}  // namespace iwarp::trace
