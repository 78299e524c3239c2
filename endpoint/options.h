// Limits of an Endpoint.
#pragma once

#include <chrono>
#include <cstddef>

#include "iwarp/base/result.h"

namespace iwarp::endpoint {

inline constexpr std::size_t kDeepestQueue = std::size_t{1} << 24;  // of any queue of requests

// Of Options::receive_wait behind an orderly end of this side.
inline constexpr std::chrono::milliseconds kLastWait{100};

struct Options {
  // Requests that may be posted and not yet polled, per queue. Memory is taken for as many as there ever are at a time,
  // 1.75 KiB for eight, and kept until the end. Fewer makes post_*() say kQueueFull.
  std::size_t sq_depth = 64;
  std::size_t rq_depth = 64;  // receives, likewise
  // Longest SendWr::inline_data, octets: 0 (default, none) to 16 MiB. Memory is taken, this much for each, for as many
  // inline requests as there ever are at a time in the send queue, and kept until the end. Inline costs a copy.
  std::size_t max_inline = 0;
  // From the end of our sending (Terminate, or the orderly end) to the peer's end. 5 s. Then the connection is aborted;
  // one that was left is closed, and TCP still delivers what it has.
  std::chrono::milliseconds close_timeout{5000};
  // After disconnect(): how long the peer may take for what was posted before, however busily it does. 30 s. Lower cuts
  // slow peers off, higher lets a hostile one keep a closing connection for longer.
  std::chrono::milliseconds drain_timeout{30000};
  // How long a Send, or Immediate Data, may wait for a Receive to be posted when it has come and there is none. 0
  // (default): it ends the connection with a Terminate 1/2/2, as RFC 5041 s7.1 has it. Longer: nothing behind it is
  // received meanwhile, Writes and Reads of the peer neither, and at last TCP keeps the peer from sending; then the
  // same Terminate. For applications that were written for InfiniBand, whose transport tries such messages again. The
  // peer holds up to 320 KiB of memory here for that time. When its end has come behind the message, close_timeout is
  // the limit (but see outlive_peer); behind an orderly end of this side kLastWait is, and then what waits is dropped
  // without a Terminate.
  std::chrono::milliseconds receive_wait{0};
  // Immediate Data and Atomics (RFC 7306). Default off, since nothing in the startup tells whether a peer knows it:
  // none is sent, and what comes is refused as an unknown opcode. On: for peers of which the application knows. Others,
  // Linux siw and RNICs without it among them, answer the first message with a Terminate 0/2/6. A FetchAdd of 0 is a
  // harmless one.
  bool rfc7306 = false;
  // What a peer that ends the stream, is lost, or cannot be reached does to the queues. Default off: all that is posted
  // completes with kFlushed. On: the queue pair goes on as if nothing had happened, with all that is posted, until its
  // owner gives the peer up (QueuePair::give_up_peer()). Then the oldest request that is to be sent, if there is one,
  // else the next that is posted, completes with kConnectionLost, and only then all else with kFlushed. For
  // applications that were written for InfiniBand, where nobody hears of a peer that has gone before having sent to it
  // for a while. An end that this side asks for, and a Terminate, flush at once either way. A message that waits for a
  // Receive when the peer's end has come behind it waits for all of receive_wait, and is no violation then.
  bool outlive_peer = false;
  // With rfc7306: Sends with Immediate (SendOp::kSendImmediate), by opcodes of no RFC. Default off. On: both ends have
  // agreed on them.
  bool send_immediate = false;
  // Whether a segment that comes before others in front of it is placed at once, where the lower layer shows it (SCTP;
  // TCP does not): an RDMA Write, a Read Response, a Send that has its Receive (RFC 5041 s5.3). Delivery keeps its
  // order. Default on. Off: for applications that watch memory for what the peer writes, and take an octet of it for a
  // sign of others, which RFC 5040 s5.5 warns of; such segments are kept meanwhile.
  bool place_early = true;

  friend bool operator==(const Options&, const Options&) = default;
};

// kInvalidArgument, which names the option and its range: time-outs are not below zero (the greatest value means for
// ever), queue depths at most 2^24.
[[nodiscard]] Result<void> validate(const Options& options);

}  // namespace iwarp::endpoint
