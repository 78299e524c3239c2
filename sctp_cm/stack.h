// SCTP in this process: usrsctp behind our own UDP sockets and io_context (RFC 6951). usrsctp keeps its state in global
// variables, so a process has one Stack at a time; where there is one, make() says so. Everything happens in the thread
// that runs the io_context: calls, handlers, timers; usrsctp keeps a thread of its own, which sleeps but for the
// bookkeeping of addresses.
//
// What comes from the network meets, in this order: the floor and ceiling of a packet, its CRC-32C, the chunks that DDP
// needs (is_plain()), the table of known peers, the place that an INIT takes among those that ask, the limit of
// associations, and only then SCTP. An INIT and all that answers nobody costs no memory in SCTP.
//
// Not to be used after fork() in the child: make() and connect() refuse there, and destructors leave alone what the
// parent has.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "iwarp/sctp_cm/association.h"
#include "iwarp/sctp_cm/options.h"
#include "iwarp/sctp_cm/packet.h"
#include "iwarp/sctp_cm/peers.h"
#include "iwarp/sctp_cm/udp_port.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::sctp_cm {

class Stack;

// A passive end. It stops listening when it goes; associations that it has accepted go on.
class AssociationListener {
 public:
  // The association is up: set_user() of it at once, or it is aborted.
  using Handler = std::function<void(std::shared_ptr<Association>)>;

  ~AssociationListener();
  AssociationListener(const AssociationListener&) = delete;
  AssociationListener& operator=(const AssociationListener&) = delete;
  // Of UDP.
  [[nodiscard]] const boost::asio::ip::udp::endpoint& local() const { return port_->local(); }
  [[nodiscard]] std::uint16_t sctp_port() const { return sctp_port_; }
  // TransportOptions::packet_bytes of associations that come from now on; 576 to kMaxPacketBytes.
  void set_packet_bytes(std::uint16_t octets) { socket_.set_packet_bytes(octets); }

 private:
  friend class Stack;
  AssociationListener(Stack& stack, UdpPort& port, std::uint16_t sctp_port, Socket socket, Handler handler)
      : stack_(&stack), port_(&port), sctp_port_(sctp_port), socket_(std::move(socket)), handler_(std::move(handler)) {}

  Stack* stack_;
  UdpPort* port_;
  std::uint16_t sctp_port_;
  Socket socket_;
  Handler handler_;
};

class Stack {
 public:
  using udp = boost::asio::ip::udp;

  // What was seen, for tests and for whoever looks for a fault.
  struct Counters {
    std::uint64_t packets = 0;       // that came
    std::uint64_t malformed = 0;     // shorter or longer than a packet can be, or with a first chunk that is
    std::uint64_t bad_checksum = 0;  // dropped: SCTP packets of another protocol, or damaged
    std::uint64_t not_plain = 0;     // dropped: with chunks that DDP does not need, or an INIT of a known peer
    std::uint64_t inits = 0;         // of peers that are not known
    std::uint64_t no_such_peer = 0;  // cookies of nobody that has asked and been answered, or beyond max_associations,
                                     // or beyond max_associations + max_asking within two lives of a cookie
    std::uint64_t elsewhere = 0;  // dropped: INITs and cookies for a listener's SCTP port that is not this UDP port's
    std::uint64_t blue = 0;       // of nobody that is known, given to SCTP for an answer
    std::uint64_t blue_dropped = 0;  // likewise, beyond the limit
    std::uint64_t bad_cookies = 0;   //
    std::uint64_t accepted = 0, connected = 0;
  };

  // Errors: kResource (this process has one already), kInvalidArgument (options). `io` outlives it.
  [[nodiscard]] static Result<std::unique_ptr<Stack>> make(boost::asio::io_context& io, const StackOptions& options);
  // Aborts all associations; nobody is told. Listeners are to go before.
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Listens at a UDP address, with an SCTP port behind it (0: the number of the UDP port). Errors: kSystem (with what
  // to do about it), kInvalidArgument, kResource.
  [[nodiscard]] Result<std::unique_ptr<AssociationListener>> listen(const udp::endpoint& at, std::uint16_t sctp_port,
                                                                    const TransportOptions& options,
                                                                    AssociationListener::Handler handler);
  // Begins an association, from a UDP port of `from` or of any address of this host; `user` hears what comes of it.
  // Errors: kResource (max_associations), kSystem (no such address), kInvalidArgument.
  [[nodiscard]] Result<std::shared_ptr<Association>> connect(
      const udp::endpoint& to, std::uint16_t sctp_port, const TransportOptions& options, TransportUser& user,
      const std::optional<boost::asio::ip::address>& from = std::nullopt);

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const Peers& peers() const { return peers_; }
  [[nodiscard]] std::size_t associations() const { return associations_.size(); }
  [[nodiscard]] boost::asio::io_context& io() { return io_; }

  // --- For associations.
  void mark(Association& association);
  // Packets wait to leave.
  void owe();
  [[nodiscard]] const Peer* find(Handle handle) const { return peers_.find(handle); }
  void on_up(Association& association);
  [[nodiscard]] MutBytes scratch() { return scratch_; }
  // --- For listeners.
  void remove(AssociationListener& listener);

 private:
  struct Port {
    std::unique_ptr<UdpPort> port;
    AssociationListener* listener = nullptr;  // null: of those who connect, or the listener has gone
  };
  struct Held {
    std::shared_ptr<Association> association;
    AssociationListener* from = nullptr;  // who is to hear of it
    bool accepted = false;                // and has not
    std::uint32_t asks_with = 0;          // the Initiate Tag of its INIT; 0: it sends none
  };

  Stack(boost::asio::io_context& io, const StackOptions& options);
  // `connects`: for those who connect, who hear that nobody has the UDP port they speak to.
  [[nodiscard]] Result<UdpPort*> open(const udp::endpoint& at, bool connects);
  void input(UdpPort& port, const udp::endpoint& from, const UdpPort::Address& own, ConstBytes packet);
  void on_init(const Peer& peer, ConstBytes packet);
  void on_cookie(const Peer& peer, std::uint32_t tag, ConstBytes packet);
  void on_stranger(const Peer& peer, ConstBytes packet);
  void on_undelivered(UdpPort& port, const udp::endpoint& to, ConstBytes packet, int error);
  void give(Handle handle, ConstBytes packet);
  void use(Handle handle);
  [[nodiscard]] AssociationListener* listener_of(const Peer& peer) const;
  // Whether those who connect use it.
  [[nodiscard]] bool connects(const UdpPort* port) const;
  // Whether any listener has that SCTP port.
  [[nodiscard]] bool listens(std::uint16_t sctp_port) const;
  // Closes the UDP ports of listeners that have gone which nobody needs any more. Not inside their handlers.
  void close_unused();
  void accept(AssociationListener& listener);
  void settle();
  void tick();
  void arm();
  int output(Handle handle, MutBytes packet);
  static int on_output(void* handle, void* packet, std::size_t bytes, std::uint8_t tos, std::uint8_t df);
  static void on_association(struct socket*, void* who, int);

  static Stack* only_;

  verbs::ForkGuard process_;
  boost::asio::io_context& io_;
  StackOptions options_;
  boost::asio::steady_timer timer_;
  TimePoint ticked_;
  std::optional<TimePoint> armed_;
  bool settling_ = false, owes_ = false;
  std::vector<std::byte> scratch_;
  std::minstd_rand ports_;
  Peers peers_;
  const Peer* stranger_ = nullptr;  // whom kOutOfTheBlue stands for now
  std::list<Port> udp_;
  std::map<boost::asio::ip::address, UdpPort*> out_;  // of those who connect, by address of this end
  std::map<Handle, Held> associations_;
  std::vector<std::weak_ptr<Association>> marked_;
  double blue_allowance_;
  TimePoint blue_since_;
  Counters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::sctp_cm
