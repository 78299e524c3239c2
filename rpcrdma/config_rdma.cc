#include "iwarp/rpcrdma/config_rdma.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "iwarp/base/wire.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::size_t kCallHeadBytes = 40;  // with AUTH_NONE

std::array<std::byte, 12> three_words(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::array<std::byte, 12> out{};
  FixedWriter<12> w{out};
  w.be<0>(a);
  w.be<4>(b);
  w.be<8>(c);
  return out;
}

std::uint32_t at_least_basic(std::uint32_t bytes) {
  return std::max(bytes, kDefaultInlineBytes);
}

ConfigTerms terms_with(const ConfigLimits& own, std::uint32_t peer_reads) {
  ConfigTerms out;
  out.reads = std::min(own.outgoing_reads, peer_reads);  // req: D2005-6.2-6 D2005-6.2-7
  // The draft does not say whose zero forbids what. An end that cannot be read must offer no Read chunks; one that
  // tells a peer of zero may not be able to read either. So either zero forbids them. req: D2005-6.2-8
  out.read_chunks = own.incoming_reads > 0 && peer_reads > 0;
  out.alone = false;
  return out;
}

ConfigMessage joined(ConstBytes head, ConstBytes tail) {
  std::array<std::byte, ConfigMessage::kCapacity> out{};
  WriteCursor w(out);
  w.bytes(head);
  w.bytes(tail);
  return ConfigMessage(ConstBytes(out).first(w.written()));
}

ConfigMessage refusal(std::uint32_t xid, AcceptStat stat) {
  return ConfigMessage(make_error_reply(xid, stat));
}

}  // namespace

Result<ConfigRequest> ConfigRequest::parse(ConstBytes arguments) {
  const auto view = FixedView<kSize>::of(arguments);
  if (!view || arguments.size() != kSize) return make_error(Errc::kMalformedRpc, "CONFIG_RDMA arguments not 12 octets");
  return ConfigRequest{view->be<std::uint32_t, 0>(), view->be<std::uint32_t, 4>(), view->be<std::uint32_t, 8>()};
}

std::array<std::byte, ConfigRequest::kSize> ConfigRequest::encode() const {
  return three_words(max_call_bytes, max_reply_bytes, max_rdma_reads);
}

Result<ConfigReply> ConfigReply::parse(ConstBytes results) {
  const auto view = FixedView<kSize>::of(results);
  if (!view || results.size() != kSize) return make_error(Errc::kMalformedRpc, "CONFIG_RDMA results not 12 octets");
  return ConfigReply{view->be<std::uint32_t, 0>(), view->be<std::uint32_t, 4>(), view->be<std::uint32_t, 8>()};
}

std::array<std::byte, ConfigReply::kSize> ConfigReply::encode() const {
  return three_words(max_call_bytes, align, max_rdma_reads);
}

ConfigMessage::ConfigMessage(ConstBytes octets) : size_(octets.size()) {
  assert(octets.size() <= kCapacity);
  std::copy(octets.begin(), octets.end(), octets_.begin());
}

Result<ConfigTerms> client_terms(const ConfigLimits& own, const ConfigReply& reply) {
  if (reply.max_call_bytes < kDefaultInlineBytes)
    return make_error(Errc::kMalformedRpc, "CONFIG_RDMA: the server takes no Calls of 1024 octets");
  ConfigTerms out = terms_with(own, reply.max_rdma_reads);
  out.call_bytes = std::min(at_least_basic(own.call_bytes), reply.max_call_bytes);  // req: D2005-6.2-3
  out.reply_bytes = at_least_basic(own.reply_bytes);
  // Padding that does not leave room for data is none. req: D2005-6.2-9
  if (good_alignment(reply.align) && reply.align < out.call_bytes) out.align = reply.align;
  return out;
}

Result<ConfigTerms> server_terms(const ConfigLimits& own, const ConfigRequest& request) {
  if (request.max_reply_bytes < kDefaultInlineBytes)
    return make_error(Errc::kMalformedRpc, "CONFIG_RDMA: the client takes no Replies of 1024 octets");
  ConfigTerms out = terms_with(own, request.max_rdma_reads);
  out.call_bytes = at_least_basic(own.call_bytes);                                       // req: D2005-6.2-2
  out.reply_bytes = std::min(at_least_basic(own.reply_bytes), request.max_reply_bytes);  // req: D2005-6.2-5
  return out;
}

ConfigReply config_answer(const ConfigLimits& own) {
  return {at_least_basic(own.call_bytes), good_alignment(own.align) ? own.align : 0, own.incoming_reads};
}

ConfigMessage ConfigClient::call(std::uint32_t xid) {
  assert(state_ == State::kUnasked);
  state_ = State::kAsking;
  xid_ = xid;
  std::array<std::byte, kCallHeadBytes> head{};
  FixedWriter<kCallHeadBytes> w{head};
  w.be<0>(xid);
  w.be<4>(static_cast<std::uint32_t>(RpcDirection::kCall));
  w.be<8>(kRpcVersion);
  w.be<12>(program_);
  w.be<16>(kConfigVersion);
  w.be<20>(kConfigProcedure);
  // Credential and verifier are AUTH_NONE without a body: zero words. req: D2005-6.2-1
  const ConfigRequest request{at_least_basic(own_.call_bytes), at_least_basic(own_.reply_bytes), own_.incoming_reads};
  return joined(head, request.encode());
}

Result<void> ConfigClient::on_reply(ConstBytes reply) {
  assert(state_ == State::kAsking);
  if (rpc_xid(reply) != xid_) return make_error(Errc::kInvalidArgument, "Reply to another Call");
  const auto fail = [this](const Error& error) {
    state_ = State::kFailed;
    return error;
  };
  const Result<RpcReply> head = RpcReply::parse(reply);
  if (!head) return fail(head.error());
  if (!head->success()) {
    on_refused();  // whatever it has against the Call, it goes on as any server of version 1 would
    return {};
  }
  const Result<ConfigReply> answer = ConfigReply::parse(reply.subspan(head->results_offset));
  if (!answer) return fail(answer.error());
  const Result<ConfigTerms> terms = client_terms(own_, *answer);
  if (!terms) return fail(terms.error());
  answer_ = *answer;
  terms_ = *terms;
  state_ = State::kConfigured;
  return {};
}

void ConfigClient::on_refused() {
  assert(state_ == State::kAsking);
  state_ = State::kRefused;
  terms_.alone = false;
}

std::optional<ConfigMessage> ConfigServer::on_call(ConstBytes call) {
  const Result<RpcCall> head = RpcCall::parse(call);
  if (!head || head->program != program_) {
    in_use_ = true;
    terms_.alone = false;  // an end may offer more than what is taken for granted: credits do. req: D2005-6.1-2
    return std::nullopt;
  }
  return answer(*head, call.subspan(head->arguments_offset));
}

ConfigMessage ConfigServer::answer(const RpcCall& head, ConstBytes arguments) {
  if (head.version != kConfigVersion) {
    const auto reply = make_error_reply(head.xid, AcceptStat::kProgMismatch);
    std::array<std::byte, 8> range{};
    FixedWriter<8> w{range};
    w.be<0>(kConfigVersion);
    w.be<4>(kConfigVersion);
    return joined(reply, range);
  }
  if (!head.body_is_plain()) return ConfigMessage(make_auth_error_reply(head.xid, AuthStat::kRejectedCred));
  // The null procedure, which every program has (RFC 5531 s12), changes nothing.
  if (head.procedure == 0) return refusal(head.xid, AcceptStat::kSuccess);
  if (head.procedure != kConfigProcedure) return refusal(head.xid, AcceptStat::kProcUnavail);
  const Result<ConfigRequest> request = ConfigRequest::parse(arguments);
  if (!request) return refusal(head.xid, AcceptStat::kGarbageArgs);
  const Result<ConfigTerms> terms = server_terms(own_, *request);
  if (!terms) return refusal(head.xid, AcceptStat::kGarbageArgs);
  // Others use the connection as it is: what was agreed stays. req: D2005-6.1-1
  if (in_use_) return refusal(head.xid, AcceptStat::kSystemErr);
  terms_ = *terms;
  configured_ = true;
  return joined(make_error_reply(head.xid, AcceptStat::kSuccess), config_answer(own_).encode());
}

}  // namespace iwarp::rpcrdma
