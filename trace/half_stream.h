// One direction of an MPA byte stream as an observer sees it: startup frame, then FPDUs (RFC 5044), with what a capture
// lost in between. Unlike a receiver's decoder it goes on behind errors. Nothing is checked that needs the other
// direction. Not thread-safe.
//
// Contract: after each of feed(), lose() and close() call next() until it gives nothing. Spans in an item are valid
// until the next call. Memory: what one FPDU needs; three FPDUs of the largest size while the alignment is searched.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/mpa/startup_frame.h"

namespace iwarp::trace {

class HalfStream {
 public:
  struct Startup {
    mpa::StartupFrame frame;
  };
  enum class Crc : std::uint8_t { kGood, kBad, kOff, kUnknown };  // kUnknown: octets of the FPDU are missing
  struct Fpdu {
    ConstBytes ulpdu{};           // as much of its beginning as was captured
    std::size_t ulpdu_bytes = 0;  // what its length field says
    std::size_t seen_bytes = 0;   // octets of the whole FPDU that were captured
    Crc crc = Crc::kOff;
    std::uint32_t computed = 0, received = 0;  // with kBad
  };
  // Octets that were captured and make no sense.
  struct Undecoded {
    std::uint64_t bytes = 0;
    const char* why = "";
  };
  // FPDUs follow again, or for the first time when there was no startup frame.
  struct Aligned {
    bool crc = false;
  };
  // The stream begins with something else than a startup frame. Nothing follows, unless stop() is called.
  struct NotMpa {
    std::uint64_t bytes = 0;
  };
  using Item = std::variant<Startup, Fpdu, Undecoded, Aligned, NotMpa>;

  // `from_start`: the first octet fed is the first of the stream.
  explicit HalfStream(bool from_start) : state_(from_start ? State::kStartup : State::kUnknown) {}

  void feed(ConstBytes bytes);
  // The capture lacks the next `bytes` octets.
  void lose(std::uint64_t bytes);
  // The stream has ended, or the capture has.
  void close();
  [[nodiscard]] std::optional<Item> next();

  // Octets of memory, and room that is not needed given back: what the last item refers to is gone then.
  [[nodiscard]] std::size_t memory() const { return buffer_.capacity(); }
  void shrink();

  // The FPDUs that follow have Markers; before the first of them. Behind a loss that goes beyond one FPDU nothing is
  // read any more.
  void set_markers(bool on) { markers_ = on; }
  // Whether CRCs are in use. Nobody knows until both startup frames were seen; then the first FPDU tells.
  void set_crc(bool on) { crc_ = on; }
  // What follows is not to be read as FPDUs: it comes out as Undecoded, with this static text.
  void stop(const char* why);

 private:
  enum class State : std::uint8_t { kStartup, kUnknown, kFpdus, kSearching, kStopped, kNotMpa };
  // Octets [begin, end) of buffer_ that were not captured and are zero there.
  struct Hole {
    std::size_t begin, end;
  };

  [[nodiscard]] ConstBytes rest() const { return ConstBytes(buffer_).subspan(head_); }
  void drop_taken();
  // Octets among the first n of rest() that were captured.
  [[nodiscard]] std::size_t captured(std::size_t n) const;
  // How many of the first n octets of rest() come before any hole.
  [[nodiscard]] std::size_t unbroken(std::size_t n) const;
  Item take(std::size_t n, Item item);
  Item take_rest(const char* why);
  void search();
  std::optional<Item> next_startup();
  std::optional<Item> next_fpdu();
  std::optional<Item> next_found();
  Fpdu cut_fpdu(std::size_t n);
  // Octets of the FPDU at the front, Markers included; nothing when too few are there to tell.
  [[nodiscard]] std::optional<std::size_t> front_bytes() const;
  // ULPDU_Length and what follows of the FPDU in `fpdu`, or of its beginning, without Markers.
  [[nodiscard]] ConstBytes unmarked(ConstBytes fpdu);

  State state_;
  std::optional<bool> crc_;
  bool markers_ = false;
  std::uint64_t position_ = 0;       // of the next FPDU, since the first octet of Full Operation
  std::vector<std::byte> unmarked_;  // an FPDU that had Markers
  std::vector<std::byte> buffer_;
  std::size_t head_ = 0;         // octets at the front of buffer_ that are done with
  std::size_t taken_ = 0;        // octets behind head_ that the last item refers to
  std::deque<Hole> holes_;       // ascending, behind head_
  std::optional<Item> pending_;  // made by lose(), still to be given
  const char* why_stopped_ = "";
  bool closed_ = false;
};

}  // namespace iwarp::trace
