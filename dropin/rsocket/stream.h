// The connected end of an rsocket: its queue pair, its buffers, and the protocol of wire.h. It never waits. Guarded by
// the lock of its socket, but for the bell, which rings in any thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dropin/rsocket/receive_buffer.h"
#include "dropin/rsocket/send_ring.h"
#include "dropin/rsocket/wire.h"
#include "iwarp/cm/link.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin::rsockets {

// What the options of a socket say of its stream.
struct Sizes {
  std::uint32_t send_octets = 1 << 17;
  std::uint32_t receive_octets = 1 << 17;
  std::uint16_t send_requests = 384;
  std::uint16_t receive_requests = 384;  // messages with data that the peer may have under way
  std::uint32_t mappings = 0;            // regions that the peer may map here
};

class Stream {
 public:
  // Limits of Sizes; what lies beyond counts as the nearer of them.
  static constexpr std::uint32_t kLeastOctets = 4096, kMostOctets = 1U << 30;
  static constexpr std::uint16_t kLeastRequests = 16, kMostRequests = 0xFFFE;
  // Regions that the peer may map in any case: a program that says how many only after rlisten() may have been
  // connected to by then.
  static constexpr std::uint32_t kLeastMappings = 16;
  // Free octets of the send ring from which on the socket is writable.
  static constexpr std::size_t kLowWater = 2048;

  // `rung`: called in any thread, maybe with a lock of the layers below held, when something has completed: process()
  // is to be called. It must not throw, and not call in here. Throws std::bad_alloc, std::system_error.
  Stream(const Sizes& sizes, std::function<void()> rung);
  // The peer gets what was sent, as far as it has completed; the end follows behind the scenes.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& queue_pair() const { return link_.qp(); }
  // Thread-safe by itself.
  [[nodiscard]] verbs::CompletionQueue& queue() { return queue_; }
  // For the private data of this end.
  [[nodiscard]] ConnectionData connection_data() const;
  // That of the peer. To be called before process().
  void set_peer(const ConnectionData& peer);
  // From here on it sends: the connection stands.
  void open();
  // The connection is over. 0: in order; else an errno value.
  void end(int error);

  // Takes what has completed, and sends what is owed. Whether anything has changed.
  bool process();

  // --- Sending.
  // Writes as much of `octets` as can be now, with their messages; how much. 0: there is no room, or can_never_send().
  std::size_t send(ConstBytes octets);
  // Whether some of any data would be sent.
  [[nodiscard]] bool can_send() const;
  // An errno value, where nothing can be sent any more; 0.
  [[nodiscard]] int why_not_send() const;
  // Requests that were posted to the send queue so far, and those of them that have completed: TCP has them.
  [[nodiscard]] std::uint64_t posted() const { return completed_ + data_requests_ + control_requests_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

  // --- Receiving.
  [[nodiscard]] std::size_t readable() const { return received_.readable(); }
  // Copies octets that wait, from the one with number `skip` on; how many. It leaves them.
  std::size_t peek(MutBytes to, std::size_t skip) const;
  // The first `octets` are done with. Precondition: as many wait.
  void read(std::size_t octets) { received_.read(octets); }
  // Whether nothing will come any more but what waits.
  [[nodiscard]] bool at_end() const { return !reads_ || !peer_writes_ || over_; }

  // --- Ends.
  // This end sends nothing more, or takes nothing more; tells the peer so.
  void shut(bool reading, bool writing);
  [[nodiscard]] bool reads() const { return reads_; }
  [[nodiscard]] bool writes() const { return writes_; }
  [[nodiscard]] bool peer_writes() const { return peer_writes_; }
  [[nodiscard]] bool over() const { return over_; }
  // Nothing passes in either direction any more.
  [[nodiscard]] bool disconnected() const { return over_ || (!peer_takes_ && !peer_writes_) || (!reads_ && !writes_); }
  // Why it has failed, an errno value, told once; 0.
  [[nodiscard]] int take_error() { return std::exchange(error_, 0); }
  [[nodiscard]] int error() const { return error_; }

  // --- Mapped memory.
  // The peer may write `memory` from now on, and is told so as soon as can be: there it lies at `offset`. An errno
  // value: ENOMEM, the peer's table is full.
  [[nodiscard]] int map(MutBytes memory, std::uint64_t offset);
  // False: it is not mapped so. The peer is not told.
  [[nodiscard]] bool unmap(MutBytes memory);
  // Whether the peer has been told of all.
  [[nodiscard]] bool told_all_maps() const { return maps_to_tell_.empty(); }
  // Writes as much of `octets` as can be now to where the peer has mapped `offset`; how much.
  std::size_t write_mapped(ConstBytes octets, std::uint64_t offset);
  // Whether the peer has mapped memory there.
  [[nodiscard]] bool peer_maps(std::uint64_t offset) const { return find_peer_map(offset) != nullptr; }
  // Whether a write to mapped memory would find room.
  [[nodiscard]] bool can_write_mapped() const;

 private:
  struct Bell final : verbs::Notifier {
    explicit Bell(std::function<void()> what) : rung(std::move(what)) {}
    void notify(verbs::CompletionQueue& /*cq*/) noexcept override;
    std::function<void()> rung;
    std::atomic<bool> armed{false};
  };
  struct Map {
    MutBytes memory;
    verbs::MemoryRegion region;  // empty: the place is free
    std::uint64_t offset = 0;
  };

  [[nodiscard]] bool take_all();
  void take(const verbs::Completion& done);
  void complete(std::size_t& of, std::size_t requests);
  void take_message(std::uint32_t word);
  void look_for_grants();
  void repost();
  void give_credits();
  void tell_maps();
  void fail(int error);
  [[nodiscard]] bool post(std::span<const verbs::SendWr> list);
  [[nodiscard]] bool post_control(const Message& message);
  [[nodiscard]] bool may_send_message(unsigned requests) const;
  [[nodiscard]] const Mapping* find_peer_map(std::uint64_t offset) const;
  [[nodiscard]] verbs::SendWr write_from_ring(ConstBytes octets, const Buffer& to);

  const Sizes sizes_;
  Bell bell_;
  const verbs::ProtectionDomain pd_;
  verbs::CompletionQueue queue_;
  std::unique_ptr<std::byte[]> send_memory_, receive_memory_, table_, words_;
  verbs::MemoryRegion send_region_, receive_region_, table_region_, words_region_;
  cm::Link link_;  // goes before what it reads and writes

  bool known_ = false;  // the peer's data are
  bool open_ = false;
  ConnectionData peer_;

  SendRing ring_;
  std::size_t data_requests_ = 0, control_requests_ = 0;  // of the send queue, under way
  std::uint64_t completed_ = 0;                           // of them
  std::uint16_t sent_ = 0, may_send_ = 0;                 // messages, modulo 2^16
  std::array<Buffer, kGrants> granted_{};                 // by the peer, in turn
  std::size_t granted_now_ = 0;                           // the one that is written to

  ReceiveBuffer received_;
  std::vector<std::uint32_t> to_repost_;  // receives, by their words
  std::uint16_t credits_due_;             // messages read, from which on credits are given
  std::size_t grant_to_ = 1;              // entry of the peer's table that the next buffer is granted in

  std::vector<Map> maps_;
  std::deque<std::size_t> maps_to_tell_;
  std::vector<Mapping> peer_maps_;

  bool reads_ = true, writes_ = true;            // this end
  bool peer_writes_ = true, peer_takes_ = true;  // the other one
  bool over_ = false;
  int error_ = 0;
};

}  // namespace iwarp::dropin::rsockets
