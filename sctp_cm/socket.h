// A socket of usrsctp, owned, with the settings that iwarp wants; and the only place, with stack.cc, that knows the
// library. It is process-global state behind a C interface: one thread calls it, that of the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"
#include "iwarp/sctp_cm/options.h"
#include "iwarp/sctp_cm/peers.h"
#include "iwarp/sctp_cm/transport.h"
#include "iwarp/verbs/fork_guard.h"

struct socket;  // of usrsctp

namespace iwarp::sctp_cm {

class Socket {
 public:
  // What has come out of a socket.
  struct Data {
    sctp::StreamId stream{};
    std::uint32_t ppid = 0;
    bool ordered = false;
    std::size_t bytes = 0;
    bool last = false;  // of the message
  };
  struct Up {
    std::uint16_t inbound, outbound;
  };
  struct Indication {
    std::uint32_t value;
  };
  struct Dry {};  // all that was sent then has arrived: what was sent since may not have
  struct Over {
    Error why;
  };
  struct Other {};  // nothing that matters
  struct Empty {};  // nothing is there now
  using Read = std::variant<Data, Up, Indication, Dry, Over, Other, Empty>;

  // Who is told that something has happened to a socket: during a call of the library, so only note it.
  using Upcall = void (*)(struct socket*, void*, int);

  Socket() = default;
  // A new one, with the settings.
  [[nodiscard]] static Result<Socket> make(const TransportOptions& options);
  // One that was accepted.
  explicit Socket(struct socket* accepted) : so_(accepted) {}
  Socket(Socket&& other) noexcept : so_(std::exchange(other.so_, nullptr)) {}
  Socket& operator=(Socket&& other) noexcept;
  // Aborts what is not over.
  ~Socket() { close(); }
  void close();
  explicit operator bool() const { return so_ != nullptr; }

  void set_upcall(Upcall upcall, void* who);
  [[nodiscard]] Result<void> connect(Handle peer, std::uint16_t own_port, std::uint16_t peer_port);
  [[nodiscard]] Result<void> listen(std::uint16_t own_port);
  // The next association that is there; nullopt: none.
  [[nodiscard]] std::optional<std::pair<Socket, Handle>> accept();
  // As Transport::send().
  [[nodiscard]] Result<bool> send(sctp::StreamId stream, sctp::Ppid ppid, bool unordered, ConstBytes message);
  // Whether send() has room.
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] Read read(MutBytes into);
  // TransportOptions::packet_bytes of associations that are accepted from now on.
  void set_packet_bytes(std::uint16_t octets);
  [[nodiscard]] std::size_t fragmentation_point() const;
  // Whether nothing that was sent is under way, at this moment. What comes is no part of it.
  [[nodiscard]] bool all_arrived() const;
  void shutdown();
  // Ends at once; `why` for the peer. The socket is closed.
  void abort(const char* why);

 private:
  struct socket* so_ = nullptr;
  verbs::ForkGuard process_;  // in a forked child the library is left alone
};

}  // namespace iwarp::sctp_cm
