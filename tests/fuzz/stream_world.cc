#include "tests/fuzz/stream_world.h"

#include <algorithm>

namespace iwarp::fuzz {

using rdmap::Opcode;
using test::operator|;

namespace {

constexpr std::size_t kNoLimit = ~std::size_t{0};
// Large enough for direct placement with CRC off.
constexpr std::size_t kLarge = 20000;
// With all that its length field can say, and Markers.
constexpr std::size_t kLongestFpdu = 70000;

bool good_crc(ConstBytes fpdu) {
  return mpa::crc32c(fpdu.first(fpdu.size() - mpa::kCrcBytes)) == mpa::load_crc(fpdu.last<mpa::kCrcBytes>());
}

test::RawPeerOptions peer_options(const Setup& s, rdmap::ReceiveSource* shared) {
  test::RawPeerOptions o;
  if (s.shares) o.shared = shared;
  const bool startup = s.start == Start::kReplyUnsent || s.start == Start::kAwaitingReply;
  o.crc = s.crc || startup;
  o.markers = s.markers;
  o.peer_to_peer = s.peer_to_peer;
  o.we_initiate = s.start != Start::kReplyUnsent && s.start != Start::kResponder;
  o.finish_startup = !startup;
  o.ird = o.ord = 4;
  o.stream.sq_depth = o.stream.rq_depth = 8;
  o.stream.max_inline = 1000;
  o.stream.rfc7306 = s.rfc7306;
  o.stream.fpdu = mpa::FpduPolicy::kMax;
  o.scratch_bytes = s.scratch_bytes;
  return o;
}

}  // namespace

Bytes content(std::size_t n, std::size_t first) {
  static const Bytes all = test::pattern(kMostContent + 256);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

Setup::Setup(Script& in) {
  start = static_cast<Start>(in.u8() % kStarts);
  const std::uint8_t flags = in.u8();
  crc = (flags & 1) == 0;
  peer_to_peer = (flags & 2) != 0;
  shares = (flags & 16) != 0;
  rfc7306 = (flags & 32) != 0;
  markers = (flags & 64) != 0;
  scratch_bytes = (flags & 4) != 0 ? 64 : (flags & 8) != 0 ? 1500 : 16384;
}

World::World(const Setup& setup, Chunking chunking)
    : shares_(setup.shares),
      rfc7306_(setup.rfc7306),
      markers_(setup.markers),
      peer_(peer_options(setup, &shared_)),
      chunking_(chunking),
      crc_(peer_options(setup, nullptr).crc),
      awaits_reply_(setup.start == Start::kAwaitingReply),
      opener_(crc_, markers_, true) {
  using ddp::Access;
  const ddp::StreamKey own = peer_.end.key();
  add_memory(kLarge, test::kRemoteAll, 0x10000, false);
  add_memory(kLarge, test::kLocal, 0x10000, false);
  add_memory(600, Access::kRemoteRead | Access::kStableSource, ~std::uint64_t{0} - 600, true);
  add_memory(5000, test::kRemoteAll | Access::kRemoteInvalidate, 0, false, own);
  add_memory(5000, test::kRemoteAll, 0x10000, true, ddp::StreamKey{PdId{77}, ddp::StreamId::kAny});
  // Of another stream: the peer cannot reach it, and our own work requests lack the right to write there.
  add_memory(5000, Access::kRemoteRead | Access::kRemoteWrite, 0x10000, true,
             ddp::StreamKey{own.pd, ddp::StreamId{4711}});
  if (setup.start == Start::kReplyUnsent) parsed_ = peer_.reply.size();
  add_memory(5000, Access::kLocalRead, 0x10000, true);
  reach(setup.start);
}

void World::add_memory(std::size_t bytes, ddp::Access access, std::uint64_t base_to, bool constant,
                       std::optional<ddp::StreamKey> owner) {
  memory_.push_back({&peer_.end.region(bytes, access, base_to, owner), false, constant});
  memory_.back().region->fill(content(bytes, memory_.size()));
  memory_.back().before = memory_.back().region->bytes();
}

void World::reach(Start start) {
  test::Region& remote = *memory_[0].region;
  test::Region& local = *memory_[1].region;
  for (std::size_t i = 0; i < 4; ++i) post(rdmap::RecvWr{next_id_++, local.sge(i * 100, i * 2000)});
  switch (start) {
    case Start::kReplyUnsent:
    case Start::kAwaitingReply:
      return;
    case Start::kResponder:
      arrive(framed(test::write_segment(Stag{}, 0, {})), true);
      break;
    case Start::kInitiator:
      break;
    case Start::kReadsOutstanding:
      for (const std::uint32_t n : {100U, 9000U, 0U}) post(test::read_wr(next_id_++, local.sge(0, n), remote));
      break;
    case Start::kReadsInbound:
      for (const std::uint32_t n : {9000U, 0U, 100U}) {
        const rdmap::ReadRequest r{Stag{0x1234}, 0x5678, n, remote.stag(), remote.to()};
        arrive(framed(test::read_request_segment(r, read_msn_++)), true);
      }
      return;
    case Start::kMidMessage: {
      transmit(kNoLimit);
      // The second Receive holds 2000 octets, the fourth 6000.
      arrive(framed(test::send_segment({}, {.msn = send_msn_++})), true);
      arrive(framed(test::send_segment(content(500, 0), {.msn = send_msn_, .last = false})), true);
      send_mo_ = 500;
      held_ = framed(test::write_segment(remote.stag(), remote.to(16), content(9000, 0)));
      const Bytes first(held_.begin(), held_.begin() + 40);
      held_.erase(held_.begin(), held_.begin() + 40);
      arrive(first, false);
      return;
    }
    case Start::kDraining:
      post(test::send_wr(next_id_++, memory_.back().region->sge(0, 3000)));
      post(test::read_wr(next_id_++, local.sge(0, 3000), remote));
      peer_.end.disconnect(peer_.now);
      return;
    case Start::kFinWait:
      peer_.end.disconnect(peer_.now);
      break;
    case Start::kTerminating:
      arrive(framed(test::write_segment(Stag{0xBAD}, 0, content(9, 0))), true);
      return;
  }
  transmit(kNoLimit);
}

// --- The peer's octets.

Bytes World::framed(const Bytes& ulpdu, std::uint8_t damage) const {
  const std::uint64_t position = arrived_ + held_.size();
  // Behind octets of no FPDU: where Markers would be has no meaning.
  if (!markers_ || position % mpa::kMarkerBytes != 0) return test::fpdu(ulpdu, crc_);
  Bytes out = test::marked_fpdu(ulpdu, position, crc_);
  const std::size_t marker = mpa::octets_to_marker(position), covered = out.size() - mpa::kCrcBytes;
  if (damage == 0 || marker >= covered) return out;
  out[marker + damage % mpa::kMarkerBytes] ^= std::byte{damage};
  if (crc_) {
    mpa::Crc32c sum;
    sum.update(ConstBytes(out).first(covered));
    sum.write_to(MutBytes(out).subspan(covered).first<mpa::kCrcBytes>());
  }
  return out;
}

void World::arrive(ConstBytes bytes, bool whole_fpdus) {
  partial_ = !whole_fpdus;
  arrived_ += bytes.size();
  if (!ended_) unread_.insert(unread_.end(), bytes.begin(), bytes.end());
  pump();
}

void World::pump() {
  ConstBytes rest = unread_;
  while (!rest.empty()) {
    const std::size_t taken = peer_.end.receive(rest.first(chunking_.next(rest.size())), peer_.now);
    if (taken == 0) break;
    rest = rest.subspan(taken);
  }
  unread_.erase(unread_.begin(), unread_.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

void World::transmit(std::size_t limit) {
  while (limit > 0 && peer_.end.conn().tx_pending()) {
    const Bytes some = peer_.end.send(limit, peer_.now);
    if (some.empty()) break;
    FUZZ_CHECK(some.size() <= limit);
    limit -= some.size();
    sent_.insert(sent_.end(), some.begin(), some.end());
  }
  note_requests();
}

// Everything sent in full operation is whole, good FPDUs.
void World::note_requests() {
  if (sent_.size() < parsed_) return;  // part of our Reply
  while (parsed_ < sent_.size()) {
    const ConstBytes rest = ConstBytes(sent_).subspan(parsed_);
    Bytes octets(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(rest.size(), kLongestFpdu)));
    const auto result = opener_.decode(octets);
    if (std::holds_alternative<mpa::NeedMore>(result)) return;
    const auto* frame = std::get_if<mpa::FpduFrame>(&result);
    FUZZ_CHECK(frame != nullptr);
    FUZZ_CHECK(!crc_ || unsteady_ || good_crc(rest.first(frame->fpdu_bytes)));
    note_request(frame->ulpdu);
    parsed_ += frame->fpdu_bytes;
  }
}

// Its header is one of those that the connection may send. Remembers its Reads and Atomics.
void World::note_request(ConstBytes ulpdu) {
  const auto header = ddp::parse_segment_header(ulpdu);
  const auto known = rfc7306_ ? rdmap::Extensions::kRfc7306 : rdmap::Extensions::kNone;
  FUZZ_CHECK(header.ok() && rdmap::check_control(*header, known).ok());
  const Opcode opcode = *rdmap::check_control(*header, known);
  const ConstBytes payload = ulpdu.subspan(ddp::header_size(*header));
  if (opcode == Opcode::kReadRequest) {
    const auto read = rdmap::ReadRequest::parse(payload);
    FUZZ_CHECK(read.has_value());
    reads_.push_back({read->sink_stag, read->sink_to, read->size});
  } else if (opcode == Opcode::kAtomicRequest) {
    const auto atomic = rdmap::AtomicRequest::parse(payload);
    FUZZ_CHECK(atomic.has_value() && atomic->known());
    reads_.push_back({.atomic = atomic->id});
  } else if (opcode == Opcode::kAtomicResponse) {
    FUZZ_CHECK(rdmap::AtomicResponse::parse(payload).has_value());
  } else if (rdmap::is_immediate(opcode)) {
    FUZZ_CHECK(payload.size() == rdmap::kImmediateBytes);
  }
}

void World::end_tcp(stream::TcpEnd how) {
  if (ended_) return;
  ended_ = true;
  peer_.end.end(how, peer_.now);
}

// --- The application. It polls behind each post, however the peer's octets are cut: what is flushed holds its place in
// the queue until then.

void World::post(const rdmap::SendWr& wr) {
  if (!awaits_response(wr.op)) {
    for (const rdmap::Sge& sge : wr.sges.view()) unsteady_ |= sge.lkey != memory_.back().region->stag();
  }
  if (peer_.end.conn().post_send(wr).ok()) posted_sends_.push_back(wr.wr_id);
  peer_.end.collect();
}

void World::post(const rdmap::RecvWr& wr) {
  const bool own = peer_.end.conn().post_recv(wr).ok();
  FUZZ_CHECK(!(own && shares_));
  if (own || (shares_ && shared_.post(wr))) posted_recvs_.push_back(wr.wr_id);
  peer_.end.collect();
}

// Another stream takes one of the shared Receives.
void World::lose_receive() {
  const auto oldest = posted_recvs_.end() - static_cast<std::ptrdiff_t>(shared_.posted());
  rdmap::RecvWr lost;
  if (!shared_.take(lost)) return;
  FUZZ_CHECK(lost.wr_id == *oldest);
  posted_recvs_.erase(oldest);
}

// --- The end.

void World::finish() {
  peer_.end.end(stream::TcpEnd::kReset, peer_.now);
  if (peer_.end.conn().phase() == stream::Phase::kIdle) {  // revision 1 might be tried next
    peer_.end.conn().abort(make_error(Errc::kAborted));
    peer_.end.collect();
  }
  const test::Endpoint& e = peer_.end;
  FUZZ_CHECK(peer_.end.conn().phase() == stream::Phase::kClosed && !peer_.end.conn().deadline());
  std::size_t disconnects = 0;
  for (const auto& event : e.events) disconnects += std::holds_alternative<stream::Disconnected>(event) ? 1 : 0;
  FUZZ_CHECK(disconnects == 1 && std::holds_alternative<stream::Disconnected>(e.events.back()));

  const auto each_once = [](const std::vector<rdmap::Completion>& got, const std::vector<std::uint64_t>& posted) {
    return std::equal(got.begin(), got.end(), posted.begin(), posted.end(),
                      [](const rdmap::Completion& c, std::uint64_t id) { return c.wr_id == id; });
  };
  posted_recvs_.resize(posted_recvs_.size() - shared_.posted());  // nobody has taken these
  FUZZ_CHECK(each_once(e.sends, posted_sends_) && each_once(e.recvs, posted_recvs_));
  FUZZ_CHECK(peer_.end.conn().post_send({}).ok() && peer_.end.conn().post_recv({}).ok() != shares_);
  const auto send = peer_.end.conn().poll_send(), recv = peer_.end.conn().poll_recv();
  FUZZ_CHECK(send && send->status == Errc::kFlushed && recv.has_value() != shares_);
  FUZZ_CHECK(!recv || recv->status == Errc::kFlushed);
  for (const Memory& m : memory_) {
    FUZZ_CHECK(m.revoked || peer_.end.stags().quiescent(m.region->stag()));
    FUZZ_CHECK(!(m.constant || m.revoked) || m.region->bytes() == m.before);
  }
}

bool World::same_memory(const World& other) const {
  return std::equal(memory_.begin(), memory_.end(), other.memory_.begin(),
                    [](const Memory& a, const Memory& b) { return a.region->bytes() == b.region->bytes(); });
}

void World::run(Script script) {
  while (!script.done()) {
    if (partial_ && !crc_) torn_ = true;
    operation(script);
    pump();
  }
  if (partial_ && !crc_) torn_ = true;
  finish();
}

}  // namespace iwarp::fuzz
