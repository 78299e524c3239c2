#include "iwarp/mpa/crc32c.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "iwarp/mpa/isal.h"

namespace iwarp::mpa {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
using Update = std::uint32_t (*)(std::uint32_t, ConstBytes);

// table[0] advances the register by one octet; table[k] by one octet that is followed by k zero octets.
constexpr Tables make_tables() {
  constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;  // req: RFC5044-4.4-15  0x11EDC6F41, bits reflected
  Tables t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t r = i;
    for (int bit = 0; bit < 8; ++bit) r = (r & 1) != 0 ? (r >> 1) ^ kReflectedPolynomial : r >> 1;
    t[0][i] = r;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xFF];
  }
  return t;
}
constexpr Tables kTables = make_tables();

constexpr std::uint32_t octet(std::byte b) {
  return std::to_integer<std::uint32_t>(b);
}

std::uint32_t update_portable(std::uint32_t reg, ConstBytes in) {
  std::size_t i = 0;
  for (; in.size() - i >= 8; i += 8) {
    const std::uint32_t low =
        reg ^ (octet(in[i]) | octet(in[i + 1]) << 8 | octet(in[i + 2]) << 16 | octet(in[i + 3]) << 24);
    reg = kTables[7][low & 0xFF] ^ kTables[6][low >> 8 & 0xFF] ^ kTables[5][low >> 16 & 0xFF] ^ kTables[4][low >> 24] ^
          kTables[3][octet(in[i + 4])] ^ kTables[2][octet(in[i + 5])] ^ kTables[1][octet(in[i + 6])] ^
          kTables[0][octet(in[i + 7])];
  }
  for (; i < in.size(); ++i) reg = (reg >> 8) ^ kTables[0][(reg ^ octet(in[i])) & 0xFF];
  return reg;
}

// ISA-L counts in int, and lacks const. Where it is missing the table gives the same.
std::uint32_t update_isal(std::uint32_t reg, ConstBytes in) {
  static const IsalCrc kCrc = isal_crc();
  if (kCrc == nullptr) return update_portable(reg, in);
  constexpr std::size_t kMaxRun = std::size_t{1} << 30;
  while (!in.empty()) {
    const ConstBytes run = in.first(std::min(in.size(), kMaxRun));
    auto* data = const_cast<unsigned char*>(static_cast<const unsigned char*>(static_cast<const void*>(run.data())));
    reg = kCrc(data, static_cast<int>(run.size()), reg);
    in = in.subspan(run.size());
  }
  return reg;
}

bool cpu_accelerates_isal() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("sse4.2") != 0;
#else
  return false;  // unknown here: the portable code is right everywhere
#endif
}

Update chosen() {
  static const Update kChosen = cpu_accelerates_isal() && isal_crc() != nullptr ? update_isal : update_portable;
  return kChosen;
}

constexpr std::uint32_t kInitial = 0xFFFFFFFFu;

}  // namespace

void Crc32c::update(ConstBytes bytes) {
  register_ = chosen()(register_, bytes);
}

void Crc32c::write_to(std::span<std::byte, kCrcBytes> out) const {
  std::uint32_t v = value();
  for (std::byte& b : out) {  // req: RFC5044-4.4-15  least significant octet first
    b = static_cast<std::byte>(v & 0xFF);
    v >>= 8;
  }
}

std::uint32_t crc32c(ConstBytes bytes) {
  return ~chosen()(kInitial, bytes);
}

std::uint32_t load_crc(std::span<const std::byte, kCrcBytes> field) {
  return octet(field[0]) | octet(field[1]) << 8 | octet(field[2]) << 16 | octet(field[3]) << 24;
}

std::uint32_t crc32c_portable(ConstBytes bytes) {
  return ~update_portable(kInitial, bytes);
}
std::uint32_t crc32c_isal(ConstBytes bytes) {
  return ~update_isal(kInitial, bytes);
}
bool crc32c_is_accelerated() {
  return chosen() == update_isal;
}

}  // namespace iwarp::mpa
