#include "iwarp/rpcrdma/private_data.h"

#include <cassert>

#include "iwarp/base/wire.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kRemoteInvalidation = 0x01;

constexpr std::uint32_t decode_size(std::uint8_t code) {
  return (std::uint32_t{code} + 1) * 1024;
}  // req: RFC8797-4.2-3

constexpr std::uint8_t encode_size(std::uint32_t bytes) {
  assert(bytes >= PrivateData::kMinBytes);
  const std::uint32_t sayable =
      std::clamp(bytes, PrivateData::kMinBytes, PrivateData::kMaxBytes);  // req: RFC8797-4.2-1
  return static_cast<std::uint8_t>(sayable / 1024 - 1);                   // req: RFC8797-4.2-2
}

}  // namespace

std::optional<PrivateData> PrivateData::find(ConstBytes private_data) {
  // The identifier may stand behind other users' data, aligned or not. Only its first occurrence counts.
  for (std::size_t at = 0; at + sizeof(kMagic) <= private_data.size(); ++at) {  // req: RFC8797-5.2-1 RFC8797-5-1
    if (load_be<std::uint32_t>(private_data.subspan(at)) != kMagic) continue;   // req: RFC8797-4-6
    const auto frame = FixedView<kSize>::of(private_data.subspan(at));
    if (!frame || frame->be<std::uint8_t, 4>() != kVersion)
      return std::nullopt;  // req: RFC8797-4-7 RFC8797-5.2-3 RFC8797-6-1
    PrivateData out;
    out.remote_invalidation =
        (frame->be<std::uint8_t, 5>() & kRemoteInvalidation) != 0;  // req: RFC8797-4-5 RFC8797-4-9
    out.send_bytes = decode_size(frame->be<std::uint8_t, 6>());
    out.receive_bytes = decode_size(frame->be<std::uint8_t, 7>());
    return out;
  }
  return std::nullopt;  // req: RFC8797-5.1-1 RFC8797-5.2-2 RFC8797-1-1 RFC8797-4-4 RFC8166-3.3.3-5
}

std::array<std::byte, PrivateData::kSize> PrivateData::encode() const {
  std::array<std::byte, kSize> out{};
  FixedWriter<kSize> w{out};
  w.be<0>(kMagic);  // req: RFC8797-8-1
  w.be<4>(kVersion);
  w.be<5>(static_cast<std::uint8_t>(remote_invalidation ? kRemoteInvalidation : 0));  // req: RFC8797-4-8 RFC8797-4-10
  w.be<6>(encode_size(send_bytes));                                                   // req: RFC8797-4-11
  w.be<7>(encode_size(receive_bytes));                                                // req: RFC8797-4-12
  return out;
}

std::string PrivateData::to_string() const {
  return "PrivateData(send=" + std::to_string(send_bytes) + ", receive=" + std::to_string(receive_bytes) +
         ", remote_invalidation=" + (remote_invalidation ? "1" : "0") + ")";
}

ConnectionLimits negotiate(const PrivateData& client, const PrivateData& server) {
  ConnectionLimits out;
  // req: RFC8797-3.1-1
  out.call_inline_bytes = std::min(client.send_bytes, server.receive_bytes);   // req: RFC8797-4.2-4 RFC8166-3.3.2-1
  out.reply_inline_bytes = std::min(server.send_bytes, client.receive_bytes);  // req: RFC8797-4.2-5
  out.remote_invalidation = client.remote_invalidation && server.remote_invalidation;  // req: RFC8797-4.1-3
  return out;
}

}  // namespace iwarp::rpcrdma
