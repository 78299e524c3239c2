// What a trace amounts to: a row for each RPC procedure and one for each connection. Pure, not thread-safe.
//
// Memory: kMaxLatencies numbers for each procedure, a row for each connection.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "iwarp/trace/record.h"

namespace iwarp::trace {

class Summary {
 public:
  // Latencies that a row keeps; median and percentiles are of the first so many.
  static constexpr std::size_t kMaxLatencies = std::size_t{1} << 20;

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
  };

  // The record that opens a connection: who its ends are.
  void open(const Record& record);
  // Counts a record; records come in the order of the trace.
  void add(const Record& record);
  // By name, "NFS 4.1 READ".
  [[nodiscard]] const std::map<std::string, Procedure>& procedures() const { return procedures_; }
  // By name, in the order of their first record.
  [[nodiscard]] const std::vector<std::pair<std::string, Connection>>& connections() const { return connections_; }

 private:
  Connection& connection(const std::string& name);
  void add_tcp(const Record& record, Connection& c);
  void add_rpc(const Record& record);

  std::map<std::string, Procedure> procedures_;
  std::vector<std::pair<std::string, Connection>> connections_;
  std::map<std::string, std::size_t> index_;
};

// As tables of at most 120 columns, with a newline behind each line.
[[nodiscard]] std::string to_text(const Summary& summary);

}  // namespace iwarp::trace
