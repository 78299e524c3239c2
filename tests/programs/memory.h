// What the memory of a program must hold, and who is using which part of it: half of the model. It knows nothing of how
// octets travel.
//
// What a request will do to memory is entered when it is posted, since the rules of order say what it will be. That is
// sound because uses() are kept until the request is known to be over, and may_use() admits no second use whose outcome
// would depend on which is first (RFC 5040 s5.5 items 3 to 8: "no peeking").
#pragma once

#include <cstdint>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"
#include "tests/programs/program.h"

namespace iwarp::programs {

using Bytes = std::vector<std::byte>;

// A part of a region that something under way reads or writes.
struct Use {
  enum class Kind : std::uint8_t {
    kSource,        // of a Send or Write of the owner
    kSink,          // of a Read or Atomic of the owner
    kReceive,       // of a Receive of the owner
    kRemoteRead,    // source of a Read of the peer
    kRemoteWrite,   // target of a Write of the peer
    kRemoteAtomic,  // target of an Atomic of the peer
  };
  Kind kind;
  std::size_t qp;       // who posted it
  std::size_t request;  // its number in that one's send queue; of a Receive: its id
  std::uint32_t begin, end;
  bool loose = false;  // a sink of which nobody can say what it will hold

  [[nodiscard]] bool writes() const { return kind != Kind::kSource && kind != Kind::kRemoteRead; }
  [[nodiscard]] bool remote() const { return kind >= Kind::kRemoteRead; }
  [[nodiscard]] bool overlaps(std::uint32_t from, std::uint32_t to) const { return begin < to && from < end; }
};

struct Region {
  enum class State : std::uint8_t {
    kValid,
    kDying,  // something under way revokes it: nobody may name it any more
    kDead,
  };
  Bytes octets;  // what it holds, once all that is entered has happened
  State state = State::kValid;
  std::vector<Use> uses;
  Stag stag{};          // as registered last
  ConstBytes actual{};  // the memory itself; empty: there is none to compare with
};

class Memory {
 public:
  explicit Memory(const Setup& setup);

  [[nodiscard]] Region& region(std::size_t qp, std::size_t index) { return regions_[qp * kRegions + index]; }
  [[nodiscard]] const Region& region(std::size_t qp, std::size_t index) const {
    return regions_[qp * kRegions + index];
  }

  // Whether `wanted` may begin while all other uses go on. `fence`: the number of the last request of wanted.qp, up to
  // this one, that waits for earlier Reads (RFC 5040 s5.5 item 12).
  [[nodiscard]] bool may_use(std::size_t qp, std::size_t index, const Use& wanted, std::size_t fence) const;
  // Whether the piece lies in its region.
  [[nodiscard]] bool within(std::size_t qp, const Piece& piece) const;

  // The octets of pieces, one behind the other, and their change.
  [[nodiscard]] Bytes read(std::size_t qp, const std::vector<Piece>& pieces) const;
  void write(std::size_t qp, const std::vector<Piece>& pieces, ConstBytes octets);
  // The same of the memory itself; false in the first octet of `from` that differs. True where there is none.
  [[nodiscard]] bool holds(std::size_t qp, const std::vector<Piece>& pieces, ConstBytes expected) const;
  // Whether each octet is as in one of the two, of equal length; and what is there is what it shall hold from now on.
  [[nodiscard]] bool settle_for(std::size_t qp, const std::vector<Piece>& pieces, ConstBytes one, ConstBytes other);
  // Whether the memory holds what it must from `begin` to `end`, but for what is being written.
  [[nodiscard]] bool holds_but_uses(std::size_t qp, std::size_t index, std::uint32_t begin, std::uint32_t end) const;
  // The first octet of the region that is not what it must be; its size: there is none.
  [[nodiscard]] std::size_t first_difference(std::size_t qp, std::size_t index) const;
  // What the memory holds there is what it shall hold.
  void accept(std::size_t qp, const Piece& piece);

  // Ends the uses for which `over` is true.
  template <class Over>
  void end_uses(const Over& over) {
    for (Region& r : regions_) std::erase_if(r.uses, over);
  }
  [[nodiscard]] std::vector<Region>& all() { return regions_; }

 private:
  std::vector<Region> regions_;
};

}  // namespace iwarp::programs
