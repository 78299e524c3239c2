// Registered memory for tests, and work requests in one line.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>

#include "iwarp/ddp/stag_table.h"
#include "iwarp/rdmap/work_request.h"
#include "tests/support/hex.h"

namespace iwarp::test {

inline constexpr ddp::Access kLocal = ddp::Access::kLocalWrite;
inline constexpr ddp::Access kRemoteAll =
    ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite;

// Registered memory. Base TO is the number `base_to`, not the address, so that a mix-up of the two shows.
class Region {
 public:
  Region(ddp::StagTable& stags, PdId pd, std::size_t bytes, ddp::Access access, std::uint64_t base_to,
         ddp::StreamId stream, std::uint64_t random)
      : stags_(stags), memory_(bytes), base_to_(base_to) {
    stag_ = stags_.register_memory({memory_, base_to, pd, stream, access}, random).value();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  [[nodiscard]] Stag stag() const { return stag_; }
  [[nodiscard]] std::uint64_t to(std::size_t offset = 0) const { return base_to_ + offset; }
  [[nodiscard]] Bytes& bytes() { return memory_; }
  [[nodiscard]] rdmap::Sge sge(std::size_t offset, std::size_t length) {
    return {memory_.data() + offset, static_cast<std::uint32_t>(length), stag_};
  }
  [[nodiscard]] rdmap::Sge all() { return sge(0, memory_.size()); }
  void fill(const Bytes& content, std::size_t offset = 0) {
    std::copy(content.begin(), content.end(), memory_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  // Revokes the registration as verbs would: invalidate, then nobody may hold it.
  void revoke() {
    EXPECT_TRUE(stags_.invalidate(stag_));
    EXPECT_TRUE(stags_.quiescent(stag_));
    stags_.release(stag_);
  }

 private:
  ddp::StagTable& stags_;
  Bytes memory_;
  std::uint64_t base_to_;
  Stag stag_{};
};

// Work requests in one line.
[[nodiscard]] rdmap::SendWr send_wr(std::uint64_t id, const rdmap::SgeList& sges);
[[nodiscard]] rdmap::SendWr write_wr(std::uint64_t id, const rdmap::SgeList& sges, const Region& remote,
                                     std::size_t offset = 0);
[[nodiscard]] rdmap::SendWr read_wr(std::uint64_t id, const rdmap::SgeList& sink, const Region& remote,
                                    std::size_t offset = 0);
[[nodiscard]] rdmap::SgeList list(std::initializer_list<rdmap::Sge> sges);

}  // namespace iwarp::test
