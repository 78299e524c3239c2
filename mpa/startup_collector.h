// Gathers one startup frame from a byte stream that comes in any pieces, and takes not one octet more.
#pragma once

#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/mpa/startup_frame.h"

namespace iwarp::mpa {

class StartupCollector {
 public:
  using Parser = StartupParse (*)(ConstBytes bytes, std::size_t max_private_data_bytes);

  // `parser` is parse_request or parse_reply.
  StartupCollector(Parser parser, std::size_t max_private_data_bytes)
      : parser_(parser), max_private_data_bytes_(max_private_data_bytes) {}

  struct Step {
    std::size_t consumed = 0;
    StartupParse result;  // spans in a frame stay valid until the next feed(), also after a move
  };
  // Takes what it needs of `bytes`. Do not call again after a frame or an Error.
  [[nodiscard]] Step feed(ConstBytes bytes);
  // Whether nothing has come in so far.
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  Parser parser_;
  std::size_t max_private_data_bytes_;
  std::vector<std::byte> bytes_;
};

}  // namespace iwarp::mpa
