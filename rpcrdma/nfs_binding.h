// Upper-Layer Binding of NFS versions 2, 3, 4.0, 4.1 and 4.2 (RFC 8267): which octets of an RPC message may travel as
// chunks. Small iterative walkers over the XDR of calls and results that stop at the last DDP-eligible item; they
// neither copy nor allocate nor trust a length. An operation they do not know, or malformed XDR, ends the walk: nothing
// more is reduced, which is always allowed. RPCSEC_GSS integrity or privacy has no items, nor have other programs but
// what is declared for them (declared_binding.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/declared_binding.h"
#include "iwarp/rpcrdma/small_vector.h"

namespace iwarp::rpcrdma {

inline constexpr std::uint32_t kNfsProgram = 100003;

// One DDP-eligible opaque: file data of READ and WRITE, the path of READLINK, SYMLINK and CREATE(NF4LNK). Its count
// word stays in the message.
struct DdpItem {
  std::size_t offset = 0;  // of the first data octet in the message walked
  std::uint64_t position =
      0;  // the same in the unreduced message: differs behind items declared absent. The Position of its Read chunk
  std::uint32_t length = 0;   // octets of data, without XDR padding; may be 0
  std::uint32_t ordinal = 0;  // this is the n-th item, from 0
  bool in_message = false;    // data and padding lie wholly inside the message. False for reduced or malformed messages

  // Octets the item takes in an unreduced message.
  [[nodiscard]] std::uint64_t padded_length() const { return (std::uint64_t{length} + 3) & ~std::uint64_t{3}; }
  friend constexpr bool operator==(const DdpItem&, const DdpItem&) = default;
};

using DdpItems = SmallVector<DdpItem, 4>;

// What of a Call is needed to find the items of its Reply. A small value; the Call's bytes may vanish.
class ResultBinding {
 public:
  // What the Call says about one result item, in the order of the operations.
  struct Expectation {
    enum class Kind : std::uint8_t { kRead, kReadlink };
    Kind kind = Kind::kRead;
    std::uint32_t max_bytes = 0;  // count of a READ; of READLINK 1024 in NFSv2, else 0: its Call does not say

    friend constexpr bool operator==(const Expectation&, const Expectation&) = default;
  };
  static constexpr std::size_t kMaxExpectations = 4;

  // A binding without items: every other program, malformed or protected Calls.
  ResultBinding() = default;
  // `call` is the whole, unreduced RPC message. `declared`: of other programs, or null.
  [[nodiscard]] static ResultBinding for_call(ConstBytes call, const DeclaredBinding* declared = nullptr);
  // Whether it is known what items the Reply may have: that of NFS, unless it is protected, and of what was declared.
  [[nodiscard]] bool known() const { return known_; }
  // Of a declared item: most octets of the results, the item included.
  [[nodiscard]] std::optional<std::size_t> declared_bytes() const;

  // READ and READLINK operations of the Call, as many as the walk reached: no Reply is reduced in more items than this.
  [[nodiscard]] std::size_t max_items() const { return max_items_; }
  // The i-th of them. Precondition: i < min(max_items(), kMaxExpectations).
  [[nodiscard]] const Expectation& expectation(std::size_t i) const { return expectations_[i]; }
  // All items that lie inside the unreduced `reply`, in order, at most `limit`.
  [[nodiscard]] DdpItems items(ConstBytes reply, std::size_t limit = 16) const;
  // The Call has a CREATE_SESSION, as far as the walk reached: its Reply tells of a session.
  [[nodiscard]] bool creates_session() const { return creates_session_; }

 private:
  friend class ResultWalker;
  enum class Shape : std::uint8_t { kNone, kV2Read, kV2Readlink, kV3Read, kV3Readlink, kV4Compound, kDeclared };

  Shape shape_ = Shape::kNone;
  bool known_ = false;
  bool creates_session_ = false;
  std::uint32_t max_items_ = 0;
  std::array<Expectation, kMaxExpectations> expectations_{};
  std::optional<BulkItem> declared_{};
};

// The part both walkers share: the bytes, where we are, and the item whose data has not been stepped over yet.
struct ItemScan {
  explicit ItemScan(ConstBytes message) : in(message), size(message.size()) {}

  // Reads a count word and describes the data behind it; nullopt if even the count is missing, or there is no such.
  [[nodiscard]] std::optional<DdpItem> describe();
  // Steps over the item described last, if it is still pending. False if its data does not fit.
  bool finish_pending();
  void mark_absent();

  ReadCursor in;
  std::size_t size;
  std::uint32_t element_bytes = 1;
  std::uint64_t absent = 0;  // octets of all items declared absent
  std::uint32_t found = 0;
  std::uint64_t pending_octets = 0;  // padded data of the last item, still in front of us
};

// Finds the items of a Call one by one. Whoever walks a reduced Call says with mark_absent() which items travel in
// chunks.
class ArgumentWalker {
 public:
  // `call` must outlive the walker. It may be reduced. `declared`: of other programs than NFS, or null.
  explicit ArgumentWalker(ConstBytes call, const DeclaredBinding* declared = nullptr);
  // The next item; nullopt at the end or where the walk cannot go on.
  [[nodiscard]] std::optional<DdpItem> next();
  // Data and padding of the item just returned are not in the message: the walk goes on right behind its count word.
  // Call at most once per item.
  void mark_absent() { scan_.mark_absent(); }
  // Behind next() that gave nothing: octets that it could not make out, in which there may be items. 0: it has seen
  // all.
  [[nodiscard]] std::size_t unread() const { return broke_off_ ? scan_.in.remaining() : 0; }

 private:
  ItemScan scan_;
  bool broke_off_ = false;
  std::uint32_t ops_left_ = 0;  // operations of a COMPOUND not yet walked
  bool single_ = false;         // the message is walked up to its only item, which next() has to return
  bool create_tail_ = false;    // the pending item is followed by the rest of a CREATE
};

// Finds the items of a Reply one by one; `binding` belongs to its Call. Whoever rebuilds a reduced Reply calls
// mark_absent() for each item whose octets came by RDMA Write.
class ResultWalker {
 public:
  // `reply` must outlive the walker. It may be reduced.
  ResultWalker(const ResultBinding& binding, ConstBytes reply);
  [[nodiscard]] std::optional<DdpItem> next();
  void mark_absent() { scan_.mark_absent(); }
  // As that of ArgumentWalker.
  [[nodiscard]] std::size_t unread() const { return broke_off_ ? scan_.in.remaining() : 0; }

 private:
  ItemScan scan_;
  bool broke_off_ = false;
  std::uint32_t ops_left_ = 0;
  std::uint32_t items_left_ = 0;  // no more items can come: the walk stops early
  bool single_ = false;
};

// Lowers the back channel's sizes (ca_maxrequestsize, ca_maxresponsesize and
// ca_maxresponsesize_cached) in the arguments of a CREATE_SESSION Call, in
// place. Returns whether there is one.
bool clamp_back_channel(MutBytes call, std::uint32_t limit);

}  // namespace iwarp::rpcrdma
