// One UDP socket that carries SCTP packets (RFC 6951): reads what has come in batches, and sends what was queued in
// batches, neighbours of one length to one peer with one call (UDP GSO), if the system knows that. No SCTP. One thread:
// that of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"

namespace iwarp::sctp_cm {

// What becomes of a packet on its way out: for tests, which make a bad network of it.
enum class Fate : std::uint8_t { kPass, kLose, kLater, kTwice };
using FateMaker = std::function<Fate(ConstBytes packet)>;

class UdpPort {
 public:
  using udp = boost::asio::ip::udp;
  // Packets that wait for the system, at most: more are lost, as on any network.
  static constexpr std::size_t kMaxWaiting = 1024;
  // Datagrams that are read before others get the thread.
  static constexpr std::size_t kReadBatch = 64;

  using Address = boost::asio::ip::address;
  // `on_packet`: for each packet that comes, with the address of this host that it came to, or an unspecified one where
  // the socket is bound to an address; `on_batch`: behind the last one of those that were there.
  // `undelivered`, if there is one: `packet`, or its front, or nothing of it, did not get to `to`; an errno value says
  // why: ECONNREFUSED, by ICMP, that no program of that host has the UDP port, any other that this host does not send
  // it. It may be called in flush(), and may queue().
  struct Handlers {
    std::function<void(const udp::endpoint& from, const Address& own, ConstBytes packet)> packet;
    std::function<void()> batch;
    std::function<void(const udp::endpoint& to, ConstBytes packet, int error)> undelivered = nullptr;
  };

  // Errors: kSystem, which says what to do about it.
  [[nodiscard]] static Result<std::unique_ptr<UdpPort>> open(boost::asio::io_context& io, const udp::endpoint& at,
                                                             Handlers handlers, FateMaker fate);
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;
  ~UdpPort();

  [[nodiscard]] const udp::endpoint& local() const { return local_; }
  // The octets are copied. flush() sends. `own`: the address of this host that it leaves from; unspecified: as the
  // system chooses, or as the socket is bound.
  void queue(const udp::endpoint& to, ConstBytes packet, const Address& own = {});
  void flush();
  // A moment has passed: what was held back for later goes.
  void tick();
  [[nodiscard]] std::size_t waiting() const { return out_.size(); }
  // Whether the system takes several packets at a time (UDP GSO).
  [[nodiscard]] bool joins() const { return gso_; }

 private:
  struct Packet {
    udp::endpoint to;
    Address own;
    std::vector<std::byte> octets;
  };
  struct Scratch;  // of a batch of datagrams

  UdpPort(boost::asio::io_context& io, Handlers handlers, FateMaker fate);
  void wait_readable();
  void read();
  // What ICMP has told of packets that are out; how many of its messages there were.
  std::size_t read_errors();
  void wait_writable();
  void put(const udp::endpoint& to, const Address& own, ConstBytes packet);
  [[nodiscard]] std::vector<std::byte> spare();
  // Packets from the front that one call can send.
  [[nodiscard]] std::size_t run_length() const;

  udp::socket socket_;
  udp::endpoint local_;
  Handlers handlers_;
  FateMaker fate_;
  std::deque<Packet> out_;
  std::vector<Packet> later_;
  std::vector<std::vector<std::byte>> spares_;  // used up packets
  std::unique_ptr<Scratch> scratch_;
  bool waits_to_write_ = false;
  bool gso_ = false;
  std::size_t alone_ = 0;  // packets at the front that the system does not take together
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::sctp_cm
