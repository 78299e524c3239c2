// Receiving order of one direction of a DDP Stream Session: messages come unordered from SCTP and leave in the order of
// their DDP-SSN, each once (RFC 5043 s10). What comes early is kept until the messages before it are there, within two
// bounds that are checked before anything is allocated: how far ahead it is, and the octets that all sessions of an
// association keep together. Of a message whose payload is in its place already only the front is kept. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"
#include "iwarp/sctp/chunk.h"

namespace iwarp::sctp {

// What the sessions of one association keep of early messages, together. Outlives their windows.
class HoldBudget {
 public:
  // Default: more than 4096 messages of an Ethernet frame each.
  static constexpr std::size_t kDefaultBytes = std::size_t{8} << 20;

  // `limit`: octets, each message with what its keeping costs beside.
  explicit HoldBudget(std::size_t limit = kDefaultBytes) : limit_(limit) {}
  // False: there is no room, and nothing has changed.
  [[nodiscard]] bool take(std::size_t bytes);
  // Precondition: so many are taken.
  void give_back(std::size_t bytes);
  // Octets that are taken.
  [[nodiscard]] std::size_t held() const { return held_; }
  // Octets that can be taken.
  [[nodiscard]] std::size_t limit() const { return limit_; }

 private:
  std::size_t limit_;
  std::size_t held_ = 0;
};

// A message as SCTP gave it.
struct Message {
  std::uint32_t ppid = 0;  // as received: a peer may send any
  bool ordered = false;    // its chunks had U=0, which RFC 5043 s10 forbids
  ConstBytes bytes{};      // DDP-SSN first; without the octets that are `placed`
  std::size_t placed = 0;  // octets at its end that are in their place already (RFC 5041 s5.3)
};

class SsnWindow {
 public:
  // How far ahead a message may be, less one. A sender has at most 32767 under way (RFC 5043 s10), and by default SCTP
  // implementations have far fewer chunks outstanding; a sender with more than 4095 messages under way while an early
  // one is missing loses its session.
  static constexpr std::uint16_t kDefaultAhead = 4096;
  // Beside its octets, about; with what is to be known of those that are placed (session/early_placement.h).
  static constexpr std::size_t kHoldOverheadBytes = 192;

  // At the beginning of a session: 0 is due. `budget` outlives this. Precondition: 1 <= ahead <= 32767.
  explicit SsnWindow(HoldBudget& budget, std::uint16_t ahead = kDefaultAhead) : budget_(&budget), ahead_(ahead) {}
  // Gives back to the budget what it has from there.
  ~SsnWindow() { clear(); }
  SsnWindow(const SsnWindow&) = delete;
  SsnWindow& operator=(const SsnWindow&) = delete;

  // Where in the order a message stands that take() would keep, as far as it is not the budget that forbids it: the
  // number of those before it since the session began. nullopt: it is due, was there already, or cannot be taken.
  [[nodiscard]] std::optional<std::uint64_t> early(const Message& message) const;
  // A message has come. True: it was due, and is now taken for delivered: handle it, then what next() gives. False: it
  // is kept. Errors: kSessionSequence (no DDP-SSN), kDdpSsn (it was there already, or is too far ahead), kResource (the
  // budget is used up); the window is as before then.
  [[nodiscard]] Result<bool> take(const Message& message);
  // The next message that was kept and is due now; nullopt: none is there yet. Its octets are valid until the next call
  // of next() or clear().
  [[nodiscard]] std::optional<Message> next();
  // Drops what is kept.
  void clear();

  // The DDP-SSN that is due.
  [[nodiscard]] DdpSsn due() const { return DdpSsn{static_cast<std::uint16_t>(taken_)}; }
  // Messages that are kept.
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }

 private:
  struct Kept {
    std::uint32_t ppid;
    bool ordered;
    std::vector<std::byte> bytes;
    std::size_t placed;
  };
  [[nodiscard]] static std::size_t cost(std::size_t message_bytes) { return message_bytes + kHoldOverheadBytes; }

  HoldBudget* budget_;
  std::uint16_t ahead_;
  std::uint64_t taken_ = 0;             // messages taken for delivered: the DDP-SSN that is due, without its wrap
  std::map<std::uint16_t, Kept> kept_;  // by DDP-SSN
  std::vector<std::byte> given_;        // by the last next()
};

// Sending order: DDP-SSNs without gaps, and the bound on messages under way. A DDP-SSN is drawn when SCTP has taken the
// message that bears it, so that one that SCTP would not take leaves no gap.
class SsnSource {
 public:
  // RFC 5043 s10. The sockets API tells only when nothing is under way any more; a sender that is never so idle pauses
  // here once in 32767 messages.
  static constexpr std::uint16_t kMaxUnderWay = 32767;

  // That of the next message.
  [[nodiscard]] DdpSsn next() const { return next_; }
  // Whether one more may be given to SCTP.
  [[nodiscard]] bool may_send() const { return under_way_ < kMaxUnderWay; }
  // SCTP has taken the message with next(). Precondition: may_send().
  void taken();
  // The oldest `messages` of those under way are known to have arrived; more than there are means all.
  void arrived(std::size_t messages);
  // Messages that are not known to have arrived.
  [[nodiscard]] std::uint16_t under_way() const { return under_way_; }

 private:
  DdpSsn next_;
  std::uint16_t under_way_ = 0;
};

}  // namespace iwarp::sctp
