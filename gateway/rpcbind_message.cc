#include "iwarp/gateway/rpcbind_message.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {
namespace {

constexpr std::uint32_t kRpcbind = 100000;
constexpr std::uint32_t kRpcbindVersion = 3;
constexpr std::uint32_t kLastFragment = 0x80000000;  // RFC 5531 s11
constexpr std::size_t kMaxHostBytes = 255;           // of an AUTH_SYS credential

class Xdr {
 public:
  void word(std::uint32_t value) {
    const std::size_t at = out_.size();
    out_.resize(at + 4);
    store_be<std::uint32_t>(MutBytes(out_).subspan(at), value);
  }
  void text(const std::string& value) {
    word(static_cast<std::uint32_t>(value.size()));
    std::transform(value.begin(), value.end(), std::back_inserter(out_),
                   [](char c) { return static_cast<std::byte>(c); });
    out_.resize((out_.size() + 3) / 4 * 4);
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(out_); }
  void patch(std::size_t at, std::uint32_t value) { store_be<std::uint32_t>(MutBytes(out_).subspan(at), value); }

 private:
  std::vector<std::byte> out_;
};

}  // namespace

std::vector<std::byte> rpcbind_call(std::uint32_t xid, RpcbindProcedure procedure, const RpcbindEntry& entry,
                                    const RpcbindCaller& caller) {
  Xdr x;
  x.word(0);  // the record mark
  for (const std::uint32_t w : {xid, static_cast<std::uint32_t>(rpcrdma::RpcDirection::kCall), rpcrdma::kRpcVersion,
                                kRpcbind, kRpcbindVersion, static_cast<std::uint32_t>(procedure), rpcrdma::kAuthSys})
    x.word(w);
  const std::size_t length_at = x.size();
  x.word(0);
  x.word(0);  // stamp
  x.text(caller.host.substr(0, kMaxHostBytes));
  x.word(caller.uid);
  x.word(caller.gid);
  x.word(0);  // further groups
  x.patch(length_at, static_cast<std::uint32_t>(x.size() - length_at - 4));
  x.word(rpcrdma::kAuthNone);
  x.word(0);
  x.word(entry.program);
  x.word(entry.version);
  x.text(entry.netid);
  x.text(entry.address);
  x.text(entry.owner);
  x.patch(0, kLastFragment | static_cast<std::uint32_t>(x.size() - 4));
  return x.take();
}

std::optional<bool> rpcbind_answer(ConstBytes reply, std::uint32_t xid) {
  const auto head = rpcrdma::RpcReply::parse(reply);
  if (!head || head->xid != xid || !head->success() || reply.size() < head->results_offset + 4) return std::nullopt;
  return load_be<std::uint32_t>(reply.subspan(head->results_offset)) != 0;
}

const char* rdma_netid(const boost::asio::ip::address& address) {
  return address.is_v6() ? "rdma6" : "rdma";  // req: RFC8166-9-1
}

std::string universal_address(const boost::asio::ip::tcp::endpoint& at) {
  auto address = at.address();
  if (address.is_v6()) {  // an interface is of this host only
    auto v6 = address.to_v6();
    v6.scope_id(0);
    address = v6;
  }
  return address.to_string() + '.' + std::to_string(at.port() >> 8) + '.' + std::to_string(at.port() & 0xFF);
}

}  // namespace iwarp::gateway
