// What an initiator sends first when it has its Reply. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"
#include "iwarp/rdmap/read_request.h"

namespace iwarp::tools::probe {

struct FirstMessage {
  enum class Kind : std::uint8_t {
    kNone,
    kSend,
    kWrite,
    kRead,
    kTerminate,  // in `code`
    kOther,      // another message, see `what`
    kBadCrc,     // an FPDU whose CRC is wrong, CRCs being on
    kNoFpdu,     // see `what`
  };

  Kind kind = Kind::kNone;
  bool empty = false;  // of a Send, Write or Read: it moves no data, as an RTR does
  TerminateCode code{};
  std::string what{};
  rdmap::ReadRequest read{};  // of kRead

  // "Read RTR", "a Send with data", "Terminate 2/0/7 ..."
  [[nodiscard]] std::string to_string() const;
};

// nullopt: not all of it has come. `octets` is not changed.
[[nodiscard]] std::optional<FirstMessage> first_message(bool crc, MutBytes octets);
// The FPDU with the empty Read Response that a Read RTR gets.
[[nodiscard]] std::vector<std::byte> read_response(const rdmap::ReadRequest& request, bool crc);

}  // namespace iwarp::tools::probe
