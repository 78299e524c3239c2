/* Data that the programs of this folder send and compare: each seed gives another. */
#ifndef IWARP_TESTS_DROPIN_PATTERN_H
#define IWARP_TESTS_DROPIN_PATTERN_H

#include <stddef.h>

static inline unsigned char octet(size_t at, int seed) {
  return (unsigned char)(at * 7 + at / 251 + (size_t)seed);
}

static inline void fill(unsigned char* to, size_t octets, int seed) {
  for (size_t at = 0; at < octets; ++at) to[at] = octet(at, seed);
}

/* Whether it is what fill() wrote. */
static inline int filled(const unsigned char* from, size_t octets, int seed) {
  for (size_t at = 0; at < octets; ++at) {
    if (from[at] != octet(at, seed)) return 0;
  }
  return 1;
}

#endif
