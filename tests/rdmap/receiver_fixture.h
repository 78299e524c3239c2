// A Receiver with its queues and memory, fed with whole ULPDUs.
#pragma once

#include <gtest/gtest.h>

#include "iwarp/rdmap/receiver.h"
#include "tests/support/covers.h"
#include "tests/support/segments.h"

namespace iwarp::rdmap {

using test::Bytes;
using test::hex;
using test::pattern;
using test::send_segment;
using test::write_segment;
using test::operator|;

class ReceiverTest : public ::testing::Test {
 protected:
  static constexpr ddp::StreamKey kMe{PdId{1}, ddp::StreamId{11}};
  static constexpr std::uint64_t kBase = 5000;
  static constexpr ddp::Access kAll =
      ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite | ddp::Access::kRemoteInvalidate;

  Stag add(Bytes& memory, ddp::Access access = kAll, PdId pd = kMe.pd, ddp::StreamId stream = ddp::StreamId::kAny) {
    return stags_.register_memory({memory, kBase, pd, stream, access}, ++random_ * 0x10001).value();
  }
  Sge sge(std::size_t offset, std::size_t length) {
    return {memory_.data() + offset, static_cast<std::uint32_t>(length), stag_};
  }
  void post_recv(std::uint64_t id, const SgeList& sges) { EXPECT_TRUE(recvs_.post({id, sges})); }
  // An RDMA Read of `length` octets to the start of memory, whose Request is out.
  void start_read(std::uint64_t id, std::size_t length, std::size_t offset = 0) {
    SendWr wr;
    wr.wr_id = id;
    wr.op = SendOp::kRead;
    if (length != 0) wr.sges = sge(offset, length);
    EXPECT_TRUE(sends_.post(wr));
    sends_.sent(sends_.start());
  }

  // Takes a whole segment as a driver with CRC on does.
  Result<void> take(const Bytes& ulpdu) {
    if (auto ok = rx_.begin(ulpdu, ulpdu.size()); !ok) return ok;
    if (auto ok = rx_.place(ConstBytes(ulpdu).subspan(rx_.header_bytes())); !ok) return ok;
    return rx_.end();
  }
  void expect_taken(const Bytes& ulpdu) {
    const auto ok = take(ulpdu);
    EXPECT_TRUE(ok.ok()) << ok.error().why;
  }
  // The segment is refused with this code, and the Terminate quotes `headers` octets of it: 0, 14, 18 or 46.
  void expect_refused(const Bytes& ulpdu, TerminateCode code, std::size_t headers) {
    const auto ok = take(ulpdu);
    ASSERT_FALSE(ok.ok());
    const TerminateMessage m = rx_.terminate_for(ok.error());
    EXPECT_EQ(m.code, code) << m.to_string() << ", " << ok.error().why;
    Bytes quoted(m.ddp_header.begin(), m.ddp_header.begin() + m.ddp_header_bytes);
    if (m.has_rdmap_header) quoted.insert(quoted.end(), m.rdmap_header.begin(), m.rdmap_header.end());
    ASSERT_EQ(quoted.size(), headers);
    EXPECT_TRUE(std::equal(quoted.begin(), quoted.end(), ulpdu.begin()));
    EXPECT_EQ(m.segment_length.has_value(), headers != 0);
    if (headers != 0) {
      EXPECT_EQ(m.segment_length, ulpdu.size());
    }
  }

  Bytes memory_ = Bytes(100);
  ddp::StagTable stags_;
  std::uint64_t random_ = 0;
  Stag stag_ = add(memory_);
  ReceiveQueue recvs_{8};
  SendQueue sends_{8};
  InboundReads reads_{2};
  Receiver rx_{stags_, kMe, recvs_, sends_, reads_};
};

}  // namespace iwarp::rdmap
