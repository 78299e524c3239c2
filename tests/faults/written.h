// NFSv3 WRITEs whose payload says what it must be, so that a torn or lost one shows: `id` travels as the file offset,
// and the data are pattern(size, id).
#pragma once

#include <optional>

#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::faults {

// What comes of a Reply that the store breaks off (store.cc), octets.
inline constexpr std::size_t kHalfReply = 50'000;

struct Written {
  std::uint32_t id = 0, size = 0;
  bool intact = false;  // every octet is what it must be, and none is missing
};

[[nodiscard]] inline test::Bytes write_call(std::uint32_t xid, std::uint32_t id, std::uint32_t size) {
  namespace samples = rpcrdma::test;
  using test::operator+;
  return samples::rpc_call(
      xid, samples::kNfs, 3, 7,
      samples::file_handle() + samples::words({0, id, size, 2}) + samples::opaque(test::pattern(size, id)));
}

// Nothing when it is no WRITE.
[[nodiscard]] inline std::optional<Written> parse_write(const test::Bytes& call) {
  namespace samples = rpcrdma::test;
  const auto head = rpcrdma::RpcCall::parse(call);
  if (!head || head->program != samples::kNfs || head->procedure != 7) return std::nullopt;
  const std::size_t at = samples::rpc_call(0, 0, 0, 0, samples::file_handle()).size();
  Written w;
  if (call.size() < at + 20) return w;
  const auto word = [&](std::size_t n) { return load_be<std::uint32_t>(ConstBytes(call).subspan(at + 4 * n)); };
  w.id = word(1);
  w.size = word(2);
  w.intact = call == write_call(head->xid, w.id, w.size);
  return w;
}

}  // namespace iwarp::faults
