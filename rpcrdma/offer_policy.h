// Which chunks a Requester uses where RFC 8166 leaves a choice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iwarp::rpcrdma {

// The defaults are what Linux 6.1 servers survive; docs/INTEROP.md says what happens with others.
struct OfferPolicy {
  // Read chunks of a Call for the data of WRITE and the path of SYMLINK, at most; 0: none. With two or more Linux
  // 6.1 puts what is in line beside them into the wrong place of the Call, without a word, or refuses the Call.
  std::size_t read_chunks = 1;
  // Read chunks beside one of Position Zero. Never towards Linux: its server may read outside of its page list then.
  bool with_position_zero = false;
  // Write chunks of a Call, at most; 0: none. A COMPOUND with more READs gets a Reply chunk instead.
  std::size_t write_chunks = 1;
  // Write chunks and a Reply chunk in one Call. Linux 6.1 counts the Reply chunk wrongly then.
  bool with_reply_chunk = false;
  // An empty Write chunk for a READ of fewer than least_bytes among others, whose data then come in line. Linux 6.1
  // takes none: every READ gets its chunk.
  bool empty_write_chunks = false;
  // Data of fewer octets are not worth a chunk of their own.
  std::size_t least_bytes = 512;
  // The few Calls whose Reply has no bound and that may be sent again get a Reply chunk of a likely size first (RFC
  // 8267 s3.1). false: the largest there is, at once.
  bool guess_replies = true;
  // The path of READLINK gets a Write chunk of so many octets, where the Reply may be too long with it; 0: a Reply
  // chunk. A longer path ends its RPC with an error: 4096 holds every path of Linux. Servers of Linux 6.1 put the
  // length word of an NFSv4 READLINK into its chunk.
  std::uint32_t readlink_bytes = 0;
};

}  // namespace iwarp::rpcrdma
