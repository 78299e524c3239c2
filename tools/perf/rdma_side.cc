#include "tools/perf/rdma_side.h"

#include <algorithm>
#include <cstring>

#include "iwarp/base/wire.h"
#include "iwarp/stream/profile.h"

namespace iwarp::tools::perf {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNotes = 16;  // receives, and sends that may be under way
constexpr std::uint64_t kNoteReceived = std::uint64_t{1} << 62;
constexpr std::uint64_t kNoteSent = std::uint64_t{1} << 63;
constexpr std::size_t kIntroductionBytes = 12;  // 0 STag (4) | 4 TO (8)

void demand(const Result<void>& result) {
  if (!result) throw std::runtime_error(std::string("iWARP: ") + result.error().why);
}

verbs::MemoryRegion add(const verbs::ProtectionDomain& pd, MutBytes memory, ddp::Access access) {
  verbs::MemoryRegion::Options o;
  o.access = access;
  auto region = verbs::MemoryRegion::register_memory(pd, memory, o);
  if (!region) throw std::runtime_error(region.error().why);
  return std::move(*region);
}

mpa::FpduPolicy fpdu_of(const Spec& spec) {
  if (spec.fpdu == "emss") return mpa::FpduPolicy::kEmss;
  return spec.fpdu == "16k" ? mpa::FpduPolicy::k16k : mpa::FpduPolicy::kMax;
}

}  // namespace

void write_message(std::byte* at, Message m) {
  const std::uint32_t note = static_cast<std::uint32_t>(m.note);
  std::memcpy(at, &note, 4);
  std::memcpy(at + 4, &m.value, 4);
}

Message read_message(const std::byte* at) {
  std::uint32_t note = 0;
  Message m;
  std::memcpy(&note, at, 4);
  std::memcpy(&m.value, at + 4, 4);
  m.note = static_cast<Note>(note);
  return m;
}

cm::TapMaker tap_maker;

mpa::Policy policy_of(const Spec& spec) {
  mpa::Policy p;
  stream::find_profile(spec.profile)->apply(p);
  p.crc = spec.crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kOff;
  if (spec.markers) p.markers = mpa::Policy::Markers::kAsk;
  if (spec.llp != "tcp") p.peer_to_peer = false;  // either side may send first
  return p;
}

stream::Options stream_of(const Spec& spec) {
  stream::Options o;
  stream::find_profile(spec.profile)->apply(o);
  if (spec.test == Test::kWriteLat) o.place_early = false;  // it watches the last octet, which is to come last
  o.direct_placement = spec.direct;
  o.fpdu = fpdu_of(spec);
  return o;
}

cm::Engine::Mode mode_of(const Spec& spec) {
  return spec.manual ? cm::Engine::Mode::kManual : cm::Engine::Mode::kAutomatic;
}

LayerHandle lower_layer_of(const Spec& spec, cm::Engine& engine) {
  auto layer = llp::LowerLayer::make(engine, *llp::kind_named(spec.llp), {.packet_bytes = spec.sctp_packet});
  if (!layer) throw std::runtime_error(std::string("--llp ") + spec.llp + ": " + layer.error().why);
  return LayerHandle(layer->release());
}

ddp::Access region_access(const Spec& spec) {
  using ddp::Access;
  const bool read = spec.test == Test::kReadBw || spec.test == Test::kReadLat;
  const bool write = spec.test == Test::kWriteBw || spec.test == Test::kWriteLat;
  Access access = Access::kLocalWrite;
  if (read) access = access | Access::kRemoteRead;
  if (read && spec.stable) access = access | Access::kStableSource;
  if (write) access = access | Access::kRemoteWrite;
  return access;
}

RdmaSide::RdmaSide(const Spec& spec, cm::Engine& engine, std::size_t recv_depth)
    : spec_(spec),
      engine_(engine),
      pd_(engine.context()),
      cq_(2 * (spec.depth + recv_depth + 4 * kNotes), &engine),
      region_(spec.region_bytes()),
      notes_(2 * kNotes * kNoteBytes) {
  mr_ = add(pd_, region_, region_access(spec));
  notes_mr_ = add(pd_, notes_, ddp::Access::kLocalWrite);
  verbs::QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq_;
  o.stream = stream_of(spec);
  o.stream.sq_depth = spec.depth + kNotes;
  o.stream.rq_depth = recv_depth + kNotes;
  qp_ = std::make_shared<verbs::QueuePair>(pd_, o);
  for (std::size_t i = 0; recv_depth == 0 && i < kNotes; ++i)
    post_receive(kNoteReceived + i, {&notes_[i * kNoteBytes], kNoteBytes, notes_mr_.stag()});
}

RdmaSide::~RdmaSide() {
  qp_->abort();
}

std::vector<std::byte> RdmaSide::introduction() const {
  std::vector<std::byte> data(kIntroductionBytes);
  FixedWriter<kIntroductionBytes> w{std::span<std::byte, kIntroductionBytes>(data)};
  w.be<0>(raw(mr_.stag()));
  w.be<4>(mr_.to_of(region_.data()));
  return data;
}

void RdmaSide::introduced(const std::vector<std::byte>& private_data) {
  const auto view = FixedView<kIntroductionBytes>::of(private_data);
  if (!view) throw std::runtime_error("the peer is not an `iwarp perf` of this version");
  remote_ = {Stag{view->be<std::uint32_t, 0>()}, view->be<std::uint64_t, 4>()};
}

void RdmaSide::connect(const std::string& host, std::uint16_t port) {
  cm::ConnectOptions o;
  o.host = host;
  o.port = port;
  o.policy = policy_of(spec_);
  o.mpa = stream_of(spec_);
  o.socket.congestion_control = spec_.congestion;
  o.private_data = introduction();
  engine_.set_tap_maker(tap_maker);
  layer_ = lower_layer_of(spec_, engine_);
  Joined told;
  layer_->connect(qp_, o, told.handler());
  const auto [error, connection] = await(engine_, spec_.manual, told.result());
  if (error.code != Errc::kOk) throw std::runtime_error(std::string("cannot connect over iWARP: ") + error.why);
  introduced(connection->private_data());
}

void RdmaSide::accept(llp::ConnectRequest& request) {
  introduced(request.private_data());
  Joined told;
  request.accept(qp_, {.private_data = introduction(), .mpa = stream_of(spec_)}, told.handler());
  const auto [error, connection] = await(engine_, spec_.manual, told.result());
  if (error.code != Errc::kOk) throw std::runtime_error(std::string("cannot accept over iWARP: ") + error.why);
}

void RdmaSide::post(std::span<const verbs::SendWr> list) {
  demand(qp_->post_send(list));
}

void RdmaSide::post_receive(std::uint64_t id, verbs::Sge where) {
  const verbs::RecvWr wr{.wr_id = id, .sges = where};
  post_receives({&wr, 1});
}

void RdmaSide::post_receives(std::span<const verbs::RecvWr> list) {
  demand(qp_->post_recv(list));
}

void RdmaSide::say(Message m) {
  std::byte* at = &notes_[(kNotes + next_note_) * kNoteBytes];
  next_note_ = (next_note_ + 1) % kNotes;
  write_message(at, m);
  const verbs::SendWr wr{.wr_id = kNoteSent, .sges = verbs::Sge{at, kNoteBytes, notes_mr_.stag()}};
  post({&wr, 1});
}

void RdmaSide::progress() {
  if (interrupted) throw std::runtime_error("interrupted");
  if (spec_.manual) {
    engine_.poll();
  } else {
    cq_.wait_for(100ms);
  }
}

std::span<verbs::Completion> RdmaSide::poll(std::span<verbs::Completion> out) {
  const std::size_t n = cq_.poll(out);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (out[i].status == Errc::kFlushed) {
      ended_ = true;
      continue;
    }
    if (out[i].status != Errc::kOk) throw std::runtime_error(std::string("iWARP: ") + make_error(out[i].status).why);
    if (out[i].wr_id != kNoteSent) out[kept++] = out[i];
  }
  return out.first(kept);
}

std::span<verbs::Completion> RdmaSide::wait(std::span<verbs::Completion> out) {
  for (;;) {
    const auto got = poll(out);
    if (!got.empty() || ended_) return got;
    progress();
  }
}

bool RdmaSide::is_note(const verbs::Completion& c, Message& m) {
  if (c.op != verbs::WcOp::kRecv || (c.wr_id & kNoteReceived) == 0) return false;
  std::byte* at = &notes_[(c.wr_id - kNoteReceived) * kNoteBytes];
  m = read_message(at);
  post_receive(c.wr_id, {at, kNoteBytes, notes_mr_.stag()});
  return true;
}

}  // namespace iwarp::tools::perf
