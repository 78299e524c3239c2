// Replays rping between two Linux kernels (siw): first we are the server, then the client. Since rping does the same
// every time, and our memory is registered under the STags that the kernel happened to draw, our octets must be the
// kernel's.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/covers.h"
#include "tests/support/endpoint.h"
#include "tests/support/segments.h"
#include "tests/support/vectors.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::hex;
using test::to_hex;
using test::operator|;

struct Turn {
  bool client = false;
  Bytes bytes;
};

std::vector<Turn> load(const std::string& name) {
  std::ifstream in(test::vector_path("stream/" + name + ".hex"));
  std::vector<Turn> out;
  for (std::string line; std::getline(in, line);) {
    if (line[0] != '#') out.push_back({line[0] == '>', hex(std::string_view(line).substr(2))});
  }
  return out;
}

constexpr TimePoint kNow{std::chrono::seconds(1000)};
constexpr std::size_t kAll = ~std::size_t{0};

// STags are drawn at random; these two know how the table draws, and make it draw what the kernel drew.
constexpr std::uint64_t draw_from_chunk(Stag wanted, std::uint64_t before, std::uint64_t free) {
  const std::uint64_t key = raw(wanted) & 0xFF, slot = (raw(wanted) >> 8) % 1024, chunk = (raw(wanted) >> 8) / 1024;
  for (std::uint64_t low = 0; low < 4096; ++low) {
    const std::uint64_t x = chunk << 12 | low;
    if (x % free == before + slot) return x << 8 | key;
  }
  return 0;
}
std::unique_ptr<test::Region> first_region(test::Endpoint& end, Stag wanted, std::uint64_t to, std::size_t bytes) {
  auto r = std::make_unique<test::Region>(end.stags(), end.key().pd, bytes, test::kRemoteAll, to, ddp::StreamId::kAny,
                                          draw_from_chunk(wanted, 0, 1024));
  EXPECT_EQ(r->stag(), wanted);
  return r;
}
std::unique_ptr<test::Region> second_region(test::Endpoint& end, Stag wanted, std::uint64_t to, std::size_t bytes) {
  for (int i = 0; i < 512; ++i) (void)end.region(1);  // fewer than 512 free ones: the next draw adds a chunk
  auto r = std::make_unique<test::Region>(end.stags(), end.key().pd, bytes, test::kRemoteAll, to, ddp::StreamId::kAny,
                                          draw_from_chunk(wanted, 511, 1535));
  EXPECT_EQ(r->stag(), wanted);
  return r;
}

// What rping advertises: address, STag and length of a buffer.
struct Advert {
  std::uint64_t to = 0;
  Stag stag{};
};
Advert advert(ConstBytes at) {
  return {load_be<std::uint64_t>(at), Stag{load_be<std::uint32_t>(at.subspan(8))}};
}

class Golden : public ::testing::TestWithParam<const char*> {
 protected:
  Golden() : turns_(load(GetParam())) {
    crc_ = std::string(GetParam()).find("crc") != std::string::npos;
    policy_.crc = crc_ ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
    policy_.peer_to_peer = std::string(GetParam()).find("p2p") != std::string::npos;
    policy_.rtr_read = false;  // a siw Responder names RTR by Write
    policy_.ird = policy_.ord = 1;
    for (const Turn& t : turns_) (t.client ? client_ : server_) = (t.client ? client_ : server_) | t.bytes;
  }
  // The ULPDUs of a direction behind its startup frame of 24 octets.
  std::vector<Bytes> ulpdus(const Bytes& stream) const {
    std::vector<Bytes> out;
    Bytes rest(stream.begin() + 24, stream.end());
    mpa::FpduDecoder decoder(crc_);
    for (MutBytes at = rest; !at.empty();) {
      const auto result = decoder.decode(at);
      const auto& frame = std::get<mpa::FpduFrame>(result);
      out.emplace_back(frame.ulpdu.begin(), frame.ulpdu.end());
      at = at.subspan(frame.fpdu_bytes);
    }
    return out;
  }
  static std::string kinds(const std::vector<Bytes>& ulpdus) {
    std::string out;
    for (const Bytes& u : ulpdus) out += "WrRSIsiT"[std::to_integer<unsigned>(u[1]) & 7];
    return out;
  }

  std::vector<Turn> turns_;
  Bytes client_, server_;
  bool crc_ = false;
  mpa::Policy policy_;
};

TEST_P(Golden, CaptureHasTheSequenceOfRping) {
  EXPECT_EQ(kinds(ulpdus(client_)), std::string(policy_.peer_to_peer ? "W" : "") + "SRSSRSSRS");
  EXPECT_EQ(kinds(ulpdus(server_)), "rSWSrSWSrSWS");
}

TEST_P(Golden, WeAreTheServer) {
  COVERS("RFC5040-3.1-5");
  COVERS("RFC5041-1.3-1");
  COVERS("RFC5044-4.4-14");
  COVERS("RFC5040-1.2-1");
  COVERS("RFC5040-3.1-1");
  COVERS("RFC5040-4-3");
  COVERS("RFC5040-6.1-2");
  COVERS("RFC5044-3-15");
  COVERS("RFC5044-4.1-3");
  COVERS("RFC5044-7.1-6");
  COVERS("RFC5044-7.1.2-24");
  const Bytes first_read = ulpdus(server_)[0];
  const auto asked = *rdmap::ReadRequest::parse(ConstBytes(first_read).subspan(18));

  test::Endpoint end(1);
  const auto buffer = first_region(end, asked.sink_stag, asked.sink_to, 64);
  auto& messages = end.region(64);
  std::uint64_t received = 0;
  const auto post_recv = [&] { end.post(rdmap::RecvWr{received, messages.sge(16 * (received % 2), 16)}); };
  const auto answer = [&] { end.post(test::send_wr(100, messages.sge(32, 16))); };
  post_recv();

  mpa::Responder responder(policy_, kNow);
  Bytes sent;
  std::size_t completed = 0;
  for (const Turn& t : turns_) {
    if (!t.client) continue;
    if (received == 0 && end.conn().phase() == Phase::kIdle) {
      ASSERT_EQ(responder.rx(t.bytes, kNow), t.bytes.size());
      ASSERT_TRUE(responder.accept(1, 1, {}).ok());
      end.start(std::move(responder), kNow);
    } else {
      ASSERT_EQ(end.receive(t.bytes, kNow), t.bytes.size());
    }
    while (end.recvs.size() > received) {  // an advert: Read from it in the odd ones, Write to it in the even ones
      ASSERT_EQ(end.recvs[received].byte_len, 16U);
      const Advert a = advert(ConstBytes(messages.bytes()).subspan(16 * (received % 2)));
      ++received;
      post_recv();
      rdmap::SendWr wr = test::send_wr(received, buffer->all());
      wr.op = received % 2 == 1 ? rdmap::SendOp::kRead : rdmap::SendOp::kWrite;
      wr.remote_stag = a.stag;
      wr.remote_to = a.to;
      end.post(wr);
      if (received % 2 == 0) answer();
    }
    while (end.conn().tx_pending()) sent = sent | end.send(kAll, kNow);
    for (; completed < end.sends.size(); ++completed) {
      ASSERT_EQ(end.sends[completed].status, Errc::kOk);
      if (end.sends[completed].op == rdmap::WcOp::kRead) answer();
    }
    while (end.conn().tx_pending()) sent = sent | end.send(kAll, kNow);
  }
  EXPECT_EQ(received, 6U);
  EXPECT_EQ(to_hex(sent), to_hex(server_));
  EXPECT_EQ(end.disconnected(), nullptr);
  EXPECT_EQ(end.conn().rx_counters().read_response_bytes, 3 * 64U);
}

TEST_P(Golden, WeAreTheClient) {
  COVERS("RFC5040-3.1-5");
  COVERS("RFC5040-3.1-6");
  COVERS("RFC5044-3-15");
  COVERS("RFC5044-4.1-3");
  COVERS("RFC5044-7.1-6");
  COVERS("RFC5044-7.1.2-24");
  const auto ours = ulpdus(client_);
  const std::size_t skip = policy_.peer_to_peer ? 1 : 0;
  const Advert start = advert(ConstBytes(ours[skip]).subspan(18)),
               sink = advert(ConstBytes(ours[skip + 2]).subspan(18));

  test::Endpoint end(1);
  const auto start_region = first_region(end, start.stag, start.to, 64);
  const auto sink_region = second_region(end, sink.stag, sink.to, 64);
  auto& messages = end.region(200);
  for (std::uint64_t i = 0; i < 6; ++i) end.post(rdmap::RecvWr{i, messages.sge(16 * i, 16)});

  end.start(mpa::Initiator(policy_, {}, kNow), kNow);
  Bytes sent = end.send(kAll, kNow);
  std::size_t next = skip;  // of our ULPDUs in the capture; the Read Responses among them need no posting
  const auto advertise = [&] {
    while (next < ours.size() && (std::to_integer<unsigned>(ours[next][1]) & 7) == 2) ++next;
    if (next == ours.size()) return;
    messages.fill(Bytes(ours[next].begin() + 18, ours[next].end()), 100 + 16 * (next % 2));
    end.post(test::send_wr(next, messages.sge(100 + 16 * (next % 2), 16)));
    ++next;
  };
  std::size_t received = 0, served = 0;
  const auto fill_source = [&] {  // what the capture shows that rping read from it
    for (std::size_t i = 0, seen = 0; i < ours.size(); ++i) {
      if ((std::to_integer<unsigned>(ours[i][1]) & 7) == 2 && seen++ == served)
        start_region->fill(Bytes(ours[i].begin() + 14, ours[i].end()));
    }
    ++served;
  };
  fill_source();
  for (const Turn& t : turns_) {
    if (t.client) continue;
    const bool reply = end.established() == nullptr;
    ASSERT_EQ(end.receive(t.bytes, kNow), t.bytes.size());
    ASSERT_NE(end.established(), nullptr);
    if (reply) advertise();
    while (end.recvs.size() > received) {
      ASSERT_EQ(end.recvs[received].status, Errc::kOk);
      if (++received % 2 == 0) {
        fill_source();
        EXPECT_EQ(to_hex(ConstBytes(sink_region->bytes()).first(10)), to_hex(hex("72646d612d70696e672d")))
            << "\"rdma-ping-\"";
      }
      advertise();
    }
    while (end.conn().tx_pending()) sent = sent | end.send(kAll, kNow);
  }
  EXPECT_EQ(received, 6U);
  ASSERT_GE(sent.size(), 24U);
  // The Request offers other RTR forms than siw's does; all behind it is the same.
  EXPECT_EQ(to_hex(ConstBytes(sent).subspan(24)), to_hex(ConstBytes(client_).subspan(24)));
  EXPECT_EQ(end.conn().rx_counters().write_bytes, 3 * 64U);
}

INSTANTIATE_TEST_SUITE_P(Siw, Golden, ::testing::Values("siw-rping", "siw-crc-rping", "siw-p2p-rping"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

}  // namespace
}  // namespace iwarp::stream
