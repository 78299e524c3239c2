// What Wireshark makes of the octets of two ends of iwarp, with Markers and CRC, and with what RFC 7306 adds.
//
// Its dissector of MPA (4.0) takes a packet with Markers for one FPDU, and has Markers in both directions or in none.
// So the packets here are cut that way; those of --pcap hold what one system call moved.
#include <gmock/gmock.h>

#include <array>

#include "tests/support/pair.h"
#include "tests/tools/capture_file.h"
#include "tests/tools/recording.h"
#include "tests/trace/endpoints.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using trace::Direction;

constexpr std::size_t kMarkerInterval = 512;  // octets

// A connection whose requests are posted one at a time, so that each direction has one FPDU then, and a packet for it.
class Conversation {
 public:
  explicit Conversation(const PairOptions& options) : pair(options) {
    for (trace::Packet& p : maker_.handshake(Direction::kTx)) packets_.push_back(std::move(p));
    pair.establish();
    startup_ = {startup_bytes(pair.to_responder), startup_bytes(pair.to_initiator)};
    packet(Direction::kTx, pair.to_responder, startup_[0]);
    packet(Direction::kRx, pair.to_initiator, startup_[1]);
    packets_of_both();  // the RTR and its answer
  }

  void post(const rdmap::SendWr& wr) {
    pair.initiator.post(wr);
    pair.settle();
    packets_of_both();
  }
  [[nodiscard]] const std::vector<trace::Packet>& packets() const { return packets_; }
  [[nodiscard]] std::vector<trace::Packet>& packets() { return packets_; }
  [[nodiscard]] std::size_t fpdus() const { return fpdus_; }
  // Markers stand at every 512th octet of each direction, from the first one on.
  [[nodiscard]] std::size_t markers() const {
    std::size_t n = 0;
    for (const std::size_t d : {0U, 1U}) n += (taken_[d] - startup_[d] + kMarkerInterval - 1) / kMarkerInterval;
    return n;
  }

  Pair pair;

 private:
  // Of the Request or Reply that a direction begins with: its 20 octets and the private data.
  static std::size_t startup_bytes(const Wire& wire) {
    return 20 + 256 * std::to_integer<std::size_t>(wire.recorded.at(18)) +
           std::to_integer<std::size_t>(wire.recorded.at(19));
  }
  void packets_of_both() {
    fpdus_ += packet(Direction::kTx, pair.to_responder, pair.to_responder.recorded.size());
    fpdus_ += packet(Direction::kRx, pair.to_initiator, pair.to_initiator.recorded.size());
  }
  // Of what that direction has sent, up to `end`: whether there was anything.
  bool packet(Direction d, const Wire& wire, std::size_t end) {
    std::size_t& taken = taken_[d == Direction::kTx ? 0 : 1];
    if (taken == end) return false;
    for (trace::Packet& p : maker_.data(d, ConstBytes(wire.recorded).subspan(taken, end - taken)))
      packets_.push_back(std::move(p));
    taken = end;
    return true;
  }

  trace::PacketMaker maker_{trace::kClient4, trace::kServer4};
  std::vector<trace::Packet> packets_;
  std::array<std::size_t, 2> startup_{}, taken_{};
  std::size_t fpdus_ = 0;
};

std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t n = 0;
  for (auto at = text.find(of); at != std::string::npos; at = text.find(of, at + of.size())) ++n;
  return n;
}

class Wireshark : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!has_tshark()) GTEST_SKIP() << "tshark is not installed";
  }

  // CRC is on, as usual.
  [[nodiscard]] static PairOptions options() {
    PairOptions o;
    o.emss = 9000;
    o.initiator.rfc7306 = o.responder.rfc7306 = true;
    if (GetParam()) o.initiator_policy.markers = o.responder_policy.markers = mpa::Policy::Markers::kAsk;
    return o;
  }
  [[nodiscard]] std::string capture() const { return scratch_.file("pcap"); }
  // Packets that a display filter lets through.
  [[nodiscard]] std::size_t packets(const std::string& filter) const {
    return occurrences(tshark(capture(), "-T fields -e frame.number -Y '" + filter + "'"), "\n");
  }
  // FPDUs whose CRC it finds right, and all Markers, where there are any.
  void expect_all_in_order(const Conversation& c) const {
    EXPECT_THAT(tshark_faults(capture()), IsEmpty());
    const std::string all = tshark(capture(), "-V");
    EXPECT_EQ(occurrences(all, "(Good CRC32)"), c.fpdus());
    EXPECT_THAT(all, Not(HasSubstr("Bad CRC32")));
    EXPECT_EQ(occurrences(all, "FPDU back pointer:"), GetParam() ? c.markers() : 0U);
    EXPECT_EQ(packets("iwarp_mpa.marker_flag == 1"), GetParam() ? 2U : 0U);
    EXPECT_EQ(packets("iwarp_mpa.fpdu"), c.fpdus());
  }

 private:
  const Scratch scratch_{"wireshark"};
};

TEST_P(Wireshark, ReadsSendsWritesAndReads) {
  Conversation c(options());
  auto& source = c.pair.initiator.region(3000);
  auto& sink = c.pair.responder.region(3000, kRemoteAll);
  source.fill(pattern(3000));
  for (const std::uint64_t id : {1, 2}) c.pair.responder.post(rdmap::RecvWr{.wr_id = id, .sges = sink.all()});
  c.post(send_wr(3, source.sge(0, 100)));
  c.post(write_wr(4, source.all(), sink));
  c.post(read_wr(5, source.all(), sink));
  c.post(send_wr(6, source.sge(0, 2001)));
  ASSERT_EQ(c.pair.initiator.sends.size(), 4U) << c.pair.log();
  write_capture(capture(), c.packets());
  expect_all_in_order(c);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 3"), 2U);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 0"), 1U);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 1"), 2U) << "the RTR, and the Read";
  EXPECT_EQ(packets("iwarp_rdma.opcode == 2"), 2U);
  EXPECT_EQ(packets("iwarp_rdma.rdmardsz == 3000"), 1U);
}

// Its 4.0 has no words for Immediate Data (opcodes 8 and 9), and takes them for what they are all the same: untagged
// segments in order. It knows Atomics.
TEST_P(Wireshark, ReadsImmediateDataAndAtomics) {
  Conversation c(options());
  auto& result = c.pair.initiator.region(8);
  auto& word = c.pair.responder.region(8, kRemoteAll);
  for (const std::uint64_t id : {1, 2}) c.pair.responder.post(rdmap::RecvWr{.wr_id = id});
  c.post({.wr_id = 3, .op = rdmap::SendOp::kImmediate, .immediate = 5});
  c.post({.wr_id = 4, .op = rdmap::SendOp::kImmediate, .solicited = true, .immediate = 6});
  rdmap::SendWr add = read_wr(5, result.all(), word);
  add.op = rdmap::SendOp::kFetchAdd;
  add.atomic = {.data = 1001};
  c.post(add);
  rdmap::SendWr swap = read_wr(6, result.all(), word);
  swap.op = rdmap::SendOp::kCmpSwap;
  swap.atomic = {.data = 1002, .mask = ~std::uint64_t{0}, .compare = 1001};
  c.post(swap);
  ASSERT_EQ(c.pair.initiator.sends.size(), 4U) << c.pair.log();
  write_capture(capture(), c.packets());
  expect_all_in_order(c);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 8"), 1U);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 9"), 1U);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 10"), 2U);
  EXPECT_EQ(packets("iwarp_rdma.opcode == 11"), 2U);
  EXPECT_EQ(packets("iwarp_rdma.atomic.opcode == 0 && iwarp_rdma.atomic.add_data == 1001"), 1U);
  EXPECT_EQ(packets("iwarp_rdma.atomic.opcode == 2 && iwarp_rdma.atomic.swap_data == 1002 && "
                    "iwarp_rdma.atomic.compare_data == 1001"),
            1U);
  EXPECT_EQ(packets("iwarp_rdma.atomic.original_remote_data_value == 1001"), 1U) << "what the swap found";
}

// So the tests above can fail.
TEST_P(Wireshark, FindsAWrongOctet) {
  Conversation c(options());
  auto& source = c.pair.initiator.region(3000);
  auto& sink = c.pair.responder.region(3000, kRemoteAll);
  c.post(write_wr(1, source.all(), sink));
  c.packets().back()[1000] ^= std::byte{1};
  write_capture(capture(), c.packets());
  EXPECT_THAT(tshark_faults(capture()), Not(IsEmpty())) << "the checksum of TCP";
  EXPECT_EQ(occurrences(tshark(capture(), "-V"), "Bad CRC32"), 1U);
}

INSTANTIATE_TEST_SUITE_P(Markers, Wireshark, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "With" : "Without"; });

}  // namespace
}  // namespace iwarp::test
