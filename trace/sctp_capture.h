// The SCTP associations of a capture: packets in, records out. Follows those that carry DDP (RFC 5043) and leaves the
// others alone. A record of the association bears its number, one of a session "number/stream". Not thread-safe.
//
// Memory: at most kMaxAssociations, beyond that the one that was silent for longest is ended; of each kMaxStreams
// streams with sessions, and about kMaxBytes of what waits.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/sctp/session_control.h"
#include "iwarp/trace/decoder.h"
#include "iwarp/trace/packet.h"
#include "iwarp/trace/sctp_messages.h"
#include "iwarp/trace/sctp_order.h"

namespace iwarp::trace {

class SctpCapture {
 public:
  static constexpr std::size_t kMaxAssociations = 256;
  static constexpr std::size_t kMaxStreams = 1024;
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

  struct Options {
    std::optional<std::uint16_t> port;    // only associations with this port of SCTP, or of UDP around it
    std::optional<std::uint64_t> stream;  // only the association of this number
    bool verbose = false;                 // also a record for each DATA chunk and DDP segment
    std::uint32_t config_program = rpcrdma::kConfigProgram;  // number of the program CONFIG_RDMA
  };
  // `calls`: shared with the other connections of the capture.
  SctpCapture(const Options& options, std::shared_ptr<CallBook> calls) : options_(options), calls_(std::move(calls)) {}

  // The next SCTP packet, number `frame` of the capture. A new association takes `next_number`.
  void packet(const SctpPacket& packet, Duration at, std::uint64_t frame, std::uint64_t& next_number);
  // The end of the capture.
  void finish(Duration at);
  // The records made since the last call, in order.
  [[nodiscard]] std::vector<Record> take() { return std::exchange(records_, {}); }

  // Of the associations that are over.
  struct Counts {
    std::uint64_t associations = 0;  // with DDP
    Totals totals;                   // of their sessions, both directions
    std::uint64_t forgotten_rpcs = 0, given_up = 0;
  };
  // Since the last call.
  [[nodiscard]] Counts take_counts() { return std::exchange(counts_, {}); }

 private:
  // An end: two processes of a host may have one SCTP port, each with a port of UDP.
  using Ends = std::array<std::pair<Endpoint, std::uint16_t>, 2>;  // the client first

  struct Stream {
    explicit Stream(DecoderOptions options) : decoder(std::move(options)) {}
    Decoder decoder;
    std::array<SctpOrder, 2> orders;  // by Direction
  };
  struct Association {
    std::uint64_t number = 0;
    std::array<std::optional<SctpInit>, 2> inits;  // by Direction
    std::array<SctpMessages, 2> messages;
    std::map<std::uint16_t, std::unique_ptr<Stream>> streams;
    bool is_ddp = false;   // by its indication, or what it carries
    bool ignored = false;  // over, or not ours
    unsigned packets = 0;
    std::list<Ends>::iterator age;
  };
  using Associations = std::map<Ends, Association>;

  Association& add(const Ends& ends, Direction d, bool from_beginning);
  void on_init(Association& a, Direction d, const SctpInit& init);
  void on_data(const Ends& ends, Association& a, Direction d, const SctpData& data);
  void on_message(const Ends& ends, Association& a, Direction d, SctpMessage message);
  Stream* stream_of(const Ends& ends, Association& a, std::uint16_t id);
  void drain(Stream& s, Direction d);
  void on_item(Stream& s, Direction d, const SctpMessage& message);
  void on_control(Stream& s, Direction d, const SctpMessage& message);
  void settle(Stream& s);
  void not_ddp(Association& a, Direction d);
  void dropped(Association& a, Direction d);
  void abort(Association& a, Direction d);
  void close(Association& a);
  void relieve(Association& a);
  void record(const Association& a, Direction d, Pdu pdu, bool error = false);
  void collect(Stream& s);

  Options options_;
  std::shared_ptr<CallBook> calls_;
  Associations associations_;
  std::list<Ends> ages_;  // the one that was silent for longest first
  std::uint64_t* next_number_ = nullptr;
  Duration at_{};
  std::uint64_t frame_ = 0;
  std::vector<Record> records_;
  Counts counts_;
};

}  // namespace iwarp::trace
