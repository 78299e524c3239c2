#include "iwarp/enhanced/enhanced_data.h"

#include "iwarp/base/wire.h"

namespace iwarp::enhanced {
namespace {

constexpr std::uint16_t kWordHigh = 0x8000;  // A or C
constexpr std::uint16_t kWordLow = 0x4000;   // B or D
constexpr std::uint16_t kWordCount = 0x3FFF;

constexpr std::uint16_t word(bool high, bool low, std::uint16_t count) {
  return static_cast<std::uint16_t>((high ? kWordHigh : 0) | (low ? kWordLow : 0) | (count & kWordCount));
}

}  // namespace

EnhancedData EnhancedData::parse(std::span<const std::byte, kEnhancedDataBytes> in) {
  const FixedView<kEnhancedDataBytes> view{in};
  const auto w0 = view.be<std::uint16_t, 0>();  // req: RFC6581-9-4
  const auto w1 = view.be<std::uint16_t, 2>();
  EnhancedData e;
  e.peer_to_peer = (w0 & kWordHigh) != 0;  // req: RFC6581-9-5
  e.rtr_send = (w0 & kWordLow) != 0;
  e.rtr_write = (w1 & kWordHigh) != 0;
  e.rtr_read = (w1 & kWordLow) != 0;
  e.ird = w0 & kWordCount;
  e.ord = w1 & kWordCount;
  return e;
}

void EnhancedData::write_to(std::span<std::byte, kEnhancedDataBytes> out) const {
  FixedWriter<kEnhancedDataBytes> words{out};
  words.be<0>(word(peer_to_peer, rtr_send, ird));  // req: RFC6581-9-3
  words.be<2>(word(rtr_write, rtr_read, ord));
}

}  // namespace iwarp::enhanced
