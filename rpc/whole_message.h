// A whole RPC message on its way: in octets of its own, or in a RegisteredMemory. Internal to rpc.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "iwarp/rpc/message.h"
#include "iwarp/rpc/registered_memory.h"
#include "iwarp/rpcrdma/buffer_pool.h"

namespace iwarp::rpc {

// Move-only. A Buffer of one in place shares its memory, which goes with the last of them.
class WholeMessage {
 public:
  // None.
  WholeMessage() = default;
  WholeMessage(Octets octets) : octets_(std::move(octets)) {}
  // `head` is written in front of a body in place; else both are copied. `head`: at most RegisteredMemory::kHeadBytes.
  WholeMessage(ConstBytes head, RegisteredOctets body);
  WholeMessage(WholeMessage&&) noexcept = default;
  WholeMessage& operator=(WholeMessage&&) noexcept = default;
  WholeMessage(const WholeMessage&) = delete;
  WholeMessage& operator=(const WholeMessage&) = delete;
  ~WholeMessage() = default;

  [[nodiscard]] MutBytes bytes() { return kept_ ? view_ : MutBytes(octets_); }
  [[nodiscard]] ConstBytes bytes() const { return kept_ ? ConstBytes(view_) : ConstBytes(octets_); }
  [[nodiscard]] std::size_t size() const { return bytes().size(); }
  [[nodiscard]] bool in_place() const { return kept_ != nullptr; }
  // For a Requester or a Responder. Nullopt: there is no memory for it now, or, where it does not fit, ever.
  [[nodiscard]] std::optional<rpcrdma::Buffer> put_into(rpcrdma::BufferPool& pool,
                                                        rpcrdma::BufferPool::Purpose purpose) const;
  [[nodiscard]] bool fits(const rpcrdma::BufferPool& pool, rpcrdma::BufferPool::Purpose purpose) const;

 private:
  Octets octets_;
  std::shared_ptr<std::pmr::vector<std::byte>> kept_;  // of a body in place
  std::shared_ptr<const rpcrdma::LentMemory> whole_;   // likewise: all of its RegisteredMemory
  MutBytes view_{};
};

}  // namespace iwarp::rpc
