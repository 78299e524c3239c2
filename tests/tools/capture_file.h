// Writes a capture of packets that a test has made.
#pragma once

#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "iwarp/trace/packet_maker.h"

namespace iwarp::test {

// One second, and a packet a microsecond, in the order given.
inline void write_capture(const std::string& file, const std::vector<trace::Packet>& all) {
  std::ofstream out(file, std::ios::binary);
  const auto words = [&out](std::initializer_list<std::uint32_t> list) {
    for (const std::uint32_t w : list) out.write(reinterpret_cast<const char*>(&w), sizeof w);
  };
  words({0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1});  // in the order of this machine; Ethernet
  std::uint32_t microseconds = 0;
  for (const trace::Packet& p : all) {
    const auto n = static_cast<std::uint32_t>(p.size());
    words({1, microseconds++, n, n});
    out.write(reinterpret_cast<const char*>(p.data()), static_cast<std::streamsize>(p.size()));
  }
}

}  // namespace iwarp::test
