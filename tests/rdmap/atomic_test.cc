// Atomics (RFC 7306 s5): headers, arithmetic, and both halves of a connection.
#include "iwarp/rdmap/atomic.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <random>
#include <thread>

#include "tests/rdmap/receiver_fixture.h"
#include "tests/rdmap/transmitter_fixture.h"

namespace iwarp::rdmap {
namespace {

constexpr auto kAdd = static_cast<std::uint8_t>(AtomicCode::kFetchAdd);
constexpr auto kSwap = static_cast<std::uint8_t>(AtomicCode::kCmpSwap);

AtomicRequest fetch_add(std::uint64_t data, std::uint64_t mask = 0) {
  return {.code = kAdd, .operands = {.data = data, .mask = mask}};
}
AtomicRequest cmp_swap(std::uint64_t data, std::uint64_t mask, std::uint64_t compare, std::uint64_t compare_mask) {
  return {.code = kSwap, .operands = {data, mask, compare, compare_mask}};
}
Bytes octets(const AtomicRequest& r) {
  Bytes out(AtomicRequest::kSize);
  r.write_to(std::span<std::byte, AtomicRequest::kSize>(out));
  return out;
}
Bytes octets(const AtomicResponse& r) {
  Bytes out(AtomicResponse::kSize);
  r.write_to(std::span<std::byte, AtomicResponse::kSize>(out));
  return out;
}
Bytes request_segment(const AtomicRequest& r, std::uint32_t msn = 1) {
  return send_segment(octets(r), {.msn = msn}, Opcode::kAtomicRequest, kReadRequestQn);
}
Bytes response_segment(const AtomicResponse& r, std::uint32_t msn = 1) {
  return send_segment(octets(r), {.msn = msn}, Opcode::kAtomicResponse, kAtomicResponseQn);
}

const AtomicRequest kRequest{
    .code = kSwap,
    .id = 0x11121314,
    .stag = Stag{0x21222324},
    .to = 0x3132333435363738,
    .operands = {0x4142434445464748, 0x5152535455565758, 0x6162636465666768, 0x7172737475767778}};
constexpr const char* kRequestOctets =
    "00000002"
    "11121314"
    "21222324"
    "3132333435363738"
    "4142434445464748"
    "5152535455565758"
    "6162636465666768"
    "7172737475767778";

TEST(Atomic, RequestHeader) {
  COVERS("RFC7306-4-2");
  COVERS("RFC7306-5.2.1-1");
  COVERS("RFC7306-5.2.1-2");
  COVERS("RFC7306-5.2.1-8");
  COVERS("RFC7306-5.2.1-9");
  EXPECT_EQ(octets(kRequest), hex(kRequestOctets));
  EXPECT_EQ(AtomicRequest::parse(hex(kRequestOctets)), kRequest);
  Bytes reserved = hex(kRequestOctets);
  reserved[0] = reserved[1] = reserved[2] = std::byte{0xFF};
  reserved[3] |= std::byte{0xF0};
  EXPECT_EQ(AtomicRequest::parse(reserved), kRequest);
  for (const std::size_t n : {0U, 51U, 53U}) EXPECT_FALSE(AtomicRequest::parse(Bytes(n)));
}

TEST(Atomic, ResponseHeader) {
  COVERS("RFC7306-4-3");
  COVERS("RFC7306-5.2.2-1");
  const AtomicResponse r{0x01020304, 0x1112131415161718};
  EXPECT_EQ(octets(r), hex("010203041112131415161718"));
  EXPECT_EQ(AtomicResponse::parse(octets(r)), r);
  for (const std::size_t n : {0U, 11U, 13U}) EXPECT_FALSE(AtomicResponse::parse(Bytes(n)));
}

TEST(Atomic, CodesOfFigure5) {
  COVERS("RFC7306-5-4");
  COVERS("RFC7306-5.2.1-3");
  COVERS("RFC7306-5.2.1-12");
  COVERS("RFC7306-5.2.1-13");
  COVERS("RFC7306-10.1-1");
  for (std::uint8_t code = 0; code < 16; ++code)
    EXPECT_EQ(AtomicRequest{.code = code}.known(), code == 0 || code == 2) << int{code};
}

// The loop of s5.1.1, as printed there.
std::uint64_t reference_sum(std::uint64_t original, std::uint64_t add, std::uint64_t mask) {
  std::uint64_t bit_location = 1, carry = 0, result = 0;
  for (int bit = 0; bit < 64; ++bit) {
    if (bit != 0) bit_location <<= 1;
    std::uint64_t sum = carry + ((original & bit_location) >> bit) + ((add & bit_location) >> bit);
    carry = (sum & 2) >> 1;
    sum &= 1;
    if (sum != 0) result |= bit_location;
    carry = (carry != 0 && (mask & bit_location) == 0) ? 1 : 0;
  }
  return result;
}

TEST(Atomic, FetchAddIsTheLoopOfTheRfc) {
  COVERS("RFC7306-5.1.1-1");
  COVERS("RFC7306-5.1.1-2");
  COVERS("RFC7306-5.1.1-8");
  COVERS("RFC7306-5.1.1-9");
  EXPECT_EQ(apply(fetch_add(1), ~std::uint64_t{0}), 0U) << "mask 0: modulo 2^64";
  EXPECT_EQ(apply(fetch_add(1, 0x80000000), 0xFFFFFFFF), 0U) << "no carry leaves the lower half";
  EXPECT_EQ(apply(fetch_add(0x0101, 0x8080), 0x00FF), 0x0100U);
  std::mt19937_64 random(7306);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t a = random(), b = random(), mask = random() & random() & random();
    ASSERT_EQ(apply(fetch_add(b, mask), a), reference_sum(a, b, mask)) << a << " " << b << " " << mask;
  }
  EXPECT_EQ(apply(fetch_add(~std::uint64_t{0}, ~std::uint64_t{0}), 5), reference_sum(5, ~std::uint64_t{0}, ~0ULL));
}

TEST(Atomic, CmpSwap) {
  COVERS("RFC7306-5.1.2-1");
  COVERS("RFC7306-5.1.2-4");
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  EXPECT_EQ(apply(cmp_swap(9, kAll, 5, kAll), 5), 9U);
  EXPECT_EQ(apply(cmp_swap(9, kAll, 5, kAll), 6), 6U);
  EXPECT_EQ(apply(cmp_swap(9, kAll, 5, 0), 6), 9U) << "a swap";
  EXPECT_EQ(apply(cmp_swap(0xAAAA, 0x00FF, 0x1200, 0xFF00), 0x1234), 0x12AAU);
  EXPECT_EQ(apply(cmp_swap(0xAAAA, 0x00FF, 0x1300, 0xFF00), 0x1234), 0x1234U);
}

TEST(Atomic, AgainstLocalAccessByAtomicRef) {
  COVERS("RFC7306-5-1");
  COVERS("RFC7306-5-2");
  COVERS("RFC7306-5.3-1");
  COVERS("RFC7306-5.4-2");
  COVERS("RFC7306-5-3");
  COVERS("RFC7306-5.4-3");
  alignas(8) std::uint64_t word = 0;
  const MutBytes target{reinterpret_cast<std::byte*>(&word), sizeof word};
  constexpr std::uint64_t kTimes = 20'000;
  const auto add = [&] {
    for (std::uint64_t i = 0; i < kTimes; ++i) (void)execute(fetch_add(1), target);
  };
  const auto swap = [&] {  // the peer's compare and swap loop
    for (std::uint64_t i = 0; i < kTimes; ++i) {
      std::uint64_t seen = 0;
      for (;;) {
        const std::uint64_t was = execute(cmp_swap(seen + 1, ~0ULL, seen, ~0ULL), target);
        if (was == seen) break;
        seen = was;
      }
    }
  };
  std::thread one(add), two(add), three(swap);
  for (std::uint64_t i = 0; i < kTimes; ++i) std::atomic_ref(word).fetch_add(1);
  for (std::thread* t : {&one, &two, &three}) t->join();
  EXPECT_EQ(word, 4 * kTimes);
}

class AtomicReceiver : public ReceiverTest {
 protected:
  Receiver rfc7306_{stags_, kMe, recvs_, sends_, reads_, Extensions::kRfc7306};
  alignas(8) std::array<std::byte, 8> result_{};
  Stag result_stag_ = stags_.register_memory({result_, 0, kMe.pd, ddp::StreamId::kAny, kAll}, 99).value();

  Result<void> take(const Bytes& ulpdu) {
    if (auto ok = rfc7306_.begin(ulpdu, ulpdu.size()); !ok) return ok;
    if (auto ok = rfc7306_.place(ConstBytes(ulpdu).subspan(rfc7306_.header_bytes())); !ok) return ok;
    return rfc7306_.end();
  }
  void expect_refused(const Bytes& ulpdu, TerminateCode code) {
    const auto ok = take(ulpdu);
    ASSERT_FALSE(ok.ok());
    const TerminateMessage m = rfc7306_.terminate_for(ok.error());
    EXPECT_EQ(m.code, code) << m.to_string() << ", " << ok.error().why;
    EXPECT_EQ(m.ddp_header_bytes, 18);
    EXPECT_FALSE(m.has_rdmap_header) << "not even of a Request (s8.1)";
  }
  void start_atomic(std::uint64_t id) {
    EXPECT_TRUE(sends_.post(
        {.wr_id = id, .op = SendOp::kFetchAdd, .sges = Sge{result_.data(), 8, result_stag_}, .atomic = {.data = 1}}));
    sends_.sent(sends_.start());
  }
};

TEST_F(AtomicReceiver, RequestsWaitWithReadRequests) {
  COVERS("RFC7306-4.2-3");
  COVERS("RFC7306-5.2-2");
  COVERS("RFC7306-5.2-3");
  COVERS("RFC7306-5.2.1-15");
  COVERS("RFC7306-5.2.1-17");
  COVERS("RFC7306-5.2.1-18");
  COVERS("RFC7306-5.2.2-7");
  COVERS("RFC7306-8.1-3");
  AtomicRequest r = kRequest;
  r.code = 1;
  expect_refused(send_segment(octets(kRequest) | hex("00"), {}, Opcode::kAtomicRequest, kReadRequestQn), {1, 2, 5});
  EXPECT_TRUE(take(test::read_request_segment({Stag{5}, 6, 7, stag_, kBase}, 1)).ok());
  EXPECT_TRUE(take(request_segment(kRequest, 2)).ok());
  expect_refused(request_segment(kRequest, 3), {1, 2, 2});  // the fixture's IRD is 2
  EXPECT_TRUE(std::holds_alternative<ReadRequest>(reads_.start().request));
  EXPECT_EQ(std::get<AtomicRequest>(reads_.start().request), kRequest);
  reads_.clear();
  expect_refused(request_segment(r, 3), {0, 2, 6});
  EXPECT_TRUE(reads_.empty());
  EXPECT_FALSE(recvs_.poll()) << "the application has no part in it";
  EXPECT_EQ(rfc7306_.counters().atomics, 1U);
}

TEST_F(AtomicReceiver, RequestTooShort) {
  COVERS("RFC7306-4.2-3");
  expect_refused(send_segment(pattern(51), {}, Opcode::kAtomicRequest, kReadRequestQn), {0, 2, 0xFF});
}

TEST_F(AtomicReceiver, ResponseCompletesTheOldestAtomic) {
  COVERS("RFC7306-4.1-9");
  COVERS("RFC7306-5-8");
  COVERS("RFC7306-5.2.2-8");
  COVERS("RFC7306-5.2.2-9");
  COVERS("RFC7306-5.4-1");
  COVERS("RFC7306-5.4-8");
  start_read(1, 10);
  start_atomic(2);
  EXPECT_EQ(sends_.outstanding_reads(), 2U);
  EXPECT_TRUE(take(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(10))).ok());
  EXPECT_EQ(sends_.poll()->wr_id, 1U);
  EXPECT_FALSE(sends_.poll());
  EXPECT_TRUE(take(response_segment({1, 0x0102030405060708})).ok());
  const auto c = sends_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 2U);
  EXPECT_EQ(c->op, WcOp::kFetchAdd);
  EXPECT_EQ(c->byte_len, 8U);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(result_), 0x0102030405060708U);
  EXPECT_EQ(sends_.outstanding_reads(), 0U);
  expect_refused(response_segment({2, 0}, 2), {1, 2, 2});
}

TEST_F(AtomicReceiver, ResponsesThatAreNoAnswer) {
  COVERS("RFC7306-4.2-4");
  COVERS("RFC7306-5.2.2-10");
  expect_refused(response_segment({1, 0}), {1, 2, 2});
  start_read(1, 10);
  expect_refused(response_segment({1, 0}), {1, 2, 2});
  start_atomic(2);
  expect_refused(response_segment({1, 0}, 2), {1, 2, 3});
  expect_refused(send_segment(pattern(13), {}, Opcode::kAtomicResponse, kAtomicResponseQn), {1, 2, 5});
  expect_refused(response_segment({7, 5}), {0, 2, 0xFF});
  EXPECT_EQ(std::bit_cast<std::uint64_t>(result_), 0U);
}

TEST_F(AtomicReceiver, ResponseTooShort) {
  start_atomic(1);
  expect_refused(send_segment(pattern(11), {}, Opcode::kAtomicResponse, kAtomicResponseQn), {0, 2, 0xFF});
}

TEST_F(AtomicReceiver, SinkThatWasRevoked) {
  start_atomic(1);
  EXPECT_TRUE(stags_.invalidate(result_stag_));
  const auto ok = take(response_segment({1, 5}));
  EXPECT_EQ(ok.error().code, Errc::kDdpCatastrophic);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(result_), 0U);
}

class AtomicTransmitter : public TransmitterTest {
 protected:
  alignas(8) std::array<std::byte, 32> words_{};
  Stag words_stag_ = stags_.register_memory({words_, kBase + 1, kMe.pd, ddp::StreamId::kAny, kAll}, 99).value();

  std::uint64_t& word(std::size_t i) { return reinterpret_cast<std::uint64_t*>(words_.data())[i]; }
  AtomicRequest at(AtomicRequest r, std::uint64_t offset) {
    r.stag = words_stag_;
    r.to = kBase + 1 + offset;
    return r;
  }
  void arrives(const AtomicRequest& r) {
    InboundRead read;
    read.request = r;
    const Bytes ulpdu = request_segment(r);
    std::copy_n(ulpdu.begin(), read.ulpdu.size(), read.ulpdu.begin());
    reads_.push(read);
  }
  void expect_terminate(TerminateCode code) {
    EXPECT_FALSE(next());
    ASSERT_TRUE(error_);
    const TerminateMessage& m = tx_.error_terminate();
    EXPECT_EQ(m.code, code) << m.to_string();
    EXPECT_EQ(m.ddp_header_bytes, 18);
    EXPECT_EQ(m.segment_length, 70);
    EXPECT_FALSE(m.has_rdmap_header);
    EXPECT_EQ(words_, (std::array<std::byte, 32>{}));
  }
};

TEST_F(AtomicTransmitter, Requests) {
  COVERS("RFC7306-5-6");
  COVERS("RFC7306-5.1.1-11");
  COVERS("RFC7306-5.1.2-3");
  COVERS("RFC7306-5.2-2");
  COVERS("RFC7306-5.2.1-4");
  COVERS("RFC7306-5.2.1-5");
  COVERS("RFC7306-5.2.1-6");
  COVERS("RFC7306-5.2.1-10");
  COVERS("RFC7306-5.2.1-11");
  COVERS("RFC7306-5.2.1-19");
  COVERS("RFC7306-5.2.1-20");
  COVERS("RFC7306-A.1-1");
  const auto atomic = [&](std::uint64_t id, SendOp op, const AtomicOperands& operands) {
    SendWr w = wr(id, op, sge(0, 8));
    w.remote_stag = Stag{0x700};
    w.remote_to = 0x1003;
    w.atomic = operands;
    return w;
  };
  post(atomic(1, SendOp::kFetchAdd, {.data = 5, .mask = 6, .compare = 7, .compare_mask = 8}));
  post(wr(2, SendOp::kRead, sge(8, 8)));
  post(atomic(3, SendOp::kCmpSwap, {5, 6, 7, 8}));
  EXPECT_EQ(next()->ulpdu, hex("414a"
                               "00000000"
                               "00000001"
                               "00000001"
                               "00000000"
                               "00000000"
                               "00000001"
                               "00000700"
                               "0000000000001003"
                               "0000000000000005"
                               "0000000000000006"
                               "0000000000000000"
                               "ffffffffffffffff"));
  EXPECT_EQ(next()->untagged().msn.value, 2U) << "the Read, in the same sequence";
  EXPECT_FALSE(next(2)) << "ORD counts both";
  EXPECT_EQ(next()->ulpdu, hex("414a"
                               "00000000"
                               "00000001"
                               "00000003"
                               "00000000"
                               "00000002"
                               "00000002"
                               "00000700"
                               "0000000000001003"
                               "0000000000000005"
                               "0000000000000006"
                               "0000000000000007"
                               "0000000000000008"));
  EXPECT_EQ(tx_.counters().atomics, 2U);
  EXPECT_FALSE(sends_.poll()) << "sent is not done";
}

TEST_F(AtomicTransmitter, ExecutedInTurnAndAnswered) {
  COVERS("RFC7306-4.1-10");
  COVERS("RFC7306-5.1.1-10");
  COVERS("RFC7306-5.1.1-11");
  COVERS("RFC7306-5.1.2-2");
  COVERS("RFC7306-5.2.1-16");
  COVERS("RFC7306-5.2.1-21");
  COVERS("RFC7306-5.2.1-22");
  COVERS("RFC7306-5.2.2-2");
  COVERS("RFC7306-5.2.2-3");
  COVERS("RFC7306-5.2.2-4");
  COVERS("RFC7306-5.2.2-6");
  COVERS("RFC7306-5.2.2-11");
  COVERS("RFC7306-5.4-4");
  COVERS("RFC7306-5.4-6");
  COVERS("RFC7306-5.4-9");
  COVERS("RFC7306-5.4-10");
  COVERS("RFC7306-7-11");
  COVERS("RFC7306-7-12");
  COVERS("RFC7306-7-15");
  COVERS("RFC7306-A.2-1");
  AtomicRequest add = at(fetch_add(1), 8);
  add.id = 0xABCD;
  word(1) = 0x1122334455667788;
  arrives(add);
  request({Stag{0x500}, 0, 8, words_stag_, kBase + 9});
  arrives(at(cmp_swap(3, ~0ULL, 9, ~0ULL), 8));
  EXPECT_EQ(word(1), 0x1122334455667788U);
  EXPECT_EQ(next()->ulpdu, hex("414b"
                               "00000000"
                               "00000003"
                               "00000001"
                               "00000000"
                               "0000abcd"
                               "1122334455667788"));
  EXPECT_EQ(word(1), 0x1122334455667789U);
  const auto read = next();
  ASSERT_TRUE(read && read->read_response);
  EXPECT_EQ(std::memcmp(read->payload().data(), &word(1), 8), 0) << "what the Atomic before it made";
  EXPECT_EQ(next()->ulpdu, hex("414b"
                               "00000000"
                               "00000003"
                               "00000002"
                               "00000000"
                               "00000000"
                               "1122334455667789"));
  EXPECT_EQ(word(1), 0x1122334455667789U) << "9 it was not";
  EXPECT_EQ(word(0) | word(2) | word(3), 0U);
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(reads_.full()) << "answered Requests count no more";
    request({Stag{0x500}, 0, 1, words_stag_, kBase + 1});
  }
  EXPECT_TRUE(reads_.full());
}

TEST_F(AtomicTransmitter, MisalignedAddressIsLeftAlone) {
  COVERS("RFC7306-5.1.1-4");
  COVERS("RFC7306-5.1.1-5");
  COVERS("RFC7306-5.1.1-7");
  COVERS("RFC7306-5.1.2-6");
  COVERS("RFC7306-5.1.2-7");
  COVERS("RFC7306-5.1.2-9");
  COVERS("RFC7306-5.2.1-7");
  COVERS("RFC7306-8.1-3");
  COVERS("RFC7306-8.2-5");
  COVERS("RFC7306-8.2-6");
  COVERS("RFC7306-8.2-7");
  for (const auto& r : {fetch_add(1), cmp_swap(1, ~0ULL, 0, 0)}) {
    arrives(at(r, 4));
    expect_terminate({0, 2, 7});
  }
  arrives(at(fetch_add(1), 7));  // a multiple of 8 as a TO, but not as an address
  expect_terminate({0, 2, 7});
}

TEST_F(AtomicTransmitter, MemoryThatThePeerMayNotChange) {
  COVERS("RFC7306-9-1");
  const auto open = [&](ddp::Access access, PdId pd) {
    return stags_.register_memory({words_, 0, pd, ddp::StreamId::kAny, access}, 1234 + ++random_ * 77).value();
  };
  const auto refused = [&](Stag stag, std::uint64_t to, TerminateCode code) {
    AtomicRequest r = fetch_add(1);
    r.stag = stag;
    r.to = to;
    arrives(r);
    expect_terminate(code);
  };
  refused(Stag{0x12345600}, 0, {0, 1, 0});
  refused(open(kAll, kMe.pd), 28, {0, 1, 1});
  refused(open(ddp::Access::kLocalWrite | ddp::Access::kRemoteRead, kMe.pd), 0, {0, 1, 2});
  refused(open(ddp::Access::kRemoteWrite, kMe.pd), 0, {0, 1, 2});
  refused(open(kAll, PdId{9}), 0, {0, 1, 3});
  refused(words_stag_, ~0ULL - 3, {0, 1, 4});
}

TEST_F(AtomicTransmitter, SinkThatIsNotRegistered) {
  COVERS("RFC7306-8.1-2");
  post(wr(1, SendOp::kFetchAdd, Sge{memory_.data(), 8, Stag{0x99999900}}));
  EXPECT_FALSE(next());
  EXPECT_EQ(tx_.error_terminate().code, (TerminateCode{0, 0, 0}));
  EXPECT_EQ(tx_.error_terminate().ddp_header_bytes, 0);
  EXPECT_EQ(sends_.poll()->status, Errc::kLocalProtection);
}

}  // namespace
}  // namespace iwarp::rdmap
