// The extended way to post: ibv_wr_start(), then requests one call after the other, then ibv_wr_complete().
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "dropin/verbs/c_face.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin {

// What was said since start(). One thread at a time has it: start() waits.
class WrBuilder {
 public:
  // Fills in the functions of an extended queue pair whose builder is a WrBuilder.
  static void set_functions(ibv_qp_ex& qp);

  void start();
  // Another request; `in` without its pieces.
  void add(const ibv_send_wr& in, const SendRules& rules);
  // Of the last request.
  void pieces(std::span<const ibv_sge> some);
  // Copied here.
  void inline_data(std::span<const ibv_data_buf> some);
  // What is not supported, or is wrong, is told by complete().
  void refuse(int error) { error_ = error_ == 0 ? error : error_; }
  // Posts all of it, or nothing: 0 or an errno value.
  [[nodiscard]] int complete(verbs::QueuePair& qp);
  void abort();

 private:
  // Octets of `copies_` that are those of a request.
  struct Inline {
    std::size_t request, offset, length;
  };
  void clear();

  std::mutex mutex_;  // from start() to complete() or abort()
  std::vector<rdmap::SendWr> requests_;
  std::vector<std::byte> copies_;
  std::vector<Inline> inlines_;
  int error_ = 0;
};

}  // namespace iwarp::dropin
