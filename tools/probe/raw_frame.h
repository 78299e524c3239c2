// What a peer sent as Request or Reply, taken apart as it lies there: unlike mpa::parse_reply() this refuses nothing
// for what it says, so that `iwarp probe` can tell what is wrong with it. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "iwarp/base/bytes.h"
#include "iwarp/mpa/startup_frame.h"

namespace iwarp::tools::probe {

struct RawFrame {
  enum class Key : std::uint8_t { kReply, kRequest, kOther };

  Key key = Key::kOther;
  bool markers = false;
  bool crc = false;
  bool reject = false;
  bool s_bit = false;              // 0x10 of octet 16, whatever the revision
  std::uint8_t reserved_bits = 0;  // 0x0F of octet 16
  std::uint8_t revision = 0;
  std::uint16_t private_data_length = 0;        // PD_Length as it stands there, up to 65535
  ConstBytes field{};                           // what came of the Private Data field, at most PD_Length octets
  ConstBytes behind{};                          // what came behind the frame
  std::optional<mpa::EnhancedData> enhanced{};  // S=1 and room for it

  // nullopt: not even a header. Spans point into `octets`.
  [[nodiscard]] static std::optional<RawFrame> parse(ConstBytes octets);
  [[nodiscard]] bool is_reply() const { return key == Key::kReply; }
  [[nodiscard]] bool is_request() const { return key == Key::kRequest; }
  [[nodiscard]] bool complete() const { return field.size() == private_data_length; }
  // The ULP's part of the Private Data.
  [[nodiscard]] ConstBytes private_data() const { return enhanced ? field.subspan(mpa::kEnhancedDataBytes) : field; }
  // "M=0 C=1 R=0 S=1 rev=2 A=1 B=0 C_write=0 D=1 IRD=8 ORD=8, 8 octets of private data"
  [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] nlohmann::ordered_json to_json(const RawFrame& frame);

}  // namespace iwarp::tools::probe
