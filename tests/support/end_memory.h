// What an end of a connection has below it: a table of STags, and memory that is registered there.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "tests/support/region.h"

namespace iwarp::test {

struct EndMemory {
  explicit EndMemory(const ddp::StreamKey& of, unsigned seed = 5) : key(of), random(seed) {}

  Region& region(std::size_t bytes, ddp::Access access = kLocal) {
    regions.push_back(std::make_unique<Region>(stags, key.pd, bytes, access, 0x10000, ddp::StreamId::kAny, random()));
    return *regions.back();
  }

  ddp::StagTable stags;
  ddp::StreamKey key;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Region>> regions;
};

}  // namespace iwarp::test
