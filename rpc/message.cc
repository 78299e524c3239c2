#include "iwarp/rpc/message.h"

#include <algorithm>

#include "iwarp/base/wire.h"

namespace iwarp::rpc {
namespace {

std::size_t padded(std::size_t octets) {
  return (octets + 3) / 4 * 4;
}

ConstBytes cut(ConstBytes octets, std::size_t most) {
  return octets.first(std::min(octets.size(), most));
}

void put_opaque(WriteCursor& out, ConstBytes octets) {
  static constexpr std::byte kZeros[3]{};
  out.be(static_cast<std::uint32_t>(octets.size()));
  out.bytes(octets);
  out.bytes(ConstBytes(kZeros).first(padded(octets.size()) - octets.size()));
}

}  // namespace

Credential Credential::sys(const std::string& host, std::uint32_t uid, std::uint32_t gid,
                           const std::vector<std::uint32_t>& groups) {
  const ConstBytes name = cut(std::as_bytes(std::span(host)), 255);
  const std::size_t count = std::min<std::size_t>(groups.size(), 16);
  Credential made{rpcrdma::kAuthSys, Octets(5 * 4 + padded(name.size()) + 4 * count)};
  WriteCursor out(made.body);
  out.be(std::uint32_t{0});  // stamp
  put_opaque(out, name);
  out.be(uid);
  out.be(gid);
  out.be(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) out.be(groups[i]);
  return made;
}

Octets encode_call(const Procedure& what, const Credential& credential, const Credential& verifier,
                   ConstBytes arguments) {
  const ConstBytes who = cut(credential.body, rpcrdma::kMaxAuthBytes);
  const ConstBytes proof = cut(verifier.body, rpcrdma::kMaxAuthBytes);
  const std::size_t head = 6 * 4 + 8 + padded(who.size()) + 8 + padded(proof.size());
  Octets made;
  made.reserve(head + arguments.size());  // which may be long: they are written once
  made.resize(head);
  WriteCursor out(made);
  for (const std::uint32_t word : {0u, static_cast<std::uint32_t>(rpcrdma::RpcDirection::kCall), rpcrdma::kRpcVersion,
                                   what.program, what.version, what.procedure, credential.flavor}) {
    out.be(word);
  }
  put_opaque(out, who);
  out.be(verifier.flavor);
  put_opaque(out, proof);
  made.insert(made.end(), arguments.begin(), arguments.end());
  return made;
}

Octets encode_reply(std::uint32_t xid, rpcrdma::AcceptStat stat, ConstBytes results) {
  const auto head = rpcrdma::make_error_reply(xid, stat);
  Octets made;
  made.reserve(head.size() + results.size());
  made.assign(head.begin(), head.end());
  made.insert(made.end(), results.begin(), results.end());
  return made;
}

}  // namespace iwarp::rpc
