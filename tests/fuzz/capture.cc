// Trace of a capture: packets as any file may hold them, and a connection over TCP and an association of SCTP made
// packet by packet, of which some are lost, repeated, cut or out of order. Lines stay lines, cut ones are short, memory
// is bounded, and what -v adds changes no total.
//
// Input: port of the server (NFS/RDMA or not) | operations (Run::operation).
#include "iwarp/trace/capture.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "iwarp/trace/line_writer.h"
#include "iwarp/trace/packet_maker.h"
#include "iwarp/trace/summary.h"
#include "tests/fuzz/check.h"
#include "tests/support/hex.h"
#include "tests/trace/sctp_packets.h"

namespace iwarp::fuzz {
namespace {

using test::Bytes;
using trace::Direction;
using trace::LinkType;
using trace::Packet;

trace::Endpoint end(std::uint8_t last, std::uint16_t port) {
  trace::Endpoint e;
  e.address[10] = e.address[11] = std::byte{0xFF};
  e.address[12] = std::byte{10};
  e.address[15] = std::byte{last};
  e.port = port;
  return e;
}

class Run {
 public:
  Run(std::uint16_t port, bool verbose)
      : capture_({.port = {}, .stream = {}, .verbose = verbose}), maker_(end(1, 4000), end(2, port)) {}

  trace::Capture::Counts all(Script script) {
    while (!script.done()) operation(script);
    capture_.finish(at_);
    check_lines();
    FUZZ_CHECK(!trace::to_text(summary_).empty());
    return capture_.counts();
  }

 private:
  void operation(Script& in) {
    const std::uint8_t what = in.u8();
    const Direction direction = (what & 0x80) != 0 ? Direction::kRx : Direction::kTx;
    const std::uint8_t how = (what >> 4) & 7;  // what becomes of made packets
    switch (what & 0x0F) {
      case 0:
        for (const Packet& p : maker_.handshake(direction)) give(p, how);
        break;
      case 1:
        for (const Packet& p : maker_.data(direction, in.bytes(in.u8()))) give(p, how);
        break;
      case 2:
        for (const Packet& p : maker_.data(direction, in.bytes(in.u16()))) give(p, how);
        break;
      case 3:
        give(maker_.fin(direction), how);
        break;
      case 4:
        give(maker_.reset(direction), how);
        break;
      case 5:
        if (!held_.empty()) give(std::exchange(held_, {}), 0);
        break;
      case 7:
        give(sctp(direction, in), how);
        break;
      case 6:
        at_ += std::chrono::milliseconds(in.u16());
        break;
      default: {
        const auto link = static_cast<LinkType>(in.u8() % 5);
        const std::uint8_t more = in.u8();
        const ConstBytes captured = in.bytes(in.u8());
        capture(link, captured, captured.size() + more);
      }
    }
    check_lines();
  }

  // Up to three chunks: INIT, INIT ACK, any, or a DATA chunk of a message, or of a part of one, on one of four streams.
  Packet sctp(Direction d, Script& in) {
    trace::SctpBytes chunks;
    for (int n = 1 + in.u8() % 3; n > 0; --n) {
      const std::uint8_t what = in.u8();
      std::uint32_t& tsn = tsns_[trace::index(d)];
      if (what % 8 == 0) {
        chunks.init(1, tsn, in.flag() ? std::optional<std::uint32_t>(1) : std::nullopt);
      } else if (what % 8 == 1) {
        chunks.init(2, tsn, 1);
      } else if (what % 8 == 2) {
        const std::uint8_t type = in.u8(), flags = in.u8();
        chunks.chunk(type, flags, in.bytes(in.u8()));
      } else {
        const std::uint32_t ppid = what % 8 < 5 ? 16 : what % 8 < 7 ? 17 : in.u8();
        const std::uint8_t flags = (what & 0x80) != 0 ? in.u8() : trace::kWholeUnordered;
        if ((what & 0x40) != 0) tsn += in.u8();
        const ConstBytes octets = in.bytes(in.u8());
        chunks.data(tsn++, what / 8 % 4, ppid, octets, flags);
      }
    }
    return sctp_.make(d, chunks);
  }

  void give(const Packet& p, std::uint8_t how) {
    switch (how) {
      case 1:  // lost
        return;
      case 2:  // held back: reordered
        held_ = p;
        return;
      case 3:  // twice
        capture(LinkType::kEthernet, p, p.size());
        break;
      case 4:  // cut by the capture
        return capture(LinkType::kEthernet, ConstBytes(p).first(p.size() / 2), p.size());
      default:
        break;
    }
    capture(LinkType::kEthernet, p, p.size());
  }

  void capture(LinkType link, ConstBytes captured, std::size_t wire_bytes) {
    const Bytes own(captured.begin(), captured.end());  // gone when packet() returns
    capture_.packet(at_, link, own, wire_bytes);
    at_ += std::chrono::milliseconds(1);
  }

  void check_lines() {
    for (const trace::Record& record : capture_.take()) {
      const std::string line = writer_.line(record);
      FUZZ_CHECK(!line.empty() && line.back() == ')');
      FUZZ_CHECK(short_writer_.line(record).size() <= std::max(kColumns, line.find(',') + kCutEnd));
      summary_.see(record);
      summary_.add(record);
      FUZZ_CHECK(std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isprint(c) != 0; }));
    }
  }

  static constexpr std::size_t kColumns = 120, kCutEnd = 8;

  trace::Capture capture_;
  trace::LineWriter writer_{{}};
  trace::LineWriter short_writer_{{.time = {}, .start = {}, .columns = kColumns, .color = false}};
  trace::Summary summary_;
  trace::PacketMaker maker_;
  trace::SctpPacketMaker sctp_{end(1, 4000), end(2, 7174), 40000};
  std::array<std::uint32_t, 2> tsns_{100, 0xFFFFFFF8};
  Packet held_;
  Duration at_{};
};

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  const std::uint16_t port = script.flag() ? iwarp::trace::Capture::kNfsRdmaPort : 7174;
  const auto brief = Run(port, false).all(script), verbose = Run(port, true).all(script);
  FUZZ_CHECK(brief.packets == verbose.packets && brief.connections == verbose.connections);
  FUZZ_CHECK(brief.totals.bytes == verbose.totals.bytes && brief.totals.messages == verbose.totals.messages);
  FUZZ_CHECK(brief.totals.undecoded == verbose.totals.undecoded && brief.totals.lost == verbose.totals.lost);
  return 0;
}
