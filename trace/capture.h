// Trace of a capture file: packets in, records out. Follows every TCP connection and SCTP association that may be iWARP
// and leaves the others alone. Pure: reading the file is the caller's business.
//
// Memory: at most kMaxConnections are followed at a time, beyond that the one that was silent for longest is ended. All
// of them together keep CaptureOptions::max_bytes, and CallBook::kMaxCalls Calls. Beyond that connections forget what
// is under way, those that were silent for longest first; what that does not help, ends them.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/trace/decoder.h"
#include "iwarp/trace/packet.h"
#include "iwarp/trace/sctp_capture.h"
#include "iwarp/trace/tcp_reassembly.h"

namespace iwarp::trace {

// What of a capture is wanted.
struct CaptureOptions {
  std::optional<std::uint16_t> port;    // only connections with this port at either end: of TCP, SCTP, or UDP around it
  std::optional<std::uint64_t> stream;  // only the connection of this number
  bool verbose = false;                 // also a record for each FPDU and DDP segment
  std::uint32_t config_program = rpcrdma::kConfigProgram;  // number of the program CONFIG_RDMA
  // Of data and RPCs that are under way on all connections. Default 256 MiB: 128 RPCs with chunks on each of 200
  // connections. Less than the 1 MiB that one connection may need costs RPCs and octets that come out of order.
  std::size_t max_bytes = std::size_t{256} << 20;
};

class Capture {
 public:
  static constexpr std::size_t kMaxConnections = 4096;  // followed at a time
  // NFS/RDMA (RFC 8267): Sends are taken for RPC-over-RDMA without looking.
  static constexpr std::uint16_t kNfsRdmaPort = 20049;

  // A capture of no packets yet.
  explicit Capture(const CaptureOptions& options)
      : options_(options), sctp_({options.port, options.stream, options.verbose, options.config_program}, calls_) {}

  // The next packet of the file, `at` since the first one. Packets are numbered as they come, from 1.
  void packet(Duration at, LinkType link, ConstBytes captured, std::size_t wire_bytes);
  // The end of the file: the totals of all connections.
  void finish(Duration at);
  // The records made since the last call, in order.
  [[nodiscard]] std::vector<Record> take() { return std::exchange(records_, {}); }

  // What a capture amounts to.
  struct Counts {
    std::uint64_t packets = 0;      // of any kind
    std::uint64_t fragments = 0;    // of IP datagrams, not put together
    std::uint64_t cut = 0;          // packets without whole headers
    std::uint64_t connections = 0;  // iWARP connections, and SCTP associations with DDP
    Totals totals;                  // of those, both directions
    // For want of memory: RPCs of which less is known than was captured, connections that were no longer followed.
    std::uint64_t forgotten_rpcs = 0;
    std::uint64_t given_up = 0;  // connections
  };
  // Of the connections that are over; complete after finish().
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  using Key = std::pair<Endpoint, Endpoint>;  // the client first
  struct Connection {
    explicit Connection(DecoderOptions options) : decoder(std::move(options)) {}
    Decoder decoder;
    std::array<TcpReassembly, 2> halves;  // by Direction
    std::array<bool, 2> begun{};
    std::array<bool, 2> ended{};
    bool ignored = false;   // over, or not ours: kept so that late packets do not make a new one
    std::size_t bytes = 0;  // its part of held_bytes_
    std::list<Key>::iterator age;
  };
  using Connections = std::map<Key, Connection>;

  Connections::iterator find(const TcpSegment& segment, Direction& direction);
  Connections::iterator add(const Key& key, Duration at, bool syn);
  void feed(Connection& c, Direction d, const TcpSegment& segment, Duration at);
  void drain(Connection& c, Direction d, Duration at);
  void close(Connection& c, Duration at);
  void give_up(Connection& c, Duration at);
  void collect(Connection& c);
  void take_from(Connection& c);
  void take_from_sctp();
  void count_memory(Connection& c);
  void make_room(Duration at);

  CaptureOptions options_;
  std::shared_ptr<CallBook> calls_ = std::make_shared<CallBook>();
  SctpCapture sctp_;
  Connections connections_;
  std::list<Key> ages_;  // the one that was silent for longest first
  std::size_t held_bytes_ = 0;
  std::uint64_t next_number_ = 1;
  std::vector<Record> records_;
  Counts counts_;
};

}  // namespace iwarp::trace
