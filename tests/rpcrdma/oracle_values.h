// The oracle of xdr_oracle.h with the types of tests.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/rpcrdma/xdr_oracle.h"
#include "tests/support/hex.h"

namespace iwarp::test {

inline const std::uint8_t* octets(const Bytes& b) {
  return reinterpret_cast<const std::uint8_t*>(b.data());
}
inline std::uint8_t* octets(Bytes& b) {
  return reinterpret_cast<std::uint8_t*>(b.data());
}

// A random encoding that starts with `forced` words; empty if this seed gives none.
inline Bytes generate(oracle_type type, std::uint32_t seed, std::vector<std::uint32_t> forced) {
  Bytes out(65536);
  out.resize(oracle_generate(type, seed, forced.data(), forced.size(), octets(out), out.size()));
  return out;
}

// The value at the start of `in`, decoded and encoded; empty if rpcgen's decoder refuses it. `used`: what it consumed.
inline Bytes recode(oracle_type type, const Bytes& in, std::size_t& used) {
  Bytes out(65536);
  out.resize(oracle_recode(type, octets(in), in.size(), octets(out), out.size(), &used));
  return out;
}

}  // namespace iwarp::test
