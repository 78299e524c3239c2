// Just enough of MOUNT and NFS version 3 (RFC 1813) to make and remove directories on a real server.
#pragma once

#include <optional>
#include <string>

#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::gateway::test::nfs3 {

using iwarp::test::Bytes;
using iwarp::test::operator+;

inline constexpr std::uint32_t kOk = 0;
inline constexpr std::uint32_t kNoEntry = 2;
inline constexpr std::uint32_t kExists = 17;

inline Bytes text(const std::string& s) {
  Bytes out(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) out[i] = static_cast<std::byte>(s[i]);
  return rpcrdma::test::opaque(out);
}

// With AUTH_SYS credentials of root.
inline Bytes call(std::uint32_t xid, std::uint32_t program, std::uint32_t procedure, const Bytes& arguments) {
  using rpcrdma::test::words;
  const Bytes credential = words({0}) + text("test") + words({0, 0, 0});
  return words({xid, 0, 2, program, 3, procedure, 1}) + rpcrdma::test::opaque(credential) + words({0, 0}) + arguments;
}
inline Bytes mount(std::uint32_t xid, const std::string& path) {
  return call(xid, 100005, 1, text(path));
}
inline Bytes mkdir(std::uint32_t xid, const Bytes& directory, const std::string& name) {
  return call(xid, rpcrdma::test::kNfs, 9,
              rpcrdma::test::opaque(directory) + text(name) + rpcrdma::test::words({1, 0755, 0, 0, 0, 0, 0}));
}
inline Bytes rmdir(std::uint32_t xid, const Bytes& directory, const std::string& name) {
  return call(xid, rpcrdma::test::kNfs, 13, rpcrdma::test::opaque(directory) + text(name));
}

// The first word of the results; nothing if the server did not accept the Call.
inline std::optional<std::uint32_t> status(const Bytes& reply) {
  const auto head = rpcrdma::RpcReply::parse(reply);
  if (!head || !head->success() || reply.size() < head->results_offset + 4) return std::nullopt;
  return load_be<std::uint32_t>(ConstBytes(reply).subspan(head->results_offset));
}
// The file handle in a MOUNT reply.
inline std::optional<Bytes> mounted(const Bytes& reply) {
  if (status(reply) != kOk) return std::nullopt;
  ReadCursor in(ConstBytes(reply).subspan(rpcrdma::RpcReply::parse(reply)->results_offset + 4));
  const ConstBytes handle = in.take(in.be<std::uint32_t>());
  if (!in.ok()) return std::nullopt;
  return Bytes(handle.begin(), handle.end());
}

}  // namespace iwarp::gateway::test::nfs3
