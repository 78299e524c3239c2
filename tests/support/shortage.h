// A shortage of memory that comes at a chosen moment: replaces the global operator new and aligned_alloc() of its
// executable. Within a Short the allocation number `n` of this thread fails, once; outside nothing does.
#pragma once

#include <cstddef>

namespace iwarp::test {

class Shortage {
 public:
  // `n`: 0 is the first.
  explicit Shortage(std::size_t n);
  ~Shortage();
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

  // Whether there were so many allocations that one failed.
  [[nodiscard]] static bool happened();

  // Allocations made while one of these exists count.
  class Short {
   public:
    Short();
    ~Short();
    Short(const Short&) = delete;
    Short& operator=(const Short&) = delete;
  };
};

}  // namespace iwarp::test
