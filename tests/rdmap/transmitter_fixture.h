// A Transmitter with its queues and memory, whose segments are taken apart.
#pragma once

#include <gtest/gtest.h>

#include "iwarp/rdmap/transmitter.h"
#include "tests/support/covers.h"
#include "tests/support/segments.h"

namespace iwarp::rdmap {

using test::Bytes;
using test::hex;
using test::pattern;
using test::operator|;

class TransmitterTest : public ::testing::Test {
 protected:
  static constexpr ddp::StreamKey kMe{PdId{1}, ddp::StreamId{11}};
  static constexpr std::uint64_t kBase = 5000;
  static constexpr ddp::Access kAll = ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite;

  struct Sent {
    Bytes ulpdu;
    bool read_response = false;
    bool may_change = false;
    Transmitter::Done done;

    [[nodiscard]] ddp::SegmentHeader header() const { return ddp::parse_segment_header(ulpdu).value(); }
    [[nodiscard]] ddp::TaggedHeader tagged() const { return std::get<ddp::TaggedHeader>(header()); }
    [[nodiscard]] ddp::UntaggedHeader untagged() const { return std::get<ddp::UntaggedHeader>(header()); }
    [[nodiscard]] Bytes payload() const {
      return Bytes(ulpdu.begin() + static_cast<std::ptrdiff_t>(ddp::header_size(header())), ulpdu.end());
    }
  };

  TransmitterTest() {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = pattern(memory_.size(), 3)[i];
  }
  Stag add(Bytes& memory, ddp::Access access = kAll, PdId pd = kMe.pd) {
    return stags_.register_memory({memory, kBase, pd, ddp::StreamId::kAny, access}, ++random_ * 0x10001).value();
  }
  Sge sge(std::size_t offset, std::size_t length) {
    return {memory_.data() + offset, static_cast<std::uint32_t>(length), stag_};
  }
  Bytes content(std::size_t offset, std::size_t length) {
    return Bytes(memory_.begin() + static_cast<std::ptrdiff_t>(offset),
                 memory_.begin() + static_cast<std::ptrdiff_t>(offset + length));
  }
  SendWr wr(std::uint64_t id, SendOp op, const SgeList& sges) {
    SendWr w;
    w.wr_id = id;
    w.op = op;
    w.sges = sges;
    return w;
  }
  void post(const SendWr& w) { EXPECT_TRUE(sends_.post(w)); }
  void request(const ReadRequest& r, std::uint32_t msn = 1) {
    InboundRead read;
    read.request = r;
    const Bytes ulpdu = test::read_request_segment(r, msn);
    std::copy(ulpdu.begin(), ulpdu.end(), read.ulpdu.begin());
    reads_.push(read);
  }

  // The next segment, as handed to TCP at once; nullopt when there is none or an error (then in error_).
  std::optional<Sent> next(std::size_t ord = 8) {
    std::vector<ddp::Pin> pins;
    const bool ready = tx_.ready(ord);
    Transmitter::Segment s;
    const auto given = tx_.next(mulpdu_, ord, s, pins);
    if (!given) {
      EXPECT_TRUE(pins.empty());
      error_ = given.error();
      return std::nullopt;
    }
    EXPECT_TRUE(ready || !*given);
    if (!*given) return std::nullopt;
    Sent out{Bytes(s.head_and_copy().begin(), s.head_and_copy().end()), s.read_response, s.may_change, s.done};
    for (const auto& p : pins) out.ulpdu.insert(out.ulpdu.end(), p.bytes().begin(), p.bytes().end());
    EXPECT_EQ(out.ulpdu.size(), s.header_bytes + s.payload_bytes);
    EXPECT_LE(out.ulpdu.size(), mulpdu_);
    tx_.segment_sent(s.done);
    return out;
  }

  Bytes memory_ = Bytes(500);
  ddp::StagTable stags_;
  std::uint64_t random_ = 0;
  Stag stag_ = add(memory_);
  SendQueue sends_{16};
  InboundReads reads_{8};
  Transmitter tx_{stags_, kMe, sends_, reads_};
  std::size_t mulpdu_ = 118;  // 100 octets behind an untagged header, 104 behind a tagged one
  std::optional<Error> error_;
};

}  // namespace iwarp::rdmap
