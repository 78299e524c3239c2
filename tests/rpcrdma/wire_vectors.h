// Reads tests/vectors/rpcrdma/*.hex: sections "[name]" of annotated hex, '#' starts a comment. And a writer of XDR for
// messages that no capture has.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/support/hex.h"
#include "tests/support/vectors.h"

namespace iwarp::test {

inline std::map<std::string, Bytes> read_vectors(const std::string& file) {
  std::ifstream in(vector_path("rpcrdma/" + file));
  if (!in) throw std::runtime_error("cannot open " + file);
  std::map<std::string, Bytes> out;
  std::string line;
  Bytes* section = nullptr;
  while (std::getline(in, line)) {
    line = line.substr(0, line.find('#'));
    if (line.find('[') == 0) {
      section = &out[line.substr(1, line.find(']') - 1)];
    } else if (section != nullptr) {
      *section = std::move(*section) + hex(line);
    }
  }
  return out;
}

// Appends XDR items.
class Xdr {
 public:
  Xdr() = default;
  explicit Xdr(Bytes start) : out_(std::move(start)) {}
  Xdr& w(std::uint32_t v) {
    for (int shift = 24; shift >= 0; shift -= 8) out_.push_back(static_cast<std::byte>(v >> shift & 0xFF));
    return *this;
  }
  Xdr& words(std::initializer_list<std::uint32_t> list) {
    for (const std::uint32_t v : list) w(v);
    return *this;
  }
  Xdr& d(std::uint64_t v) { return w(static_cast<std::uint32_t>(v >> 32)).w(static_cast<std::uint32_t>(v)); }
  // n octets of no interest.
  Xdr& fill(std::size_t n) { return raw(pattern(n, 1)); }
  Xdr& raw(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  // Opaque of n octets with count and padding.
  Xdr& opaque(std::size_t n) { return w(static_cast<std::uint32_t>(n)).fill(n).pad(); }
  Xdr& pad() {
    while (out_.size() % 4 != 0) out_.push_back(std::byte{0});
    return *this;
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  [[nodiscard]] const Bytes& bytes() const { return out_; }

 private:
  Bytes out_;
};

inline constexpr std::uint32_t kTestXid = 0x1a2b3c4d;

// Head of a Call with AUTH_NONE, up to the arguments.
inline Xdr nfs_call(std::uint32_t version, std::uint32_t procedure, std::uint32_t program = 100003) {
  return Xdr().words({kTestXid, 0, 2, program, version, procedure, 0, 0, 0, 0});
}
// Head of a successful Reply, up to the results.
inline Xdr nfs_reply() {
  return Xdr().words({kTestXid, 1, 0, 0, 0, 0});
}
// COMPOUND arguments or results up to the operations.
inline Xdr compound_call(std::uint32_t operations, std::uint32_t minor_version = 1) {
  return nfs_call(4, 1).opaque(3).w(minor_version).w(operations);
}
inline Xdr compound_reply(std::uint32_t results, std::uint32_t status = 0) {
  return nfs_reply().w(status).opaque(3).w(results);
}

}  // namespace iwarp::test
