// An SCTP association of this end over UDP: a Transport. The stack has it until its end; whoever else keeps it may do
// so for longer. One thread: that of the stack's io_context.
#pragma once

#include <memory>
#include <vector>

#include "iwarp/sctp_cm/peers.h"
#include "iwarp/sctp_cm/socket.h"
#include "iwarp/sctp_cm/transport.h"

namespace iwarp::sctp_cm {

class Stack;

class Association final : public Transport, public std::enable_shared_from_this<Association> {
 public:
  // By the stack.
  Association(Stack& stack, Socket socket, Handle handle, TransportUser* user, TimePoint connect_by);
  Association(const Association&) = delete;
  Association& operator=(const Association&) = delete;
  ~Association() override;

  // Who hears of it from now on, to be set at once by who accepts one. It outlives the association, or leave()s.
  void set_user(TransportUser* user) { user_ = user; }
  // Of UDP, the peer's and this end's; empty when it is over.
  [[nodiscard]] boost::asio::ip::udp::endpoint remote() const;
  [[nodiscard]] boost::asio::ip::udp::endpoint local() const;

  [[nodiscard]] Result<bool> send(sctp::StreamId stream, sctp::Ppid ppid, bool unordered, ConstBytes message) override;
  void hold(bool on) override;
  void shutdown() override;
  void abort(const char* why) override;
  void leave() override;

  // --- For the stack.
  [[nodiscard]] Handle handle() const { return handle_; }
  // Handles what the socket has, within a budget. True: there may be more.
  [[nodiscard]] bool service();
  // Whether on_up() was called.
  [[nodiscard]] bool is_up() const { return told_up_; }
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] bool has_user() const { return user_ != nullptr; }
  // Sends the INIT.
  [[nodiscard]] Result<void> begin(std::uint16_t own_port, std::uint16_t peer_port);
  // Hears of news from here on.
  void listen_to(Socket::Upcall upcall) { socket_.set_upcall(upcall, this); }
  // connect_by() has passed.
  void give_up();
  // Its INIT cannot be delivered. It ends, told later; no-op when it is up or over.
  void refuse(const Error& why);
  // nullopt: there is none.
  [[nodiscard]] std::optional<TimePoint> connect_by() const;
  // The stack goes; nothing is told.
  void orphan();
  // It is on the list of those with something to do.
  bool marked = false;

 private:
  void tell_up();
  void end(const Error& why);
  void take(const Socket::Data& data);

  Stack* stack_;
  Socket socket_;
  Handle handle_;
  TransportUser* user_;
  TimePoint connect_by_;
  std::optional<TransportUp> up_;
  std::optional<Error> ending_;  // asked for here, to be told
  std::vector<std::byte> partial_;
  bool told_up_ = false, held_ = false, wants_room_ = false, over_ = false, shut_ = false;
};

}  // namespace iwarp::sctp_cm
