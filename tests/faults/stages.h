// Where the parts of a recorded stream lie: the MPA startup frame, and of each FPDU its length, header, payload,
// padding and CRC.
#pragma once

#include <string>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::faults {

struct Stage {
  enum class Part : std::uint8_t { kStartup, kLength, kHeader, kPayload, kPad, kCrc };

  Part part;
  std::size_t fpdu;        // 0 for the first one; 0 for the startup frame too
  std::size_t begin, end;  // octets of the stream, end excluded; never empty

  // "octets 16 to 18, header of FPDU 3"
  [[nodiscard]] std::string to_string() const;
};

// In order, without gaps, to the end of the stream. Throws when the stream is not one.
[[nodiscard]] std::vector<Stage> stages(ConstBytes stream);

}  // namespace iwarp::faults
