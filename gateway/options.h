// What the operator of a gateway decides.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "iwarp/gateway/access.h"
#include "iwarp/gateway/source_ports.h"
#include "iwarp/mpa/policy.h"
#include "iwarp/rpcrdma/draft_2005.h"
#include "iwarp/rpcrdma/version_negotiation.h"
#include "iwarp/stream/connection.h"

namespace iwarp::gateway {

struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  // "host:port", "10.0.0.1:2049" or "[::1]:2049". The error says what is wrong and what would be right.
  [[nodiscard]] static Parsed<HostPort> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct Options {
  // The RDMA device of rdma-core, e.g. siw0 or mlx5_0, in place of our own stack. Empty (default): our own. Of `policy`
  // only IRD and ORD count with a device, and `stream` does not: MPA, if there is any, is the device's.
  std::string device{};
  // RDMA over SCTP (docs/SCTP.md) with our own stack, in place of MPA over TCP. Default no. Of `policy` IRD, ORD, the
  // RTR and the connection model count then. One thread serves all such connections.
  bool sctp = false;
  // With it: octets of an SCTP packet that is sent, at most, 576 to 65507. Default 1452, as TransportOptions has it.
  std::uint16_t sctp_packet_bytes = 1452;
  // As a requester of RPC-over-RDMA the gateway speaks first: A=0 comes first.
  mpa::Policy policy{.peer_to_peer = false};
  stream::Options stream{};
  // Whom to serve; default loopback only, because behind a gateway the server's own export rules see only the gateway.
  AccessList allow{};
  // Local address of the backend connection by client.
  SourceMap source_map{};
  // Which port the connection to a TCP server has. kOff by default, since kPrefer needs a privilege to be of use; the
  // command prefers where it may.
  ReservedPort reserved_port = ReservedPort::kOff;
  // Serve TCP clients whose port is above 1023. Only the superuser of a client's host may use lower ones, so that with
  // them AUTH_SYS is as good as that host; with others any user of it may claim to be any user.
  bool insecure_ports = false;
  // Let servers offer layouts (pNFS). Default no: clients with layouts go to the data servers themselves, past the
  // gateway, and those are told apart by addresses of the server's network. Messages under RPCSEC_GSS integrity or
  // privacy pass unchanged either way.
  bool pnfs = false;
  // Longest RPC message either way, octets: a READ or WRITE of the server's largest size and its headers. Default 1 MiB
  // and 64 KiB, as Linux servers need. Less refuses what they offer, more lets one message hold more memory: it and
  // kMessageRoom must fit into memory_bytes, and into an eighth of process_memory_bytes, or it waits for ever.
  std::size_t max_record_bytes = (std::size_t{1} << 20) + (std::size_t{64} << 10);
  // RPCs that a client may have outstanding, 1..96. Default 64, as Linux grants.
  std::uint32_t credits = 64;
  // Inline threshold, octets, 1024..65536 in steps of 1024. Default 4096, as Linux uses.
  std::uint32_t inline_bytes = 4096;
  // Highest version of RPC-over-RDMA, 1 or 2. Default 1: no server or client but iwarp has version 2. With 2 RDMA
  // clients may use either, and RDMA servers are asked for version 2 first.
  std::uint32_t rpcrdma_version = 1;
  // How long a server may leave the question for version 2, which is the first Call of a connection, unanswered. Then,
  // and if two connections on end are lost meanwhile, it is taken for one of version 1 for ten minutes. Default 10 s.
  // Lower makes that of slow servers, higher keeps the clients of servers waiting that drop the question.
  std::chrono::milliseconds version_timeout = rpcrdma::kVersionAnswerTime;
  // RDMA_MSGP, RDMA_DONE, Replies by Read chunk and CONFIG_RDMA, of the draft of 2005. Off by default: of use between
  // two gateways. Of version 1 only. What the IRD of `policy` says counts as its `incoming_reads`, and a connection
  // keeps at most half of memory_bytes for clients that have not said RDMA_DONE.
  rpcrdma::Draft2005Options draft_2005{};
  // Registered memory for Calls and for Replies of one connection, octets each. Default 16 MiB: 15 transfers of 1 MiB
  // at a time. Work beyond it waits. Must hold one Call or Reply of 1 MiB and its headers.
  std::size_t memory_bytes = std::size_t{16} << 20;
  // The same of all connections together, octets, unused memory and posted Receives included: messages wait for it, and
  // new connections are refused when half of it is taken (memory_budget.h). No bound by default; the command takes a
  // quarter of what the process may use. Sockets and the connections' own state, some 60 KiB each, come on top. This
  // and drain_timeout are for a front alone in its process: several have ProcessOptions.
  std::size_t process_memory_bytes = SIZE_MAX;
  // A connection of which no buffer has come back for so long gives the memory of past bursts back, and one in use what
  // it has not needed for about that long. Default 10 s. Lower registers anew for every burst, higher keeps up to twice
  // `memory_bytes` of an idle connection for longer.
  std::chrono::milliseconds keep_idle_memory{10000};
  // Connections served at a time.
  std::size_t max_connections = 1024;
  // Of these, for one client: an IPv4 address, or an IPv6 network of 64 bits. Default 256: mounts make 16 at most.
  // Lower refuses clients that share an address; above max_connections one client may take the places of all.
  std::size_t max_connections_per_client = 256;
  // From a client's arrival to a connected backend. Default 5 s: siw gives up after 10.
  std::chrono::milliseconds backend_timeout{5000};
  // How long an RPC of the back channel may go unanswered, before its caller gets an RPC error. Default 60 s, as the
  // Linux server.
  std::chrono::milliseconds backward_timeout{60000};
  // After one side has closed: how long the other may take to receive what is complete; and after a TCP client has
  // ended its sending, how long its last Replies may take to come. Default 5 s: reconnecting clients must not wait for
  // much longer.
  std::chrono::milliseconds delivery_timeout{5000};
  // A Call that the client repeats on the same connection when it has been out for so long counts as lost: the
  // connection to the server ends, so that the client reconnects and replays. Default 30 s; clients of NFSv3 repeat
  // after
  // 60. Lower ends the connections of slow servers. What is slow and not repeated is waited for.
  std::chrono::milliseconds lost_call_limit{30000};
  // How long a record may stand still that has begun to come: for as long as that, 64 KiB of it, or its rest, may take.
  // Default 60 s. Lower ends connections on slow lines, higher lets peers hold memory for longer; so for the next two.
  std::chrono::milliseconds record_deadline{60000};
  // How long all RDMA Reads that a client owes answers for may go unanswered: in that time one is, or 64 KiB come.
  std::chrono::milliseconds read_deadline{60000};
  // How long a client may take nothing of the Replies that wait for it: in that time it takes one, or 64 KiB, or
  // answers Reads that were posted before them.
  std::chrono::milliseconds reply_deadline{60000};
  // After SIGTERM: how long outstanding RPCs may take to finish.
  std::chrono::milliseconds drain_timeout{10000};

  friend bool operator==(const Options&, const Options&) = default;

  // What a buffer takes beyond its message, at most.
  static constexpr std::size_t kMessageRoom = std::size_t{64} << 10;
  // What a connection gets however short memory is: its Receives, the longest Call and the longest Reply.
  [[nodiscard]] std::size_t least_part() const;
  // draft_2005 of a connection.
  [[nodiscard]] rpcrdma::Draft2005Options draft_of_connection() const;
};

}  // namespace iwarp::gateway
