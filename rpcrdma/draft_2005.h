// What one end of a connection uses of the draft of 2005 (draft-ietf-nfsv4-rpcrdma-01) beyond version 1: options of
// Requester and Responder. Off by default: peers of RFC 8166 know nothing of it. Values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/done_book.h"

namespace iwarp::rpcrdma {

struct Draft2005Options {
  // RDMA_MSGP and RDMA_DONE are understood, and Replies may have Read chunks. False: nothing below counts. For peers
  // that are known to understand them as well; of version 1 only.
  bool enabled = false;
  // Configure the connection before anything else (client), or answer those who do (server). A server without the
  // program costs a client one message.
  bool configure = true;
  std::uint32_t config_program = kConfigProgram;  // number of CONFIG_RDMA, the same at both ends
  // IRD of the connection: how many RDMA Reads of the peer this end takes at a time. 0: it offers no Read chunks.
  std::uint32_t incoming_reads = 1;
  // Server: where opaque data of Calls should begin (good_alignment()); 0: anywhere. A client learns it from the
  // server.
  std::uint32_t align = 0;
  // Server: where opaque data of Replies in line should begin (good_alignment()); 0: anywhere. CONFIG_RDMA does not ask
  // a client for it: iwarp's has Receives for any alignment, of others it has to be known that they take RDMA_MSGP.
  // Sent to clients that have configured the connection, where `configure` says that clients do.
  std::uint32_t reply_align = 0;
  // Data of so many octets are aligned, see plan_padding(), or in Replies are a Read chunk of their own. 1 KiB is the
  // example of the draft.
  std::uint32_t threshold = 1024;
  // Align data of the DeclaredBinding as well. For a peer that is known to have declared the same: others refuse such
  // messages. Without it those of NFS alone. What peers send is taken either way, by the own declaration.
  bool pad_declared = false;
  // Server: of a Reply that fits nowhere else its data are Read chunks, and the rest goes in line, where it fits there.
  // False: the whole Reply is one Read chunk, as where there are no such data.
  bool data_chunks = true;
  // Client: offer Write chunks and Reply chunks as in RFC 8166. False: leave it to the server to offer Read chunks,
  // which costs the client an RDMA Read and the RDMA_DONE (section 3.4 discourages it). req: D2005-3.4-5
  bool offer_reply_memory = true;
  // Server: how long, and how many, Replies with Read chunks wait for RDMA_DONE.
  DoneOptions done{};

  friend bool operator==(const Draft2005Options&, const Draft2005Options&) = default;
};

}  // namespace iwarp::rpcrdma
