// bench_rpc_load serve PORT                              an NFSv3-shaped RPC server on 127.0.0.1 that touches no data
// bench_rpc_load run PORT null|read|write BYTES DEPTH SECONDS
//                                                        keeps DEPTH Calls outstanding on one connection and prints one
//                                                        line of JSON: rpcs and seconds without warm-up, all_rpcs
//                                                        with it, and of the latency the median and the 99th
//                                                        percentile in microseconds
//
// For bench/gateway. Every message leaves with a system call of its own, as those of Linux's NFS client and server do;
// what comes is taken 256 KiB at a time.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/rpc_load/messages.h"
#include "bench/rpc_load/stream.h"

namespace iwarp::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMaxBytes = 1u << 20;
constexpr std::uint32_t kMaxDepth = 256;

::iovec piece(std::vector<std::byte>& bytes) {
  return {bytes.data(), bytes.size()};
}

// --- server

void serve_connection(int fd) {
  static std::vector<std::byte> data(kMaxBytes);  // never written
  RecordHeads records(kCallHeadBytes);
  std::vector<::iovec> out;
  bool alive = true;
  while (alive && records.receive(fd, [&](ConstBytes head, std::size_t) {
    const Call call = parse_call(head);
    const std::uint32_t bytes = std::min(call.bytes, kMaxBytes);
    auto reply = make_reply_head(call.procedure, bytes);
    set_xid(reply, call.xid);
    out.push_back(piece(reply));
    if (call.procedure == Procedure::kRead) out.push_back({data.data(), bytes});
    alive = alive && write_all(fd, out);
    out.clear();
  })) {
  }
  ::close(fd);
}

[[noreturn]] void serve(std::uint16_t port) {
  const int listener = listen_on(port);
  std::printf("%u\n", unsigned{port});
  std::fflush(stdout);
  for (;;) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) die("accept");
    std::thread(serve_connection, fd).detach();
  }
}

// --- load

class Load {
 public:
  Load(std::uint16_t port, Procedure procedure, std::uint32_t bytes, std::uint32_t depth)
      : fd_(connect_to(port)),
        reply_bytes_(make_reply_head(procedure, bytes).size() + (procedure == Procedure::kRead ? bytes : 0)),
        replies_(kMarkBytes + 24),
        calls_(depth, make_call(procedure, bytes)),
        xids_(depth),
        sent_(depth) {}

  // Runs for so long, then lets what is outstanding come in.
  void run(std::chrono::duration<double> warm_up, std::chrono::duration<double> counted) {
    const auto start = Clock::now();
    begin_ = start + std::chrono::duration_cast<Clock::duration>(warm_up);
    end_ = begin_ + std::chrono::duration_cast<Clock::duration>(counted);
    for (std::uint32_t slot = 0; slot < calls_.size(); ++slot) queue(slot, start);
    while (outstanding_ > 0) {
      std::vector<std::uint32_t> free;
      const bool alive =
          replies_.receive(fd_, [&](ConstBytes head, std::size_t size) { free.push_back(take(head, size)); });
      if (!alive) die("the connection ended");
      const auto now = Clock::now();
      for (const std::uint32_t slot : free) {
        if (now >= begin_ && now < end_)
          latencies_.push_back(std::chrono::duration<float, std::micro>(now - sent_[slot]).count());
        if (now < end_) queue(slot, now);
      }
    }
  }

  void print() {
    const auto at = [&](double share) {
      if (latencies_.empty()) return 0.0F;
      const auto i = static_cast<std::size_t>(share * static_cast<double>(latencies_.size() - 1));
      std::nth_element(latencies_.begin(), latencies_.begin() + static_cast<std::ptrdiff_t>(i), latencies_.end());
      return latencies_[i];
    };
    const double median = at(0.5), p99 = at(0.99);
    std::printf("{\"rpcs\": %zu, \"all_rpcs\": %zu, \"seconds\": %.6f, \"median_us\": %.1f, \"p99_us\": %.1f}\n",
                latencies_.size(), answered_, std::chrono::duration<double>(end_ - begin_).count(), median, p99);
  }

 private:
  void queue(std::uint32_t slot, Clock::time_point now) {
    xids_[slot] = next_xid_++ * kMaxDepth + slot;
    set_xid(calls_[slot], xids_[slot]);
    sent_[slot] = now;
    ++outstanding_;
    out_.push_back(piece(calls_[slot]));
    if (!write_all(fd_, out_)) die("send");
  }
  std::uint32_t take(ConstBytes head, std::size_t size) {
    const auto xid = load_be<std::uint32_t>(head.subspan(kMarkBytes));
    const std::uint32_t slot = xid % kMaxDepth;
    if (slot >= calls_.size() || xids_[slot] != xid || size != reply_bytes_ ||
        load_be<std::uint32_t>(head.subspan(kMarkBytes + 20)) != 0) {
      std::fprintf(stderr, "bench_rpc_load: an unexpected Reply of %zu octets, xid %#x\n", size, xid);
      std::exit(1);
    }
    --outstanding_;
    ++answered_;
    return slot;
  }

  int fd_;
  std::size_t reply_bytes_;
  RecordHeads replies_;
  std::vector<std::vector<std::byte>> calls_;  // by slot
  std::vector<std::uint32_t> xids_;
  std::vector<Clock::time_point> sent_;
  std::vector<::iovec> out_;
  std::vector<float> latencies_;
  Clock::time_point begin_{}, end_{};
  std::uint32_t next_xid_ = 1;
  std::size_t outstanding_ = 0, answered_ = 0;
};

int usage() {
  std::fputs("usage: bench_rpc_load serve PORT | run PORT null|read|write BYTES DEPTH SECONDS\n", stderr);
  return 2;
}

}  // namespace

int main_of(const std::vector<std::string>& args) {
  if (args.size() == 2 && args[0] == "serve") serve(static_cast<std::uint16_t>(std::stoul(args[1])));
  if (args.size() != 6 || args[0] != "run") return usage();
  const auto procedure = args[2] == "null"   ? Procedure::kNull
                         : args[2] == "read" ? Procedure::kRead
                                             : Procedure::kWrite;
  const auto bytes = static_cast<std::uint32_t>(std::stoul(args[3]));
  const auto depth = static_cast<std::uint32_t>(std::stoul(args[4]));
  if (bytes % 4 != 0 || bytes > kMaxBytes || depth == 0 || depth > kMaxDepth) return usage();
  const double seconds = std::stod(args[5]);
  Load load(static_cast<std::uint16_t>(std::stoul(args[1])), procedure, bytes, depth);
  load.run(std::chrono::duration<double>(std::min(seconds / 4, 0.25)), std::chrono::duration<double>(seconds));
  load.print();
  return 0;
}

}  // namespace iwarp::bench

int main(int argc, char** argv) {
  return iwarp::bench::main_of({argv + 1, argv + argc});
}
