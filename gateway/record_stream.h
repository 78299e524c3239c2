// The TCP half of one gateway connection: ONC RPC records in and out of registered buffers, without copies of bulk
// data. Drives itself on the event loop and tells its owner when there is something to do. One thread: that of the
// io_context.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "iwarp/gateway/record_reader.h"
#include "iwarp/gateway/record_writer.h"
#include "iwarp/gateway/stats.h"
#include "iwarp/rpcrdma/buffer_pool.h"

namespace iwarp::gateway {

class RecordStream : public std::enable_shared_from_this<RecordStream> {
 public:
  using tcp = boost::asio::ip::tcp;
  using Purpose = rpcrdma::BufferPool::Purpose;

  // `socket` is connected. Records read are put into buffers of `pool` charged to `purpose`. `pool` and `stats` must
  // outlive close().
  RecordStream(tcp::socket socket, const RecordOptions& options, rpcrdma::BufferPool& pool, Purpose purpose,
               Stats& stats);

  // `wake` is called on the event loop whenever read() or the send queue may have made progress, until close().
  void start(std::function<void()> wake) { wake_ = std::move(wake); }

  // From now on a reset by the other end is noticed also while nothing is read: broken() then holds, and what was not
  // read is lost.
  void watch_for_reset();

  // Begins a turn of the owner, in which read() and flush() move about so many octets each: bulk data of one connection
  // do not hold up the others.
  void start_turn(std::size_t octets) {
    may_read_ = may_write_ = octets;
    moved_ = 0;
  }
  // One of them has moved its share, and perhaps there is more: the owner has to come back by itself, for no wake will
  // tell.
  [[nodiscard]] bool turn_is_over() const { return may_read_ == 0 || may_write_ == 0; }
  // This turn has moved bulk data: who moves less comes before the owner's next one.
  [[nodiscard]] bool moved_much() const { return moved_ >= kMuch; }

  // The next record, or nothing: no complete record yet, no buffer to be had (call again when buffers came back), the
  // end of the turn, or the end of the stream: see ended().
  [[nodiscard]] std::optional<rpcrdma::Buffer> read();
  // Why reading is over: kPeerClosed between records, or an error. Records read before are still given out by read().
  [[nodiscard]] const std::optional<Error>& ended() const { return ended_; }
  // The connection is lost: what is queued will never leave, and no more will come.
  [[nodiscard]] bool broken() const { return broken_; }

  // A record has begun to come and has its buffer: the peer owes the rest. read_progress() rises with each record and
  // with each 64 KiB.
  [[nodiscard]] bool in_record() const { return static_cast<bool>(filling_); }
  [[nodiscard]] std::uint64_t read_progress() const { return records_read_ + (octets_read_ >> kProgressShift); }
  // Rises with each record sent and with each 64 KiB.
  [[nodiscard]] std::uint64_t sent_progress() const { return records_sent_ + (octets_sent_ >> kProgressShift); }

  // Queues a record; it leaves with flush(). False (message untouched) when too many are queued: try again after
  // flush() or the next wake.
  [[nodiscard]] bool send(rpcrdma::Buffer& message);
  [[nodiscard]] bool can_send() const { return sending_.size() < kMaxQueued; }
  // Sends what TCP takes of all that is queued, many records with one system call. Buffers come back to the pool.
  void flush();
  // Octets queued since the last flush(): enough of them are worth a system call.
  [[nodiscard]] bool worth_a_flush() const { return unflushed_ >= may_write_; }
  [[nodiscard]] bool all_sent() const { return sending_.empty(); }
  // All sent, and acknowledged by the other end's TCP: close() cannot take it away any more.
  [[nodiscard]] bool all_taken();
  // After all_sent(): sends FIN. Reading goes on.
  void end_sending();

  // Gives the system what an idle connection does not need, until more is received.
  void rest() { reader_.rest(); }

  // Releases the socket and all buffers. `reset`: with RST, so that the local port is free at once.
  void close(bool reset);
  [[nodiscard]] bool closed() const { return closed_; }
  // Made so far, those in vain included: what many small records cost.
  struct SystemCalls {
    std::uint64_t receives = 0, sends = 0;
  };
  [[nodiscard]] const SystemCalls& system_calls() const { return system_calls_; }

  static constexpr std::size_t kMuch = std::size_t{16} << 10;

  [[nodiscard]] tcp::endpoint local() const { return local_; }
  [[nodiscard]] tcp::endpoint remote() const { return remote_; }

 private:
  static constexpr std::size_t kMaxQueued = 128;
  static constexpr unsigned kProgressShift = 16;

  [[nodiscard]] bool receive_some();
  void wait_readable();
  void wait_writable();
  void end(const Error& why);

  tcp::socket socket_;
  tcp::endpoint local_, remote_;
  RecordReader reader_;
  RecordWriter writer_;
  rpcrdma::BufferPool& pool_;
  Purpose purpose_;
  Stats& stats_;
  std::function<void()> wake_;
  rpcrdma::Buffer filling_;              // lent to the reader
  std::deque<rpcrdma::Buffer> sending_;  // lent to the writer, in order
  std::uint64_t next_id_ = 0;
  std::size_t may_read_ = 0, may_write_ = 0;  // in this turn
  std::size_t moved_ = 0;                     // in this turn
  std::size_t unflushed_ = 0;
  SystemCalls system_calls_{};
  bool drained_ = false;  // the last receive left nothing behind
  std::uint64_t records_read_ = 0, octets_read_ = 0, records_sent_ = 0, octets_sent_ = 0;
  bool read_armed_ = false, write_armed_ = false;
  bool broken_ = false;
  bool closed_ = false;
  std::optional<Error> ended_;
};

}  // namespace iwarp::gateway
