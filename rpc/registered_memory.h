// Registered memory for programs (draft-ietf-nfsv4-rpcrdma-01 s7): arguments and results that are built in it are sent
// from where they lie, by Client and Server, without a copy.
//
//   RegisteredMemory memory(64u << 20);                  // before the Engine, so that it goes after
//   std::pmr::vector<std::byte> arguments(8 + (1u << 20), &memory);
//   ...                                                  // XDR: a word, a count word, data read from a file, say
//   co_await client.async_call(kPut, RegisteredOctets(std::move(arguments)), {}, boost::asio::use_awaitable);
//
// Each connection that sends from it registers it once, for its own use; no peer reaches it by that. What a Call
// exposes is the piece of it that travels in chunks, under a fresh STag, until the RPC is over (RFC 8166 s4.4.1): the
// draft would leave that to the application, here it stays with the library. Results of Calls and arguments of handlers
// come in memory of the connection, as ever: Reply::results() and Call::arguments() are no copies either.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/buffer_pool.h"

namespace iwarp::rpc {

// One piece of memory, and an allocator in it. It is meant for octets, long and few: each allocation costs up to 1 KiB
// more, room for the RPC header in front of it, and a look at those there are. Any alignment, which adds to that; what
// asks for less gets 64. Thread-safe.
//
// It has no other bound than its size: a client that does not read its Replies holds the results of as many Calls as it
// has credits until its connection ends, and so keeps them from others. Results of up to a quarter of
// ServerOptions::remembered_bytes are copied as well, for Calls that come again.
class RegisteredMemory final : public std::pmr::memory_resource {
 public:
  // In front of each allocation: the longest head of an RPC Call, with credential and verifier of 400 octets each (RFC
  // 5531 s8.2, s9), and a bit.
  static constexpr std::size_t kHeadBytes = 896;

  // Of so many octets, in whole pages, which cost nothing before they are touched. It never grows: beyond it, and for
  // more than 4 GiB less 4 KiB at a time, allocate() throws std::bad_alloc. So does this, where the system gives none.
  explicit RegisteredMemory(std::size_t bytes);
  // Precondition: everything came back. A Call holds its arguments until it is over; one that was cancelled, that is
  // one-way, or whose time was up, until the server answers it, or its connection has ended and no Reply of that is
  // held any more. All are back when Clients, Servers, Replies and the Engine have gone. Pages go back to the system
  // now, the addresses with the connections that have sent from them.
  ~RegisteredMemory() override;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // Octets there are.
  [[nodiscard]] std::size_t size_bytes() const { return whole_->bytes.size(); }
  // Octets that are not free, with what their allocations cost more. 0: everything came back.
  [[nodiscard]] std::size_t in_use_bytes() const;

 private:
  friend class WholeMessage;
  struct Piece {
    std::size_t size = 0;
    bool used = false;
  };

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  const std::shared_ptr<const rpcrdma::LentMemory> whole_;
  mutable std::mutex mu_;
  std::map<std::size_t, Piece> pieces_;  // by offset: all of it; of two neighbours one is in use
  std::size_t in_use_ = 0;
};

// XDR on its way, a multiple of 4 octets: the arguments of a Call, or the results of an Answer. Move-only.
class RegisteredOctets {
 public:
  // Takes `octets` over. In place if their memory is a RegisteredMemory's; of any other resource they are sent all the
  // same, copied.
  explicit RegisteredOctets(std::pmr::vector<std::byte> octets);
  // Takes them over; nothing is left.
  RegisteredOctets(RegisteredOctets&& other) noexcept = default;
  // The same; what this one had goes.
  RegisteredOctets& operator=(RegisteredOctets&& other) noexcept = default;
  RegisteredOctets(const RegisteredOctets&) = delete;
  RegisteredOctets& operator=(const RegisteredOctets&) = delete;

  // They. Valid as long as this object is not moved from.
  [[nodiscard]] ConstBytes bytes() const { return octets_ ? ConstBytes(*octets_) : ConstBytes{}; }
  // Whether they are sent from where they lie.
  [[nodiscard]] bool in_place() const { return octets_ != nullptr && memory_ != nullptr; }

 private:
  friend class WholeMessage;
  std::shared_ptr<std::pmr::vector<std::byte>> octets_;  // a vector that moves leaves its memory resource
  RegisteredMemory* memory_ = nullptr;
};

}  // namespace iwarp::rpc
