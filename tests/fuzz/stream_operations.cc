// The operations of a script: World::operation() and what it calls.
#include <algorithm>

#include "tests/fuzz/stream_world.h"

namespace iwarp::fuzz {

using rdmap::Opcode;
using test::operator|;

void World::operation(Script& in) {
  switch (in.u8() % 14) {
    case 0:
    case 1:
      feed_pdu(in);
      break;
    case 2:
      answer_read(in);
      break;
    case 3:  // raw octets
      arrive(in.bytes(in.u8()), false);
      break;
    case 4:  // the rest of an FPDU that began to arrive, or the Reply
      if (held_.empty()) {
        arrive(peer_.reply, true);
        if (std::exchange(awaits_reply_, false)) arrived_ = 0;
      } else {
        arrive(std::exchange(held_, {}), true);
      }
      break;
    case 5:
    case 6:
      post(in);
      break;
    case 7:
      transmit(in.u8());
      break;
    case 8:
      transmit(~std::size_t{0});
      break;
    case 9: {
      const auto deadline = peer_.end.conn().deadline();
      if (deadline) peer_.now = std::max(peer_.now, *deadline - std::chrono::milliseconds(in.flag() ? 1 : 0));
      peer_.end.expire(peer_.now);
      break;
    }
    case 10:
      peer_.end.disconnect(peer_.now);
      break;
    case 11:
      end_tcp(static_cast<stream::TcpEnd>(in.u8() % 3));
      break;
    case 12:
      revoke(in);
      break;
    case 13: {
      const std::uint8_t what = in.u8();
      if (what < 8) peer_.end.conn().abort(make_error(Errc::kAborted));
      if (what >= 8 && what < 64) (void)peer_.end.conn().link_action();
      if (what >= 64) peer_.end.conn().set_emss(std::size_t{what} * 16);
      peer_.end.collect();
      break;
    }
  }
}

// --- PDUs.

// An STag and an offset: of our memory, near its bounds, or anything.
std::pair<Stag, std::uint64_t> World::target(Script& in) {
  const std::uint8_t which = in.u8();
  if (which >= 250) return {Stag{in.u32()}, in.take<std::uint64_t>()};
  const Memory& m = memory_[which % memory_.size()];
  const std::uint8_t where = in.u8();
  std::uint64_t to = m.region->to(where < 128 ? where : m.region->bytes().size() + where - 192);
  std::uint32_t stag = raw(m.region->stag());
  if (which >= 200) stag ^= 1;  // another key
  return {Stag{stag}, to};
}

Bytes World::made_ulpdu(Script& in) {
  const std::uint8_t kind = in.u8(), shape = in.u8();
  const auto opcode = static_cast<Opcode>(kind & 7);
  const std::size_t length = in.u16() % 21000;
  Bytes payload = content(length, kind);
  const bool last = (kind & 8) == 0;
  Bytes ulpdu;
  if (rfc7306_ && (kind & 128) != 0) {
    ulpdu = made_rfc7306(in, kind);
  } else if (opcode == Opcode::kWrite || opcode == Opcode::kReadResponse) {
    const auto [stag, to] = target(in);
    ulpdu = test::tagged_segment(opcode, stag, to, payload, last);
  } else if (opcode == Opcode::kReadRequest) {
    const auto [source, source_to] = target(in);
    const rdmap::ReadRequest r{Stag{in.u32()}, in.u16(), static_cast<std::uint32_t>(length), source, source_to};
    ulpdu = test::read_request_segment(r, read_msn_++);
  } else if (opcode == Opcode::kTerminate) {
    const auto body = in.bytes(length % 128);
    ulpdu = test::terminate_segment(Bytes(body.begin(), body.end()));
  } else {
    const Stag invalidate = rdmap::invalidates(opcode) ? target(in).first : Stag{};
    ulpdu = test::send_segment(payload, {send_msn_, send_mo_, last, raw(invalidate)}, opcode);
    send_mo_ = last ? 0 : send_mo_ + static_cast<std::uint32_t>(length);
    if (last) ++send_msn_;
  }
  // Breaks one field.
  const auto poke = [&](std::size_t at, std::byte value) {
    if (at < ulpdu.size()) ulpdu[at] = value;
  };
  if ((shape & 1) != 0) poke(0, std::byte{in.u8()});
  if ((shape & 2) != 0) poke(1, std::byte{in.u8()});
  if ((shape & 4) != 0) poke(9, std::byte{in.u8()});    // QN
  if ((shape & 8) != 0) poke(13, std::byte{in.u8()});   // MSN
  if ((shape & 16) != 0) poke(16, std::byte{in.u8()});  // MO
  if ((shape & 32) != 0) ulpdu.resize(std::min<std::size_t>(ulpdu.size(), in.u8()));
  return ulpdu;
}

void World::feed_pdu(Script& in) {
  const Bytes ulpdu = made_ulpdu(in);
  const std::uint8_t how = in.u8();
  Bytes bytes = framed(ulpdu, how >= 192 && how < 224 ? how : 0);
  if (how >= 248) bytes.back() ^= std::byte{1};  // the CRC
  if (!held_.empty()) bytes = std::exchange(held_, {}) | bytes;
  if (how < 224 || how >= 248) return arrive(bytes, true);
  const std::size_t n = std::min<std::size_t>(in.u16(), bytes.size());  // only a part of it for now
  held_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(n), bytes.end());
  arrive(ConstBytes(bytes).first(n), held_.empty());
}

// The next segment of the Response to the oldest Read or Atomic of the connection under test.
void World::answer_read(Script& in) {
  if (reads_.empty()) return;
  PeerRead& read = reads_.front();
  const std::uint32_t n = std::min<std::uint32_t>(in.u16(), read.left);
  const bool last = n == read.left;
  Bytes bytes =
      framed(read.atomic ? atomic_response(*read.atomic)
                         : test::tagged_segment(Opcode::kReadResponse, read.sink, read.to, content(n, 0), last));
  if (!held_.empty()) bytes = std::exchange(held_, {}) | bytes;
  read.left -= n;
  read.to += n;
  if (last) reads_.pop_front();
  arrive(bytes, true);
}

// --- Work requests.

rdmap::SgeList World::pieces(Script& in, std::size_t most) {
  rdmap::SgeList out;
  const std::size_t count = std::min<std::size_t>(in.u8() % (rdmap::kMaxSge + 1), most);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t which = in.u8();
    test::Region& region = *memory_[which % memory_.size()].region;
    const std::size_t size = region.bytes().size(), at = in.u8() % size;
    rdmap::Sge sge = region.sge(at, std::min<std::size_t>(in.u16(), size - at));
    if (which >= 250) sge.lkey = Stag{in.u32()};
    (void)out.add(sge);
  }
  return out;
}

void World::post(Script& in) {
  const std::uint8_t kind = in.u8();
  const std::uint64_t id = next_id_++;
  if (shares_ && kind % 5 == 4 && kind >= 128) return lose_receive();
  if (kind % 5 == 4) return post(rdmap::RecvWr{id, pieces(in, rdmap::kMaxSge)});
  rdmap::SendWr wr;
  wr.wr_id = id;
  wr.op = static_cast<rdmap::SendOp>(kind % 5);
  wr.sges = pieces(in, rdmap::kMaxSge);
  wr.fence = kind >= 128;
  wr.solicited = (kind & 64) != 0;
  if (wr.op != rdmap::SendOp::kSend) {
    wr.remote_stag = Stag{in.u32()};
    wr.remote_to = in.u16();
  }
  if (rfc7306_ && (kind & 16) != 0) become_rfc7306(in, wr);
  if ((kind & 32) != 0) vary(in, wr);
  post(wr);
}

// What is no other message on the wire.
void World::vary(Script& in, rdmap::SendWr& wr) {
  switch (wr.op) {
    case rdmap::SendOp::kRead:
      wr.op = rdmap::SendOp::kReadInvalidate;
      break;
    case rdmap::SendOp::kSendInvalidate:
      wr.op = rdmap::SendOp::kLocalInvalidate;
      wr.local_stag = memory_[in.u8() % memory_.size()].region->stag();
      wr.sges = {};
      break;
    default:
      wr.inline_data = true;
  }
}

void World::revoke(Script& in) {
  Memory& m = memory_[in.u8() % memory_.size()];
  if (m.revoked) return;
  if (peer_.end.stags().valid(m.region->stag())) {
    m.region->revoke();
  } else {  // the peer has invalidated it, or a work request
    FUZZ_CHECK(peer_.end.stags().quiescent(m.region->stag()));
    peer_.end.stags().release(m.region->stag());
  }
  m.revoked = true;
  m.before = m.region->bytes();
}

}  // namespace iwarp::fuzz
