#include "tests/support/raw_peer.h"

#include <algorithm>

namespace iwarp::test {
namespace {

mpa::Policy policy_of(const RawPeerOptions& o) {
  mpa::Policy p;
  p.crc = o.crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  p.markers = o.markers ? mpa::Policy::Markers::kAsk : mpa::Policy::Markers::kRefuse;
  p.peer_to_peer = o.peer_to_peer;
  p.ird = o.ird;
  p.ord = o.ord;
  return p;
}

}  // namespace

RawPeer::RawPeer(const RawPeerOptions& options)
    : end(2, options.stream, options.scratch_bytes, options.shared),
      crc(options.crc),
      markers_(options.markers),
      decoder_(options.crc, options.markers) {
  const mpa::Policy policy = policy_of(options);
  mpa::Initiator initiator(policy, {}, now);
  const Bytes request(initiator.tx_bytes().begin(), initiator.tx_bytes().end());
  initiator.tx_commit(request.size());
  mpa::Responder responder(policy, now);
  EXPECT_EQ(responder.rx(request, now), request.size());
  EXPECT_TRUE(responder.poll_event().has_value());
  EXPECT_TRUE(responder.accept(options.ird, options.ord, {}).ok());
  reply.assign(responder.tx_bytes().begin(), responder.tx_bytes().end());
  if (options.we_initiate) {
    end.start(mpa::Initiator(policy, {}, now), now);
    EXPECT_EQ(end.send(~std::size_t{0}, now), request);
    if (options.finish_startup) {
      EXPECT_EQ(end.receive(reply, now), reply.size());
    }
  } else {
    end.start(std::move(responder), now);
    if (options.finish_startup) {
      EXPECT_EQ(end.send(~std::size_t{0}, now), reply);
    }
  }
}

void RawPeer::feed(const Bytes& bytes, std::size_t chunk) {
  ConstBytes rest = bytes;
  while (!rest.empty()) {
    const std::size_t taken = end.receive(rest.first(std::min(chunk, rest.size())), now);
    if (taken == 0) return;  // it does not read any more
    fed_ += taken;
    rest = rest.subspan(taken);
  }
}

std::size_t RawPeer::drain(std::size_t n) {
  std::size_t taken = 0;
  while (taken < n && end.conn().tx_pending()) {
    const Bytes some = end.send(n - taken, now);
    if (some.empty()) break;
    taken += some.size();
    out_.insert(out_.end(), some.begin(), some.end());
  }
  return taken;
}

std::vector<Bytes> RawPeer::ulpdus() {
  drain(~std::size_t{0});
  std::vector<Bytes> found;
  std::size_t at = 0;
  while (at < out_.size()) {
    const auto result = decoder_.decode(MutBytes(out_).subspan(at));
    const auto* frame = std::get_if<mpa::FpduFrame>(&result);
    if (frame == nullptr) {
      ADD_FAILURE() << "what was sent is no whole, good FPDU: " << to_hex(ConstBytes(out_).subspan(at));
      break;
    }
    found.emplace_back(frame->ulpdu.begin(), frame->ulpdu.end());
    at += frame->fpdu_bytes;
  }
  out_.clear();
  return found;
}

std::string RawPeer::terminate() {
  const auto sent = ulpdus();
  if (sent.size() != 1 || sent[0].size() < ddp::UntaggedHeader::kSize || sent[0][1] != std::byte{0x47}) {
    ADD_FAILURE() << sent.size() << " ULPDUs, not one Terminate" << (sent.empty() ? "" : ": " + to_hex(sent[0]));
    return "";
  }
  EXPECT_EQ(to_hex(ConstBytes(sent[0]).first(18)), "414700000000000000020000000100000000");
  return to_hex(ConstBytes(sent[0]).subspan(18));
}

void RawPeer::expire() {
  const auto deadline = end.conn().deadline();
  ASSERT_TRUE(deadline.has_value());
  now = *deadline;
  end.expire(now);
}

}  // namespace iwarp::test
