// What rsockets say to each other, as rdma-core's librdmacm/docs/rsocket has it, and as it is on iWARP devices: data
// are RDMA Writes into the peer's receive buffer, each followed by a Send of one message of 32 bits, where InfiniBand
// has a Write with immediate data. Pure functions over values.
//
// Private data of the connection, the same in both directions, are in network order. Everything later is in the order
// of the hosts, which must be the same: Debian's library tells its order, but leaves the messages of iWARP alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp::dropin::rsockets {

// What a message is about: its upper 3 bits. Others are reserved.
enum class Op : std::uint8_t {
  kData = 0,     // so many octets were written, behind those before
  kGrant = 4,    // messages with data that may be sent in all, modulo 2^16; a buffer may have been granted before
  kMapped = 6,   // the entry of the table of mapped memory with this index was written
  kControl = 7,  // of enum Control
};

enum class Control : std::uint32_t {
  kDisconnect = 0,  // the peer neither sends nor receives any more
  kKeepalive = 1,
  kShutdown = 2,  // the peer sends nothing any more
};

struct Message {
  Op op = Op::kData;
  std::uint32_t value = 0;  // 29 bits

  static constexpr std::size_t kSize = 4;
  // The message as a Send has it. Bits of the value beyond 29 are dropped.
  [[nodiscard]] std::uint32_t word() const;
  // nullopt: reserved.
  [[nodiscard]] static std::optional<Message> parse(std::uint32_t word);
  friend bool operator==(const Message&, const Message&) = default;
};

// Memory that the peer may write.
struct Buffer {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;  // octets

  static constexpr std::size_t kSize = 16;
  static constexpr std::size_t kLengthOffset = 12;
  // In the order of this host.
  void write_to(std::span<std::byte, kSize> out) const;
  [[nodiscard]] static Buffer parse(std::span<const std::byte, kSize> in);
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// An entry of the table of mapped memory: `buffer` is what riowrite() finds from `offset` on.
struct Mapping {
  std::uint64_t offset = 0;
  Buffer buffer;

  static constexpr std::size_t kSize = 8 + Buffer::kSize;
  void write_to(std::span<std::byte, kSize> out) const;
  [[nodiscard]] static Mapping parse(std::span<const std::byte, kSize> in);
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// Buffers that are granted at a time: entries of the table that the peer writes them to.
inline constexpr std::size_t kGrants = 2;

// The private data of a Request and of a Reply.
struct ConnectionData {
  std::uint16_t credits = 0;   // messages with data that the peer may send at first
  std::uint32_t mappings = 0;  // entries of the table of mapped memory, which lies behind that of buffers
  Buffer grants;               // the table of granted buffers; `length` counts entries
  Buffer first;                // the first granted buffer

  static constexpr std::size_t kSize = 40;
  [[nodiscard]] std::array<std::byte, kSize> to_bytes() const;
  // What follows them counts for nothing. nullopt: too short, another version, another order of octets, no room for
  // kGrants buffers.
  [[nodiscard]] static std::optional<ConnectionData> parse(ConstBytes in);
  friend bool operator==(const ConnectionData&, const ConnectionData&) = default;
};

// Counts of mapped memory travel in 8 bits: up to 128 as they are, beyond in multiples of 256, up to 32512. The largest
// that can be said and is not above `entries`.
[[nodiscard]] std::uint32_t sayable(std::uint32_t entries);

}  // namespace iwarp::dropin::rsockets
