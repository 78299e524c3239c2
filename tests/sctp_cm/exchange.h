// What both ends do on a session over SCTP so that nothing can be lost, changed or out of order unseen: rounds of an
// RDMA Write, a Send and an RDMA Read each way at the same time. interop/guest/sctp_exchange.py is the other end where
// the kernel's SCTP carries it, and says how the messages look. One thread, that of a manual engine.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "iwarp/sctp_cm/connection.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/memory_region.h"

namespace iwarp::sctp_cm {

// Octets that differ at every place and with every seed. Up to 65,536.
[[nodiscard]] std::vector<std::byte> exchange_pattern(std::uint32_t seed, std::size_t octets);

class Exchange {
 public:
  // Something was lost, came out of order, has other octets, or a request has failed.
  struct Failure : std::runtime_error {
    using runtime_error::runtime_error;
  };
  static constexpr std::size_t kCompletions = 256;  // room of the queue for each Exchange

  // Completions in `cq` name it in `user`: give them to on_completion().
  Exchange(verbs::CompletionQueue& cq, const verbs::ProtectionDomain& pd, sctp::Role role, std::uint32_t rounds);
  ~Exchange() { qp_->abort(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  // Private data of its Initiate or Accept.
  [[nodiscard]] std::vector<std::byte> hello() const;
  void on_established(const Error& error, std::shared_ptr<Connection> connection);
  void on_completion(const verbs::Completion& c);
  // Goes on; throws what was found, also inside on_established() and on_completion().
  void step();

  // All rounds of both ends are done and right.
  [[nodiscard]] bool complete() const { return said_done_ && heard_done_; }
  // And the session has ended in order.
  [[nodiscard]] bool over() const { return over_; }
  // The peer's Hello says that it is to break a rule, in place of rounds: the session has ended, or ends, with a
  // Terminate of this end's.
  [[nodiscard]] bool faulty() const { return peer_rounds_ == kFaulty; }
  // Rounds of the peer so far.
  [[nodiscard]] std::uint32_t taken() const { return taken_; }
  // Null before it is established.
  [[nodiscard]] const std::shared_ptr<Connection>& connection() const { return connection_; }

 private:
  struct Piece {
    std::size_t at = 0;  // in memory_
    std::size_t octets = 0;
  };
  [[nodiscard]] MutBytes memory(const Piece& piece) { return MutBytes(memory_).subspan(piece.at, piece.octets); }
  [[nodiscard]] verbs::Sge sge(const Piece& piece) const { return local_.sge(piece.at - kShared, piece.octets); }
  void check(bool holds, const std::string& what) const;
  void post(const verbs::SendWr& wr);
  void receive(std::size_t inbox);
  void begin_round();
  void say(std::uint8_t kind, std::uint32_t round);
  void on_message(ConstBytes message);
  void on_data(std::uint32_t round, std::uint32_t written, ConstBytes text);
  void on_read();
  void on_end(const stream::Disconnected& how);

  static constexpr std::uint32_t kFaulty = 0xFFFFFFFF;
  static constexpr std::size_t kSlots = 4, kSlotBytes = 65536, kHeadBytes = 16, kMostText = 20000;
  static constexpr std::size_t kMessageBytes = kHeadBytes + kMostText, kInboxes = 2 * kSlots + 2;
  // In memory_: the slots that the peer writes and the one that it reads; then sinks of Reads, sources of Writes and of
  // Sends, and inboxes.
  static constexpr std::size_t kReadable = kSlots * kSlotBytes, kShared = kReadable + kSlotBytes;
  static constexpr std::size_t kSinks = kShared, kSources = kSinks + kSlots * kSlotBytes;
  static constexpr std::size_t kTexts = kSources + kSlots * kSlotBytes;
  static constexpr std::size_t kInbox = kTexts + kSlots * kMessageBytes;

  const std::uint32_t side_, rounds_;  // side 0: active
  std::vector<std::byte> memory_;
  verbs::MemoryRegion shared_, local_;
  std::shared_ptr<verbs::QueuePair> qp_;
  std::shared_ptr<Connection> connection_;
  std::vector<verbs::Completion> early_;  // came before on_established()
  std::uint32_t peer_rounds_ = 0;
  Stag peer_stag_{};
  std::uint64_t peer_to_ = 0;
  std::uint32_t begun_ = 0, sent_ = 0, acknowledged_ = 0, read_ = 0, taken_ = 0;
  bool said_done_ = false, heard_done_ = false, over_ = false;
};

}  // namespace iwarp::sctp_cm
