#include "iwarp/tirpc/options.h"

#include <algorithm>
#include <cstring>

namespace iwarp::tirpc {
namespace {

// What stands beside the data in a Call or Reply.
constexpr std::size_t kHeads = std::size_t{64} << 10;

Result<std::shared_ptr<const rpcrdma::DeclaredBinding>> binding_of(const rpcrdma_options& o) {
  if (o.bulk_count == 0 || o.bulk == nullptr) return std::shared_ptr<const rpcrdma::DeclaredBinding>();
  auto made = std::make_shared<rpcrdma::DeclaredBinding>();
  for (const rpcrdma_bulk& b : std::span(o.bulk, o.bulk_count)) {
    rpcrdma::BulkItem item{.program = b.prog, .version = b.vers, .procedure = b.proc, .offset = b.offset};
    if (b.in_results != 0) item.where = rpcrdma::BulkItem::Where::kResults;
    if (b.max_bytes != 0) item.max_bytes = b.max_bytes;
    if (b.rest_bytes != 0) item.rest_bytes = b.rest_bytes;
    if (b.element_bytes != 0) item.element_bytes = b.element_bytes;
    if (b.in_union != 0) item.arm = rpcrdma::BulkItem::Arm{b.arm_offset, b.arm_value};
    if (auto added = made->add(item); !added) return added.error();
  }
  return std::shared_ptr<const rpcrdma::DeclaredBinding>(std::move(made));
}

}  // namespace

Result<Settings> read_options(const rpcrdma_options* options) {
  rpcrdma_options o{};
  if (options != nullptr) {
    if (options->size < offsetof(rpcrdma_options, inline_bytes) || options->size > 65536) {
      return make_error(Errc::kInvalidArgument, "rpcrdma_options: the size is not set");
    }
    std::memcpy(&o, options, std::min(options->size, sizeof o));
  }
  if (o.credits > 200) return make_error(Errc::kInvalidArgument, "rpcrdma_options: more than 200 credits");
  if (o.inline_bytes != 0 && (o.inline_bytes < 1024 || o.inline_bytes > 262144 || o.inline_bytes % 1024 != 0)) {
    return make_error(Errc::kInvalidArgument, "rpcrdma_options: inline_bytes is out of range");
  }
  if (o.max_message_bytes > 1u << 30) return make_error(Errc::kInvalidArgument, "rpcrdma_options: 1 GiB at most");
  auto binding = binding_of(o);
  if (!binding) return binding.error();

  Settings out;
  auto& requester = out.client.requester;
  auto& responder = out.server.responder;
  requester.declared = responder.declared = std::move(*binding);
  if (o.credits != 0) requester.credits = responder.credits = o.credits;
  if (o.inline_bytes != 0) requester.inline_bytes = responder.inline_bytes = o.inline_bytes;
  if (o.max_message_bytes != 0) {
    requester.max_reply_bytes = responder.max_call_bytes = std::max<std::size_t>(o.max_message_bytes, kHeads);
    // Four of them at a time, at least.
    const std::size_t memory = 4 * (requester.max_reply_bytes + kHeads);
    out.client.memory_bytes = std::max(out.client.memory_bytes, memory);
    out.server.memory_bytes = std::max(out.server.memory_bytes, memory);
  }
  out.client.retransmit = o.once == 0;
  if (o.timeout_ms != 0) out.timeout = std::chrono::milliseconds(o.timeout_ms);
  if (o.no_crc != 0) out.policy.crc = mpa::Policy::Crc::kPreferOff;
  if (o.rpcbind_socket != nullptr) out.rpcbind_socket = o.rpcbind_socket;
  return out;
}

}  // namespace iwarp::tirpc
