// What a trace amounts to: a row for each RPC procedure and one for each connection. Pure, not thread-safe.
//
// Memory: kMaxLatencies numbers, kMaxProcedures and kMaxConnections rows; rows of connections that are still open come
// on top. What finds no room is counted together with others, and forgotten() tells.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/trace/record.h"

namespace iwarp::trace {

class Summary {
 public:
  // Latencies that a row keeps; median and percentiles are of the first so many. And that all rows keep.
  static constexpr std::size_t kMaxLatencies = std::size_t{1} << 20;
  static constexpr std::size_t kMaxAllLatencies = std::size_t{1} << 23;  // of all rows together
  static constexpr std::size_t kMaxProcedures = 1024;                    // NFS has some 200, of all versions
  static constexpr std::size_t kMaxConnections = 16384;                  // rows of connections
  static constexpr const char* kOtherProcedures = "others";              // the row of all beyond kMaxProcedures

  // A row for each RPC procedure.
  struct Procedure {
    std::uint64_t calls = 0;            // retransmissions included, answered or not
    std::uint64_t replies = 0;          // and RDMA_ERRORs
    std::uint64_t errors = 0;           // of them, those that say that something went wrong
    std::uint64_t retransmissions = 0;  // of the Calls, those that repeat an earlier one
    // Octets of answered RPCs: of Sends with their headers, of RDMA Writes, of Read Responses.
    std::uint64_t send_bytes = 0, write_bytes = 0, read_bytes = 0;
    std::vector<Duration> latencies{};  // from Call to Reply, in the order of the Replies

    // The one that `part` of them are not above, from 0 to 1. Precondition: there are some.
    [[nodiscard]] Duration latency(double part) const;
  };
  // A row for each connection.
  struct Connection {
    std::string client, server;                        // addresses with ports
    bool is_iwarp = true;                              // false: it began with something else
    std::array<std::uint64_t, 2> bytes{}, messages{};  // octets of the TCP stream, RDMAP messages; by Direction
    std::uint64_t sends = 0, writes = 0, reads = 0;    // of both directions; reads: Read Requests
    std::uint64_t calls = 0;                           // RPC Calls of both directions
    std::uint64_t errors = 0;                          // records of something that went wrong
    std::string end = "still open";                    // how it ended
    bool over = false;                                 // no more of it comes
  };
  // What the summary lacks, for want of memory.
  struct Forgotten {
    std::uint64_t rpcs = 0;         // under way: their Replies are told as those of unknown Calls
    std::uint64_t connections = 0;  // not followed to their end
    std::uint64_t latencies = 0;    // of answered RPCs
    friend bool operator==(const Forgotten&, const Forgotten&) = default;
  };

  // Any record, before it is added if it is: who the ends of its connection are and how that ends, and its octets.
  void see(const Record& record);
  // A record that counts as a message, an RPC or an error.
  void add(const Record& record);
  // What the capture forgot before it made records.
  void forgot(std::uint64_t rpcs, std::uint64_t connections);
  // By name, "NFS 4.1 READ".
  [[nodiscard]] const std::map<std::string, Procedure>& procedures() const { return procedures_; }
  // By name.
  using Connections = std::list<std::pair<std::string, Connection>>;
  // In the order of their first record.
  [[nodiscard]] const Connections& connections() const { return connections_; }
  // Those that were over when others needed their rows: how many.
  [[nodiscard]] std::uint64_t other_connections() const { return other_connections_; }
  // What they amount to.
  [[nodiscard]] const Connection& others() const { return others_; }
  // So far; complete after forgot().
  [[nodiscard]] const Forgotten& forgotten() const { return forgotten_; }

 private:
  using Place = Connections::iterator;
  Place place_of(const std::string& name);
  void make_room();
  void see_tcp(const Record& record, Connection& c);
  void end(Place place);
  Procedure& procedure(const std::string& name);
  void add_rpc(const Record& record);

  std::map<std::string, Procedure> procedures_;
  std::size_t latencies_ = 0;  // of all of them
  Connections connections_;
  std::map<std::string, Place> index_;
  std::deque<Place> over_;  // those that ended first come first
  std::uint64_t other_connections_ = 0;
  Connection others_;
  Forgotten forgotten_;
};

// As tables of at most 120 columns, with a newline behind each line.
[[nodiscard]] std::string to_text(const Summary& summary);

}  // namespace iwarp::trace
