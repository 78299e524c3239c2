#include "iwarp/stream/carry.h"

#include <cassert>
#include <cstring>

namespace iwarp::stream {

void Carry::keep(ConstBytes partial, std::size_t wanted) {
  assert(wanted >= partial.size());
  const bool mine = partial.data() == memory_.get();
  if (wanted > capacity_) {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(wanted);
    std::memcpy(larger.get(), partial.data(), partial.size());
    memory_ = std::move(larger);
    capacity_ = wanted;
  } else if (!mine) {
    std::memcpy(memory_.get(), partial.data(), partial.size());
  }
  used_ = partial.size();
  wanted_ = wanted;
}

void Carry::release() {
  assert(empty());
  memory_.reset();
  capacity_ = 0;
}

}  // namespace iwarp::stream
