// Blocking TCP sockets and the records on them.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::bench {

// Ends the process with a line on standard error.
[[noreturn]] void die(const char* what);

[[nodiscard]] int connect_to(std::uint16_t port);                    // on 127.0.0.1
[[nodiscard]] int listen_on(std::uint16_t& port);                    // 0: a free one, which is put there
[[nodiscard]] bool write_all(int fd, std::vector<::iovec>& pieces);  // false: the connection has ended

// Finds records in what recv() brings, keeps up to `kept` octets of the front of each (mark included) and drops the
// rest.
class RecordHeads {
 public:
  explicit RecordHeads(std::size_t kept) : kept_(kept), head_(kept), chunk_(256u << 10) {}

  // Receives once and calls `each(head, record_bytes)` for each record that is complete. False: the connection has
  // ended.
  template <class Each>
  [[nodiscard]] bool receive(int fd, Each each) {
    ConstBytes in = receive_some(fd);
    if (in.empty()) return false;
    while (!in.empty()) {
      in = in.subspan(take(in));
      if (complete()) {
        each(ConstBytes(head_).first(std::min(kept_, seen_)), seen_);
        seen_ = 0;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] ConstBytes receive_some(int fd);
  [[nodiscard]] std::size_t take(ConstBytes in);
  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::size_t record_bytes() const;  // mark included

  std::size_t kept_;
  std::vector<std::byte> head_;
  std::vector<std::byte> chunk_;
  std::size_t seen_ = 0;  // of the current record
};

}  // namespace iwarp::bench
