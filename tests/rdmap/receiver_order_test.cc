// In which order a segment's octets are stored: programs watch memory for the last one.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "tests/rdmap/receiver_fixture.h"

namespace iwarp::rdmap {
namespace {

// Two pages, the first of them protected: who stores into it is told what the last octets of the second are then.
class TwoPages {
 public:
  static constexpr std::size_t kPage = 4096, kInFirst = 16, kLast = 8;

  explicit TwoPages(std::size_t octets) : octets_(octets) {
    void* const pages = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    pages_ = static_cast<std::byte*>(pages);
    now_ = this;
    struct sigaction action {};
    action.sa_handler = [](int) { now_->stored(); };
    EXPECT_EQ(::sigaction(SIGSEGV, &action, &before_), 0);
    EXPECT_EQ(::mprotect(pages_, kPage, PROT_READ), 0);
  }
  ~TwoPages() {
    EXPECT_EQ(::sigaction(SIGSEGV, &before_, nullptr), 0);
    EXPECT_EQ(::munmap(pages_, 2 * kPage), 0);
  }
  TwoPages(const TwoPages&) = delete;
  TwoPages& operator=(const TwoPages&) = delete;

  // Its first kInFirst octets lie in the first page.
  [[nodiscard]] MutBytes memory() const { return {pages_ + kPage - kInFirst, octets_}; }
  [[nodiscard]] Bytes last_then() const { return Bytes(last_then_.begin(), last_then_.end()); }

 private:
  void stored() {
    const auto last = memory().last<kLast>();
    for (std::size_t i = 0; i < kLast; ++i) last_then_[i] = static_cast<volatile std::byte&>(last[i]);
    if (::mprotect(pages_, kPage, PROT_READ | PROT_WRITE) != 0) ::_exit(1);
  }

  inline static TwoPages* now_ = nullptr;
  std::size_t octets_;
  std::byte* pages_ = nullptr;
  std::array<std::byte, kLast> last_then_{std::byte{0xFF}};
  struct sigaction before_ {};
};

TEST_F(ReceiverTest, LastOctetsOfAWriteAreStoredLast) {
  for (const std::size_t octets : {17U, 24U, 64U, 100U, 1000U, 4000U}) {
    const TwoPages pages(octets);
    const Stag stag =
        stags_.register_memory({pages.memory(), kBase, kMe.pd, ddp::StreamId::kAny, kAll}, ++random_ * 0x10001).value();
    const Bytes written(octets, std::byte{0x77});
    expect_taken(write_segment(stag, kBase, written));
    EXPECT_EQ(pages.last_then(), Bytes(TwoPages::kLast)) << octets;
    EXPECT_EQ(Bytes(pages.memory().begin(), pages.memory().end()), written) << octets;
    EXPECT_TRUE(stags_.invalidate(stag));
  }
}

}  // namespace
}  // namespace iwarp::rdmap
